"""What the waits of runs expect and have got, for `core.explain_waits`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from workflows.core.near_misses import Expected
from workflows.core.states import WaitState
from workflows.core.wait_facts import Taken, WaitFacts
from workflows.models import Match, Run, Wait
from workflows.selectors.near_events import looked_for, said_by
from workflows.selectors.run_steps import workflow_of

TAKEN_SHOWN = 3


def waits_at_present(runs: Sequence[Run]) -> tuple[QuerySet[Wait], QuerySet[Match]]:
    """The waits of `runs` at their present steps and visits, and what each got first; to be read.

    The latest of a run comes last: a step that a person lets be tried again may wait anew.
    """
    here = functools.reduce(
        operator.or_, (Q(run=run.pk, step=run.step, visit=run.visit) for run in runs), Q(pk__in=[])
    )
    return with_first_events(Wait.objects.filter(here).order_by("pk"))


def waits_of(runs: Sequence[Run], waits: Iterable[Wait]) -> dict[UUID, WaitFacts]:
    """The wait of each of `runs` at its present step and visit, the latest of `waits`."""
    at_present = {(run.pk, run.step, run.visit): run for run in runs}
    return {
        wait.run_id: facts_of_wait(wait, run)
        for wait in waits
        if (run := at_present.get((wait.run_id, wait.step, wait.visit))) is not None
    }


def with_first_events(waits: QuerySet[Wait]) -> tuple[QuerySet[Wait], QuerySet[Match]]:
    """To be read together: `waits`, with how many events each has `got`, and the first matches of
    each, without the bodies."""
    place = Window(RowNumber(), partition_by="wait", order_by=("at", "pk"))
    matches = Match.objects.filter(wait__in=waits.values("pk")).annotate(place=place)
    first = matches.filter(place__lte=TAKEN_SHOWN).select_related("event__source")
    return waits.annotate(got=Count("matches")), first.defer("event__body").order_by("place")


def give_first(waits: Iterable[Wait], matches: Iterable[Match]) -> None:
    """Put each wait's first matches where `facts_of_wait` reads them."""
    for wait in waits:
        of_wait: Any = wait
        of_wait.first = [match for match in matches if match.wait_id == wait.pk]


def facts_of_wait(wait: Wait, run: Run) -> WaitFacts:
    """The facts of a wait that comes with `got` and its `first` matches."""
    first: Sequence[Match] = getattr(wait, "first", ())
    return WaitFacts(
        state=WaitState(wait.state),
        expected=expected_by(wait),
        started_at=wait.started_at,
        deadline=wait.deadline,
        needed=wait.needed,
        on_deadline=on_deadline_of(run, wait.step),
        resolved_at=wait.resolved_at,
        taken=tuple(taken_of(match) for match in first),
        got=getattr(wait, "got", len(first)),
    )


def looked_closer(facts: WaitFacts, tenant: UUID) -> WaitFacts:
    """With what has arrived and what came close, of an open wait. One query."""
    if not facts.is_open:
        return facts
    arrived, ambiguous, near = looked_for(tenant, facts.expected)
    return replace(facts, arrived=arrived, ambiguous=ambiguous, near=near, looked=True)


def expected_by(wait: Wait) -> Expected:
    return Expected(tuple(wait.event_types), wait.correlation)


def taken_of(match: Match) -> Taken:
    return Taken(said_by(match.event), match.at, match.by, match.reason)


def on_deadline_of(run: Run, step: str) -> str:
    """What the author wants when the deadline comes; empty where the version is not known here."""
    workflow = workflow_of(run)
    known = workflow.steps.get(step) if workflow else None
    return known.wait.on_deadline if known and known.wait else ""
