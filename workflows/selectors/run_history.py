"""The rows that a run page is drawn from: a fixed number of queries, and never more than it shows.

A run that loops, or is tried for days, has more attempts than a page shows. The newest are read as
they are; of the rest the database counts what there is.
"""

from __future__ import annotations

import functools
import operator
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Count, Max, Min, Q, QuerySet

from workflows.core.definitions import Workflow
from workflows.core.states import AttemptState, OutputForm, RunState
from workflows.models import Attempt, Run, Worker
from workflows.selectors.run_outputs import late_outputs, latest_outputs
from workflows.selectors.run_steps import StepSeen, line_of, workflow_of
from workflows.selectors.workers import named

ATTEMPTS_SHOWN = 200

WENT_QUIET = (AttemptState.LOST, AttemptState.SUPERSEDED)


@dataclass(frozen=True)
class Totals:
    """What became of one step, over all its visits and ended tries."""

    tries: int = 0
    visits: int = 0
    passed: int = 0  # times that it left an output
    lost: int = 0  # its worker went quiet; also those that were refused later
    refused: int = 0
    began_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True)
class BranchRun:
    """The run of one branch of a parallel group, and what became of its steps."""

    run: Run
    totals: Mapping[str, Totals]
    attempts: Sequence[Attempt]
    chosen: Mapping[str, str]


@dataclass(frozen=True)
class History:
    """A run and what became of it.

    Attributes:
        steps: those that this run can pass.
        workflow: None where this process does not have the run's version.
        attempts: the newest, by ascending fence; the last one may be under way.
        outputs: the latest of each step, which later ones read, and what came too late.
        totals: by step, over all ended attempts.
        chosen: by branch step, the name that it returned last.
        branches: by parallel group, the runs of its latest visit, by their place.
    """

    run: Run
    steps: Sequence[StepSeen]
    workflow: Workflow | None
    attempts: Sequence[Attempt]
    outputs: Sequence[Attempt]
    totals: Mapping[str, Totals]
    workers: Mapping[UUID, str]
    chosen: Mapping[str, str] = field(default_factory=dict)
    branches: Mapping[str, Mapping[int, BranchRun]] = field(default_factory=dict)

    def worker(self, attempt: Attempt) -> str:
        return self.workers.get(attempt.worker, "")

    def total(self, step: str) -> Totals:
        return self.totals.get(step, Totals())

    @cached_property
    def by_step(self) -> Mapping[str, list[Attempt]]:
        found: dict[str, list[Attempt]] = defaultdict(list)
        for attempt in self.attempts:
            found[attempt.step].append(attempt)
        return found

    def of_step(self, name: str) -> list[Attempt]:
        return self.by_step.get(name, [])

    @property
    def refused(self) -> int:
        return refused_in(self.totals)

    @property
    def lost(self) -> int:
        return sum(total.lost for total in self.totals.values())

    @property
    def tries(self) -> int:
        """All attempts that there were, the present one included."""
        ended = sum(total.tries for total in self.totals.values())
        return ended + (self.run.state == RunState.RUNNING)

    @cached_property
    def ahead(self) -> frozenset[str]:
        """The steps that may still come or, after a failure or cancellation, might have."""
        return steps_ahead(self.run, self.workflow)


def refused_in(totals: Mapping[str, Totals]) -> int:
    return sum(total.refused for total in totals.values())


def steps_ahead(run: Run, workflow: Workflow | None) -> frozenset[str]:
    """The steps that can follow the present one, however far; none of a completed run."""
    if run.state == RunState.COMPLETED or workflow is None or run.step not in workflow.steps:
        return frozenset()
    return frozenset(step.name for step in workflow.later(run.step))


def left_output(attempt: Attempt) -> bool:
    """Whether later steps can read what the attempt left."""
    return attempt.state == AttemptState.COMMITTED and attempt.output_form is not None


@dataclass(frozen=True)
class Asked:
    """What a history is made of, still to be read: `rows` are the lists, in their order."""

    run: Run
    workflow: Workflow | None
    branch_runs: Sequence[Run]
    before: datetime | None
    rows: tuple[QuerySet[Any], ...]


def history_rows(run: Run, *, payloads: bool, before: datetime | None = None) -> Asked:
    """One query where the run has branches, else none.

    Args:
        before: the newest of the attempts that began before that are read, too.
    """
    workflow = workflow_of(run)
    branch_runs = branch_runs_of(run, workflow)
    runs = [run.pk, *(each.pk for each in branch_runs)]
    newest = Attempt.objects.filter(run=run).order_by("-fence")
    of_branches = Attempt.objects.filter(run__in=runs[1:]).order_by("-claimed_at")
    past = newest.filter(claimed_at__lt=before) if before else newest.none()
    seen = [rows[:ATTEMPTS_SHOWN] for rows in (newest, of_branches, past)]
    rows = (
        totals_in(runs),
        *(each.defer("output") for each in seen),
        latest_outputs(run, payloads=payloads),
        late_outputs(run, payloads=payloads),
        chosen_in(runs, workflow),
        Worker.objects.filter(
            Q(pk=run.lease_owner)
            | functools.reduce(operator.or_, (Q(pk__in=each.values("worker")) for each in seen))
        ),
    )
    return Asked(run, workflow, branch_runs, before, rows)


def history_of(asked: Asked, lists: Sequence[list[Any]]) -> tuple[History, History]:
    """The history that `lists`, the rows of `asked`, tell; and as it was before that moment."""
    run, workflow, branch_runs = asked.run, asked.workflow, asked.branch_runs
    counted, newest, of_branches, past, outputs, late, chosen_last, known = lists
    totals = totals_of(counted)
    attempts = with_present(run, newest[::-1])
    theirs = attempts_of_branches(branch_runs, of_branches[::-1])
    chosen: dict[UUID, dict[str, str]] = defaultdict(dict)
    for run_id, step, output in chosen_last:
        chosen[run_id][step] = str(output)
    branches: dict[str, dict[int, BranchRun]] = defaultdict(dict)
    for each in branch_runs:
        branches[each.parent_step][each.parent_index or 0] = BranchRun(
            each, totals[each.pk], theirs[each.pk], chosen[each.pk]
        )
    seen = (*attempts, *past, *(attempt for their in theirs.values() for attempt in their))
    workers = {run.lease_owner, *(attempt.worker for attempt in seen)} - {None}
    history = History(
        run=run,
        steps=steps_of(run, workflow, totals[run.pk]),
        workflow=workflow,
        attempts=attempts,
        outputs=sorted([*outputs, *late], key=lambda attempt: attempt.fence),
        totals=totals[run.pk],
        workers=named((worker for worker in workers if worker), known),
        chosen=chosen[run.pk],
        branches=branches,
    )
    return history, replace(history, attempts=with_present(run, past[::-1], asked.before))


def steps_of(
    run: Run, workflow: Workflow | None, totals: Mapping[str, Totals]
) -> Sequence[StepSeen]:
    """The steps that the run can pass; where the version is not known here, those it has seen."""
    if workflow is None:
        return [StepSeen(name, name) for name in dict.fromkeys([*totals, run.step])]
    steps = [workflow.steps[name] for name in line_of(workflow, run.step)]
    return [StepSeen(step.name, step.title, step.kind) for step in steps]


# --- attempts ---------------------------------------------------------------------------------


def with_present(
    run: Run, attempts: list[Attempt], before: datetime | None = None
) -> list[Attempt]:
    """The newest ended attempts, by ascending fence, and the one that is under way, if it began
    before `before`."""
    present = present_attempt(run)
    if present is None or (before is not None and present.claimed_at >= before):
        return attempts
    return [*attempts, present]


def present_attempt(run: Run) -> Attempt | None:
    """The attempt that is under way, which has no row of its own yet; None when none is."""
    if run.state != RunState.RUNNING:
        return None
    assert run.lease_owner is not None  # the table's own constraint
    assert run.claimed_at is not None  # written by every claim
    return Attempt(
        id=run.attempt,
        run=run,
        step=run.step,
        visit=run.visit,
        number=run.tries,
        worker=run.lease_owner,
        fence=run.fence,
        claimed_at=run.claimed_at,
        state=AttemptState.RUNNING,
    )


def totals_in(runs: Sequence[UUID]) -> QuerySet[Any, Any]:
    """The ended attempts of each of `runs` counted by step, in the order in which they began."""
    committed = Q(state=AttemptState.COMMITTED, output_form__isnull=False)
    return (
        Attempt.objects.filter(run__in=runs)
        .values("run_id", "step")
        .annotate(
            tries=Count("pk"),
            visits=Max("visit"),
            passed=Count("pk", filter=committed),
            lost=Count("pk", filter=Q(state__in=WENT_QUIET)),
            refused=Count("pk", filter=Q(state=AttemptState.SUPERSEDED)),
            began_at=Min("claimed_at"),
            ended_at=Max("ended_at"),
        )
        .order_by("began_at")
    )


def totals_of(counted: Iterable[dict[str, Any]]) -> Mapping[UUID, Mapping[str, Totals]]:
    totals: dict[UUID, dict[str, Totals]] = defaultdict(dict)
    for row in counted:
        totals[row["run_id"]][row["step"]] = Totals(
            *(row["tries"], row["visits"], row["passed"], row["lost"], row["refused"]),
            *(row["began_at"], row["ended_at"]),
        )
    return totals


# --- branches ---------------------------------------------------------------------------------


def branch_runs_of(run: Run, workflow: Workflow | None) -> list[Run]:
    """The runs of the branches of the run's parallel groups, each group at its latest visit."""
    groups = steps_of_kind(workflow, "parallel")
    if not groups or workflow is None or workflow.track_of(run.step) is not None:
        return []
    children = Run.objects.filter(parent=run, parent_step__in=groups).defer("input")
    places = ("parent_step", "parent_index")
    return list(children.order_by(*places, "-parent_visit").distinct(*places))


def attempts_of_branches(
    runs: Sequence[Run], attempts: Iterable[Attempt]
) -> Mapping[UUID, list[Attempt]]:
    found: dict[UUID, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        found[attempt.run_id].append(attempt)
    for run in runs:
        present = present_attempt(run)
        if present is not None:
            found[run.pk].append(present)
    return found


def chosen_in(runs: Sequence[UUID], workflow: Workflow | None) -> QuerySet[Attempt, Any]:
    """Which way each branch step went last, as run, step and name: that is no payload."""
    steps = steps_of_kind(workflow, "branch")
    outputs = Attempt.objects.outputs().filter(run__in=runs, step__in=steps)
    last = outputs.filter(output_form=OutputForm.PLAIN, purged_at=None)
    places = ("run_id", "step")
    last = last.order_by(*places, "-visit").distinct(*places)
    return last.values_list("run_id", "step", "output")


def steps_of_kind(workflow: Workflow | None, kind: str) -> Collection[str]:
    steps = workflow.steps.values() if workflow else ()
    return [step.name for step in steps if step.kind == kind]
