"""What comes after a step of a run, as the definitions and the runs beside it have it."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import QuerySet

from workflows.core.ahead import Ahead, Follows, Waiting, follows
from workflows.core.joining import JoinPolicy
from workflows.core.states import FINAL_RUN_STATES, RunState
from workflows.models import Run
from workflows.selectors.run_steps import workflow_of
from workflows.selectors.words import heading

BRANCHES_NAMED = 8
AT_REST = {RunState.HELD: "is held", RunState.WAITING: "waits"}


def branches_beside(run: Run) -> QuerySet[Run]:
    """The other branches of the group that `run` is a branch of, but for those that are completed;
    none where it is no branch."""
    workflow = workflow_of(run)
    if run.parent_id is None or workflow is None or workflow.track_of(run.step) is None:
        return Run.objects.none()
    beside = Run.objects.filter(
        parent=run.parent_id, parent_step=run.parent_step, parent_visit=run.parent_visit
    )
    beside = beside.exclude(pk=run.pk).exclude(state=RunState.COMPLETED)
    return beside.only("step", "state").order_by("parent_index")[:BRANCHES_NAMED]


def ahead_of(run: Run, step: str, branches: Sequence[Run]) -> Ahead | None:
    """What comes after `step` of `run`; None where its version, or the step, is not known here.

    Args:
        run: with its parent, if it has one.
        branches: as `branches_beside` has them.
    """
    workflow = workflow_of(run)
    if workflow is None or step not in workflow.steps:
        return None
    of_branch = workflow.steps[step].kind == "branch"
    after = Follows(None, tuple(workflow.later(step))) if of_branch else follows(workflow, step)
    return Ahead(after, waiting_for(run, branches))


def waiting_for(run: Run, branches: Sequence[Run]) -> Waiting | None:
    """The run that waits for the end of `run`, while it does."""
    parent = run.parent
    if parent is None or parent.state in FINAL_RUN_STATES:
        return None
    if (parent.step, parent.visit) != (run.parent_step, run.parent_visit):
        return None  # it has gone on, and left this one to itself
    workflow = workflow_of(parent)
    step = workflow.steps.get(parent.step) if workflow else None
    if workflow is None or step is None:
        return Waiting(heading(parent), parent.step)
    join = JoinPolicy(step.children.join) if step.children else JoinPolicy.EVERY
    return Waiting(
        name=heading(parent),
        step=step.name,
        join=join,
        holds=step.on_failure == "hold",
        follows=follows(workflow, step.name),
        beside=tuple(said_of(each) for each in branches if each.state not in FINAL_RUN_STATES),
        broken=any(each.state in FINAL_RUN_STATES for each in branches),
    )


def said_of(branch: Run) -> str:
    return f"{branch.step} {AT_REST.get(RunState(branch.state), 'is at work')}"
