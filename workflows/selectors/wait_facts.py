"""What the waits of runs expect and have got, for `core.explain_waits`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from django.db.models import Count, Prefetch, Q, QuerySet

from workflows.core.near_misses import Expected
from workflows.core.states import WaitState
from workflows.core.wait_facts import Taken, WaitFacts
from workflows.models import Match, Run, Wait
from workflows.selectors.near_events import fitting, near_to, said_by
from workflows.selectors.run_steps import workflow_of

TAKEN_SHOWN = 3


def waits_of(runs: Sequence[Run]) -> dict[UUID, WaitFacts]:
    """The wait of each of `runs` at its present step and visit. Two queries at most."""
    if not runs:
        return {}
    here = functools.reduce(
        operator.or_, (Q(run=run.pk, step=run.step, visit=run.visit) for run in runs)
    )
    # The latest comes last: a step that a person lets be tried again may wait anew.
    waits = with_first_events(Wait.objects.filter(here)).order_by("pk")
    by_run = {run.pk: run for run in runs}
    return {wait.run_id: facts_of_wait(wait, by_run[wait.run_id]) for wait in waits}


def with_first_events(waits: QuerySet[Wait]) -> QuerySet[Wait]:
    """With how many events each has `got`, and its `first` matches, without the bodies."""
    matches = Match.objects.select_related("event__source").defer("event__body")
    first = Prefetch("matches", matches.order_by("at", "pk")[:TAKEN_SHOWN], to_attr="first")
    return waits.annotate(got=Count("matches")).prefetch_related(first)


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
    """With what has arrived and what came close, of an open wait. Three queries."""
    if not facts.is_open:
        return facts
    arrived, ambiguous = fitting(tenant, facts.expected)
    near = () if arrived else near_to(tenant, facts.expected)
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
