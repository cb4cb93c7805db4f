"""The versions of every workflow: who still runs which, who has it, and what would move.

What would move is asked without outputs and inputs: the author's functions are for the command's
rehearsal, and what they say of somebody's values is not for every reader. Of each version the
oldest runs are looked at, so that the page costs the same however many there are. Seven queries.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.db.models import Count, F, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from workflows.core.definitions import Workflow
from workflows.core.migrating import place
from workflows.core.outcomes import Moving, Outcome, Staying, Tally, tally_of
from workflows.core.states import RunState
from workflows.models import Run, Worker
from workflows.registry import registry
from workflows.selectors.workers import live_workers
from workflows.services.standings import standings_of, with_parents
from workflows.version_pages import MoveRow, StateCount, VersionRow, VersionsPage, WorkflowMoves

LOOKED_AT = 50  # runs of each version
EXAMPLES = 3
WORKERS_READ = 200
WORKERS_SHOWN = 4

Version = tuple[str, int]
Counts = Mapping[Version, Sequence[StateCount]]


def versions_page(runs: QuerySet[Run], now: datetime) -> VersionsPage:
    """The page for a reader who may see `runs`, at `now`, the database's time."""
    latest = {name: registry.latest(name) for name, _ in registry.pairs()}
    unfinished = runs.filter(finished_at__isnull=True)
    counts = counts_of(unfinished)
    workers = workers_by_version(live_workers()[:WORKERS_READ])
    every = sorted({*registry.pairs(), *counts, *workers}, key=lambda each: (each[0], -each[1]))
    return VersionsPage(
        moves=tuple(moves(unfinished, latest, counts, now)),
        versions=tuple(version_row(each, latest, counts, workers) for each in every),
    )


def counts_of(unfinished: QuerySet[Run]) -> dict[Version, list[StateCount]]:
    """The unfinished runs of each version by state, in the order of the states."""
    counted = unfinished.values_list("workflow", "version", "state").annotate(runs=Count("pk"))
    found: dict[Version, dict[str, int]] = {}
    for workflow, version, state, number in counted.order_by():
        found.setdefault((workflow, version), {})[state] = number
    return {
        version: [StateCount(state, states[state]) for state in RunState if state in states]
        for version, states in found.items()
    }


def workers_by_version(alive: Iterable[Worker]) -> dict[Version, list[str]]:
    found: dict[Version, list[str]] = {}
    for worker in alive:
        for name, version in worker.workflows:
            found.setdefault((name, version), []).append(worker.name)
    return found


def version_row(
    each: Version,
    latest: Mapping[str, Workflow],
    counts: Counts,
    workers: Mapping[Version, Sequence[str]],
) -> VersionRow:
    name, version = each
    names = sorted(workers.get(each, ()))
    return VersionRow(
        workflow=name,
        version=version,
        states=tuple(counts.get(each, ())),
        workers=tuple(names[:WORKERS_SHOWN]),
        more_workers=max(0, len(names) - WORKERS_SHOWN),
        place=place_of(name, version, latest),
    )


def place_of(name: str, version: int, latest: Mapping[str, Workflow]) -> str:
    if name not in latest or version > latest[name].version:
        return "later"
    if version == latest[name].version:
        return "latest"
    return "earlier" if registry.has(name, version) else "gone"


# --- what would move --------------------------------------------------------------------------


def moves(
    unfinished: QuerySet[Run], latest: Mapping[str, Workflow], counts: Counts, now: datetime
) -> list[WorkflowMoves]:
    """What would become of the runs of earlier versions, workflow by workflow."""
    earlier: dict[str, int] = {}
    for (name, version), states in counts.items():
        if name in latest and version < latest[name].version:
            earlier[name] = earlier.get(name, 0) + sum(each.runs for each in states)
    if not earlier:
        return []
    outdated = {name: latest[name] for name in earlier}
    looked_at = list(oldest_of_each(unfinished, outdated))
    standings = standings_of(looked_at, outdated, now)
    outcomes: dict[str, list[Outcome]] = {name: [] for name in sorted(outdated)}
    for run in looked_at:
        stood, into = standings[run.pk], outdated[run.workflow]
        outcome = Outcome(run.pk, stood.version, stood.step, stood.state, place(stood, into))
        outcomes[run.workflow].append(outcome)
    return [
        WorkflowMoves(name, latest[name].version, earlier[name], rows_of(tally_of(those)))
        for name, those in outcomes.items()
    ]


def oldest_of_each(runs: QuerySet[Run], latest: Mapping[str, Workflow]) -> QuerySet[Run]:
    """The oldest runs of every version before the latest."""
    before = (Q(workflow=name, version__lt=into.version) for name, into in latest.items())
    version = [F("workflow"), F("version")]
    ranked = runs.filter(functools.reduce(operator.or_, before)).annotate(
        place=Window(RowNumber(), partition_by=version, order_by=F("id").asc())
    )
    return with_parents(ranked.filter(place__lte=LOOKED_AT)).order_by("workflow", "version", "id")


def rows_of(tally: Tally) -> tuple[MoveRow, ...]:
    """Those that would stay first: they are what somebody has to see to."""
    return (
        *(staying_row(group) for group in tally.staying.values()),
        *(moving_row(group) for group in tally.moving.values()),
    )


def moving_row(group: Moving) -> MoveRow:
    examples = tuple(group.runs[:EXAMPLES])
    return MoveRow(group.version, group.step, len(group.runs), examples, to_step=group.to_step)


def staying_row(group: Staying) -> MoveRow:
    return MoveRow(
        group.version,
        group.step,
        len(group.runs),
        tuple(group.runs)[:EXAMPLES],
        message=group.why.message,
        helps=group.why.helps,
    )
