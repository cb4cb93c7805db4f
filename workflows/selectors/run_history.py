"""The rows that a run page is drawn from: a fixed number of queries, and never more than it shows.

A run that loops, or is tried for days, has more attempts than a page shows. The newest are read as
they are; of the rest the database counts what there is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from uuid import UUID

from django.db.models import (
    Count,
    Max,
    Min,
    Q,
)

from workflows.core.definitions import Workflow
from workflows.core.states import AttemptState, OutputForm, RunState
from workflows.models import Attempt, Run
from workflows.selectors.run_outputs import outputs_of
from workflows.selectors.run_steps import StepSeen, line_of, workflow_of
from workflows.selectors.workers import worker_names

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


def history_of(run: Run, *, payloads: bool) -> History:
    workflow = workflow_of(run)
    branch_runs = branch_runs_of(run, workflow)
    runs = [run, *branch_runs]
    totals = totals_of(runs)
    attempts = attempts_of(run)
    theirs = attempts_of_branches(branch_runs)
    chosen = chosen_in(runs, workflow)
    branches: dict[str, dict[int, BranchRun]] = defaultdict(dict)
    for each in branch_runs:
        branches[each.parent_step][each.parent_index or 0] = BranchRun(
            each, totals[each.pk], theirs[each.pk], chosen[each.pk]
        )
    seen = (*attempts, *(attempt for their in theirs.values() for attempt in their))
    return History(
        run=run,
        steps=steps_of(run, workflow, totals[run.pk]),
        workflow=workflow,
        attempts=attempts,
        outputs=outputs_of(run, refused=refused_in(totals[run.pk]), payloads=payloads),
        totals=totals[run.pk],
        workers=worker_names({run.lease_owner, *(attempt.worker for attempt in seen)}),
        chosen=chosen[run.pk],
        branches=branches,
    )


def past_of(history: History, before: datetime) -> History:
    """The same run, with the newest of the attempts that began before `before`."""
    attempts = attempts_of(history.run, before)
    workers = worker_names({attempt.worker for attempt in attempts})
    return replace(history, attempts=attempts, workers=workers)


def steps_of(
    run: Run, workflow: Workflow | None, totals: Mapping[str, Totals]
) -> Sequence[StepSeen]:
    """The steps that the run can pass; where the version is not known here, those it has seen."""
    if workflow is None:
        return [StepSeen(name, name) for name in dict.fromkeys([*totals, run.step])]
    steps = [workflow.steps[name] for name in line_of(workflow, run.step)]
    return [StepSeen(step.name, step.title, step.kind) for step in steps]


# --- attempts ---------------------------------------------------------------------------------


def attempts_of(run: Run, before: datetime | None = None) -> list[Attempt]:
    """The newest attempts, or those that began before `before`, by ascending fence."""
    attempts = Attempt.objects.filter(run=run).defer("output")
    if before is not None:
        attempts = attempts.filter(claimed_at__lt=before)
    newest = list(attempts.order_by("-fence")[:ATTEMPTS_SHOWN])[::-1]
    present = present_attempt(run)
    if present is not None and (before is None or present.claimed_at < before):
        newest.append(present)
    return newest


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


def totals_of(runs: Sequence[Run]) -> Mapping[UUID, Mapping[str, Totals]]:
    """Count the ended attempts of each of `runs` by step, in the order in which they began."""
    committed = Q(state=AttemptState.COMMITTED, output_form__isnull=False)
    counted = (
        Attempt.objects.filter(run__in=[run.pk for run in runs])
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


def attempts_of_branches(runs: Sequence[Run]) -> Mapping[UUID, list[Attempt]]:
    found: dict[UUID, list[Attempt]] = defaultdict(list)
    if not runs:
        return found
    attempts = Attempt.objects.filter(run__in=[run.pk for run in runs]).defer("output")
    for attempt in list(attempts.order_by("-claimed_at")[:ATTEMPTS_SHOWN])[::-1]:
        found[attempt.run_id].append(attempt)
    for run in runs:
        present = present_attempt(run)
        if present is not None:
            found[run.pk].append(present)
    return found


def chosen_in(runs: Sequence[Run], workflow: Workflow | None) -> Mapping[UUID, Mapping[str, str]]:
    """Which way each branch step went last: the name of a step is no payload."""
    found: dict[UUID, dict[str, str]] = defaultdict(dict)
    steps = steps_of_kind(workflow, "branch")
    if not steps:
        return found
    outputs = Attempt.objects.outputs().filter(run__in=[run.pk for run in runs], step__in=steps)
    last = outputs.filter(output_form=OutputForm.PLAIN, purged_at=None)
    places = ("run_id", "step")
    for run, step, output in (
        last.order_by(*places, "-visit").distinct(*places).values_list("run_id", "step", "output")
    ):
        found[run][step] = str(output)
    return found


def steps_of_kind(workflow: Workflow | None, kind: str) -> Collection[str]:
    steps = workflow.steps.values() if workflow else ()
    return [step.name for step in steps if step.kind == kind]
