"""The waits of runs, for whoever ends, moves or sweeps them. How one is opened is `wait_step`'s."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

import structlog
from django.db.models.functions import Now

from workflows.core.errors import EventIsTaken
from workflows.core.states import WaitState
from workflows.models import Run, Wait
from workflows.services.inbox import match_again
from workflows.sql import fetch

log = structlog.get_logger(__name__)

LOOKED_AT = 200  # open waits in one sweep
BEFORE_ALL = UUID(int=0)


def cancel_open(runs: Collection[UUID]) -> int:
    """End the open waits of `runs`, which the caller has locked; return how many there were.

    Whoever ends a run, or moves it on without what it waits for, calls this in that transaction:
    a wait of a run that is gone would swallow an event.
    """
    waits = Wait.objects.filter(run__in=runs, state=WaitState.WAITING)
    return waits.update(state=WaitState.CANCELLED, resolved_at=Now())


def follow(run: Run, step: str, visit: int, *, waits: bool) -> None:
    """`run`, which the caller has locked, goes on at `step` of a later version.

    What it waits for there, or has got and not read yet, goes along where that step waits too.
    """
    if waits:
        here = Wait.objects.filter(run=run, step=run.step, visit=run.visit)
        here.update(step=step, visit=visit)
    else:
        cancel_open([run.pk])


class SecondNet:
    """A duty of the sweep: stored events that an open wait could take are matched.

    There should be none. The open waits are walked through some at a time, so that a turn costs
    the same however many there are.
    """

    def __init__(self) -> None:
        self._after = BEFORE_ALL

    def __call__(self) -> int:
        rows = fetch("missed_events", {"run": self._after, "batch": LOOKED_AT})
        self._after = rows[-1]["run"] if len(rows) == LOOKED_AT else BEFORE_ALL
        missed = {row["id"] for row in rows if row["id"] is not None}
        for event in missed:
            log.warning("event.missed", event_row=str(event))
            try:
                match_again(event)
            except EventIsTaken:
                continue
        return len(missed)


match_missed = SecondNet()
