"""Plans of what becomes of runs that are to move to a later version: read, and never written.

Made without a lock, many runs at a time. The author's functions are called on what the runs have,
so a plan that says "moves" has everything that it takes (`migrations` carries it out).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from workflows.core import staying
from workflows.core.definitions import Workflow
from workflows.core.errors import OutputError
from workflows.core.migrating import convert, place
from workflows.core.outcomes import Outcome
from workflows.core.standing import Converted, Moves, Standing, Stays
from workflows.core.values import Json
from workflows.models import Attempt, Run
from workflows.services.clock import database_now
from workflows.services.outputs import read_output
from workflows.services.standings import standings_of, with_parents

BATCH = 50  # runs that are planned together; their outputs are in memory meanwhile


@dataclass(frozen=True, slots=True)
class Plan:
    """What would become of one run, with all that it takes to carry that out."""

    run: Run
    standing: Standing
    answer: Moves | Stays
    sources: dict[str, Attempt]
    converted: Converted | None = None

    @property
    def outcome(self) -> Outcome:
        stood = self.standing
        return Outcome(self.run.pk, stood.version, stood.step, stood.state, self.answer)


# --- which runs -------------------------------------------------------------------------------


def earlier(runs: QuerySet[Run], into: Workflow) -> QuerySet[Run]:
    """Those of `runs` that are unfinished and of an earlier version."""
    return runs.filter(workflow=into.name, version__lt=into.version, finished_at__isnull=True)


def batches(runs: QuerySet[Run]) -> Iterator[list[Run]]:
    """Walk `runs` by their keys, version after version."""
    versions = list(runs.order_by("version").values_list("version", flat=True).distinct())
    for version in versions:
        of_version = with_parents(runs.filter(version=version)).order_by("pk")
        page = list(of_version[:BATCH])
        while page:
            yield page
            page = list(of_version.filter(pk__gt=page[-1].pk)[:BATCH])


# --- planning ---------------------------------------------------------------------------------


def planned(runs: Sequence[Run], into: Workflow) -> list[Plan]:
    """Plan runs of one workflow, which were read `with_parents`."""
    standings = standings_of(runs, {into.name: into}, database_now())
    placed = [(run, standings[run.pk], place(standings[run.pk], into)) for run in runs]
    moving = [run.pk for run, _, answer in placed if isinstance(answer, Moves)]
    sources = sources_of(moving)
    return [
        converted(Plan(run, standing, answer, sources.get(run.pk, {})), into)
        for run, standing, answer in placed
    ]


def sources_of(runs: Sequence[UUID]) -> dict[UUID, dict[str, Attempt]]:
    """The latest output of each step of each of `runs`."""
    rows = Attempt.objects.outputs().filter(run__in=runs).order_by("run_id", "step", "-visit")
    found: dict[UUID, dict[str, Attempt]] = {}
    for row in rows.distinct("run_id", "step"):
        found.setdefault(row.run_id, {})[row.step] = row
    return found


def converted(plan: Plan, into: Workflow) -> Plan:
    """Read the outputs of a run that moves, and make them those of the later version."""
    if isinstance(plan.answer, Stays):
        return plan
    values: dict[str, Json] = {}
    for each in plan.answer.carried:
        try:
            values[each.source] = read_output(plan.sources[each.source])
        except OutputError as error:
            return replace(plan, answer=staying.output_unreadable(each.source, error))
    migration = into.migration_from(plan.run.version)
    assert migration is not None, "it says that the run moves"
    done = convert(
        plan.answer,
        migration,
        into,
        values,
        plan.run.input,
        output_limit=settings.ROMULUS_MAX_OUTPUT_BYTES,
        input_limit=settings.ROMULUS_MAX_INPUT_BYTES,
    )
    if isinstance(done, Stays):
        return replace(plan, answer=done)
    return replace(plan, converted=done)
