"""The way of each run through its workflow's graph, told by what was committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from romulus_site.torture.record import Record
from workflows.core.definitions import Workflow
from workflows.core.states import AttemptState, RunState
from workflows.models import Attempt, Run
from workflows.registry import registry

Position = tuple[str, int]


def walk(record: Record) -> Iterator[str]:
    for run in record.runs:
        yield from walk_of(record, run)


def walk_of(record: Record, run: Run) -> Iterator[str]:
    """Go the way that the commits tell, step by step; every attempt has to be where it leads."""
    workflow = registry.get(run.workflow, run.version)
    last: Position = (first_step(record, run, workflow), 1)
    at: Position | None = last
    passed: Counter[str] = Counter()
    for attempt in record.attempts_of.get(run.pk, []):
        here = (attempt.step, attempt.visit)
        if here != at:
            yield f"{record.name(run)}: attempt {attempt.fence} is at {here}, the run was at {at}"
            return
        if not is_passage(attempt):
            continue
        passed[attempt.step] += 1
        last = here
        following = next_step(record, workflow, attempt)
        at = (following, passed[following] + 1) if following else None
    yield from rests_there(record, run, at, last)


def rests_there(record: Record, run: Run, at: Position | None, last: Position) -> Iterator[str]:
    """The run's own position is where its commits have led; at the end it stays at the last."""
    stands = (run.step, run.visit)
    if stands != (at or last):
        yield f"{record.name(run)} stands at {stands}, and its commits led to {at or last}"
    if (at is None) != (run.state == RunState.COMPLETED) and not (
        at is None and run.state == RunState.CANCELLED
    ):
        where = "past its last step" if at is None else f"at {at}"
        yield f"{record.name(run)} is {run.state}, and its commits led it {where}"


def is_passage(attempt: Attempt) -> bool:
    return attempt.state == AttemptState.COMMITTED and attempt.output_form is not None


def first_step(record: Record, run: Run, workflow: Workflow) -> str:
    """Where it began: a branch of a parallel group begins inside the workflow."""
    parent = record.run_of.get(run.parent_id) if run.parent_id else None
    if parent is not None and parent.workflow == run.workflow:
        return workflow.steps[run.parent_step].branches[run.parent_index or 0][0]
    return workflow.first.name


def next_step(record: Record, workflow: Workflow, attempt: Attempt) -> str:
    """The step that its commit leads to; empty for the end."""
    step = workflow.steps[attempt.step]
    if step.kind == "branch":
        following = workflow.target(step.name, record.outputs.get(attempt.pk))
    elif step.wait is not None and record.outputs.get(attempt.pk) is None:
        # Its deadline came first.
        following = workflow.steps[step.wait.target]
    else:
        following = workflow.after(step.name)
    return following.name if following else ""
