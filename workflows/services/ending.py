"""Carrying out what was asked for: the end of runs, whoever asked and however many they are.

At once where nothing is open on another system, else when that is settled. Whatever is not carried
out by whoever asks the sweep carries out, so it needs no worker and survives restarts.

Lock order: parents, then their children in the order of their IDs, then what belongs to them, and
the audit record last, which has one end for all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from uuid import UUID

import structlog
from django.db import transaction

from workflows.core.states import AttemptState, RunState
from workflows.failpoints import failpoint
from workflows.models import Attempt, Run
from workflows.services import hints
from workflows.services.children import ask_to_end, look_at_parent
from workflows.services.clock import database_now
from workflows.services.settling import close_all, unsettled_of, why_cancelled

log = structlog.get_logger(__name__)

# Ended in one transaction: it holds their rows for some 50 ms.
BATCH = 100
# A sweep goes on for so long while runs end, and then does its other duties.
TURN_SECONDS = 1.0
BEFORE_ALL = UUID(int=0)


def end(runs: Sequence[Run]) -> list[Run]:
    """Cancel runs whose end was asked for and whose rows the caller has locked.

    Returns:
        Those that have ended; of the others something is to be settled first.
    """
    first = unsettled_of([run.pk for run in runs])
    ending = [run for run in runs if run.pk not in first]
    Attempt.objects.bulk_create(
        [interrupted(run) for run in ending if run.state == RunState.RUNNING]
    )
    asked_by = {run.pk: run.cancel_asked_by for run in ending}
    for by in sorted(set(asked_by.values())):
        asked = [run for run, who in asked_by.items() if who == by]
        ask_to_end(Run.objects.filter(parent__in=asked), by)
    close_all(asked_by)
    for run in ending:
        failure = why_cancelled(run.cancel_asked_by)
        moved = Run.objects.move(run, RunState.CANCELLED, failure=failure)
        assert moved, "the run is locked"
        log.info("run.cancelled", run=str(run.pk))
    return ending


def interrupted(run: Run) -> Attempt:
    """The attempt that is under way, as it goes into the record: what it brings comes too late."""
    attempt = Attempt.under_way(run)
    attempt.state, attempt.ended_at = AttemptState.LOST, database_now()
    attempt.error = f"the run was cancelled by {run.cancel_asked_by} meanwhile"
    return attempt


class Ender:
    """A duty of the sweep: carry out the cancellations that can be carried out by now.

    Those whose end was asked for are walked through in batches: on and on while runs end, so that
    the thousands that a run has started are gone in seconds; a batch that only waits for something
    to be settled costs one turn, and keeps no others from theirs.
    """

    def __init__(self) -> None:
        self._after = BEFORE_ALL

    def __call__(self) -> int:
        ended = 0
        until = time.monotonic() + TURN_SECONDS
        while True:
            batch = self._next_batch()
            waiting = unsettled_of(batch)
            able = [run for run in batch if run not in waiting]
            tell_of_due(list(waiting))
            ended += carry_out(able) if able else 0
            if self._after == BEFORE_ALL or not able or time.monotonic() > until:
                return ended

    def _next_batch(self) -> list[UUID]:
        asked = Run.objects.filter(cancel_asked_at__isnull=False, finished_at=None)
        due = asked.filter(pk__gt=self._after).order_by("pk")
        batch = list(due.values_list("pk", flat=True)[:BATCH])
        self._after = batch[-1] if len(batch) == BATCH else BEFORE_ALL
        return batch


end_cancelled = Ender()


def carry_out(runs: Sequence[UUID]) -> int:
    """End those of `runs` that nobody else is at; return how many."""
    failpoint("before_end")
    with transaction.atomic():
        asked = Run.objects.filter(pk__in=runs, finished_at=None, cancel_asked_at__isnull=False)
        ended = end(list(asked.order_by("pk").select_for_update(skip_locked=True, no_key=True)))
    failpoint("after_end")
    for parent in dict.fromkeys(run.parent_id for run in ended):
        look_at_parent(parent)
    return len(ended)


def tell_of_due(runs: Sequence[UUID]) -> None:
    """A worker settles what is open of `runs`. Of those that are paused nobody else tells."""
    now = database_now()
    for run in Run.objects.filter(pk__in=runs):
        lease = run.lease_expires_at
        if run.state == RunState.READY or (lease is not None and lease < now):
            hints.run_is_ready(run.pk)
