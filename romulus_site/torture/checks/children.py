"""Runs that runs have started: once each, their ends seen, and joined as they should be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from uuid import UUID

from romulus_site.torture import answers
from romulus_site.torture.checks.walks import is_passage
from romulus_site.torture.record import Record
from workflows.core.definitions import Step
from workflows.core.joining import Joined, JoinPolicy, ends_of, join
from workflows.core.states import FINAL_RUN_STATES, AttemptState, RunState
from workflows.models import Run
from workflows.registry import registry

Place = tuple[UUID, str, int]
"""A parent, and the step and visit at which it started runs."""


def once(record: Record) -> Iterator[str]:
    for (parent, step, visit), children in by_place(record).items():
        places = sorted(child.parent_index or 0 for child in children)
        run = record.run_of.get(parent)
        if run is None:
            yield f"{len(children)} runs have the parent {parent}, which does not exist"
            continue
        wanted = number_of_children(run, step_of(run, step))
        if places != list(range(wanted)):
            yield (
                f"{record.name(run)}: step {step}, visit {visit}, was to start {wanted} runs, and "
                f"there are those of the places {places}"
            )


def by_place(record: Record) -> dict[Place, list[Run]]:
    groups: dict[Place, list[Run]] = defaultdict(list)
    for run in record.runs:
        if run.parent_id is not None:
            groups[run.parent_id, run.parent_step, run.parent_visit or 0].append(run)
    return groups


def step_of(run: Run, step: str) -> Step:
    return registry.get(run.workflow, run.version).steps[step]


def number_of_children(run: Run, step: Step) -> int:
    if step.kind == "parallel":
        return len(step.branches)
    return len(answers.leaves(run.input, broken=False))


def seen(record: Record) -> Iterator[str]:
    for run in record.runs:
        over = RunState(run.state) in FINAL_RUN_STATES
        if run.parent_id is not None and over and run.end_seen_at is None:
            yield f"{record.name(run)} is {run.state}, and its parent has not seen it"


def joins(record: Record) -> Iterator[str]:
    """Past the step, or failed at it, only when the join said so; it does not wait on when it did.

    Children that were asked to end at the join count as unfinished then.
    """
    for (parent, name, visit), children in by_place(record).items():
        run = record.run_of.get(parent)
        if run is None:
            continue
        step = step_of(run, name)
        policy = JoinPolicy(step.children.join) if step.children else JoinPolicy.EVERY
        said = f"{record.name(run)}: step {name}, visit {visit}"
        states = sorted(child.state for child in children)
        answer = joined(policy, children)
        if is_past(record, run, name, visit) and answer is Joined.FAIL:
            yield f"{said} was passed, and its children are {states}"
        if is_past(record, run, name, visit) and answer is Joined.NOT_YET:
            yield f"{said} was passed too early: its children are {states}"
        if failed_at(record, run, name, visit) and answer is not Joined.FAIL:
            yield f"{said} failed, and its children are {states}"
        waits = run.state == RunState.WAITING and (run.step, run.visit) == (name, visit)
        if waits and answer is not Joined.NOT_YET:
            yield f"{said} waits, and its children are {states}"


def joined(policy: JoinPolicy, children: list[Run]) -> Joined:
    counts: dict[tuple[str, bool], int] = defaultdict(int)
    for child in children:
        counts[child.state, False] += 1
    return join(policy, ends_of(counts))


def is_past(record: Record, run: Run, step: str, visit: int) -> bool:
    return any(
        (attempt.step, attempt.visit) == (step, visit) and is_passage(attempt)
        for attempt in record.attempts_of.get(run.pk, [])
    )


def failed_at(record: Record, run: Run, step: str, visit: int) -> bool:
    return run.state == RunState.FAILED and any(
        (attempt.step, attempt.visit) == (step, visit) and attempt.state == AttemptState.FAILED
        for attempt in record.attempts_of.get(run.pk, [])
    )
