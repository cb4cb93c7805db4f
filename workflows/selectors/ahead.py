"""What comes after a step of a run, as the definitions and the runs beside it have it."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from workflows.core.ahead import Ahead, Follows, Waiting, follows
from workflows.core.joining import JoinPolicy
from workflows.core.states import FINAL_RUN_STATES, RunState
from workflows.models import Run
from workflows.selectors.run_steps import workflow_of
from workflows.selectors.words import heading

BRANCHES_NAMED = 8
RUNS_ABOVE = 8  # that are named, however deep runs have started others
# Up from one run as long as each waits at the step where it started the one below.
ABOVE = """
    (WITH RECURSIVE above AS (
        SELECT id, parent_id, parent_step, parent_visit, 0 AS height
        FROM workflows_run WHERE id = %s
        UNION ALL
        SELECT up.id, up.parent_id, up.parent_step, up.parent_visit, above.height + 1
        FROM above JOIN workflows_run up ON up.id = above.parent_id
            AND up.step = above.parent_step AND up.visit = above.parent_visit
        WHERE above.height < %s AND up.finished_at IS NULL
    ) SELECT id FROM above WHERE height > 0)
"""
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


def waiting_above(run: Run) -> QuerySet[Run]:
    """The runs that wait in turn for the end of the one that started `run`."""
    if run.parent_id is None:
        return Run.objects.none()
    above = Run.objects.filter(pk__in=RawSQL(ABOVE, [run.parent_id, RUNS_ABOVE]))  # noqa: S611 (a constant)
    return above.only("workflow", "step", "start_key", "labels", "parent", "parent_index")


def ahead_of(run: Run, step: str, branches: Sequence[Run], above: Sequence[Run]) -> Ahead | None:
    """What comes after `step` of `run`; None where its version, or the step, is not known here.

    Args:
        run: with its parent, if it has one.
        branches, above: as `branches_beside` and `waiting_above` have them.
    """
    workflow = workflow_of(run)
    if workflow is None or step not in workflow.steps:
        return None
    of_branch = workflow.steps[step].kind == "branch"
    after = Follows(None, tuple(workflow.later(step))) if of_branch else follows(workflow, step)
    return Ahead(after, waiting_for(run, branches, above))


def waiting_for(run: Run, branches: Sequence[Run], above: Sequence[Run]) -> Waiting | None:
    """The run that waits for the end of `run`, while it does."""
    parent = run.parent
    if parent is None or parent.state in FINAL_RUN_STATES:
        return None
    if (parent.step, parent.visit) != (run.parent_step, run.parent_visit):
        return None  # it has gone on, and left this one to itself
    workflow = workflow_of(parent)
    step = workflow.steps.get(parent.step) if workflow else None
    if workflow is None or step is None:
        return Waiting(heading(parent), parent.step, above=upwards(parent, above))
    join = JoinPolicy(step.children.join) if step.children else JoinPolicy.EVERY
    return Waiting(
        name=heading(parent),
        step=step.name,
        join=join,
        holds=step.on_failure == "hold",
        follows=follows(workflow, step.name),
        beside=tuple(said_of(each) for each in branches if each.state not in FINAL_RUN_STATES),
        broken=any(each.state in FINAL_RUN_STATES for each in branches),
        above=upwards(parent, above),
    )


def upwards(run: Run, above: Sequence[Run]) -> tuple[tuple[str, str], ...]:
    """The line of runs `above` this one, by name and step."""
    by_id = {each.pk: each for each in above}
    line: list[tuple[str, str]] = []
    while run.parent_id in by_id:
        run = by_id[run.parent_id]
        line.append((heading(run), run.step))
    return tuple(line)


def said_of(branch: Run) -> str:
    return f"{branch.step} {AT_REST.get(RunState(branch.state), 'is at work')}"
