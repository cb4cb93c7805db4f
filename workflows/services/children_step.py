"""The `children` and `parallel` kinds: start runs beside this one, and go on when they have ended.

A branch of a parallel group is a child run of the same workflow and version that begins at the
branch's first step and ends with its last: it has its own position, lease and holds.
"""

from __future__ import annotations

from functools import partial

from workflows.core.definitions import Child, ChildEnd, Step
from workflows.core.errors import UsageError
from workflows.core.joining import Ends, Joined, join, may_begin, waiting_for
from workflows.core.states import FINAL_RUN_STATES, RunState
from workflows.core.values import restored, to_json
from workflows.models import Run
from workflows.services import hints
from workflows.services.children import (
    QUEUED,
    ask_to_end,
    at_once_of,
    children_of,
    ends_at,
    policy_of,
)
from workflows.services.claims import Also, Claim
from workflows.services.failures import after_failure, call
from workflows.services.kinds import Done, Park, Result, fail_or_hold
from workflows.services.outputs import is_sealed, read_output
from workflows.services.results import last_outputs
from workflows.services.run_view import RunView
from workflows.services.runs import prepared, store

MOST_CHILDREN = 10_000
OUTPUT_LIMIT = 1 << 30  # what is listed was checked when it was stored


def execute_children(claim: Claim, view: RunView) -> Result:
    """Start the runs that the author's function lists, once; later, join them."""
    if children_of(claim.run, claim.step.name, claim.visit).exists():
        return joined(claim)
    value, problem = call(claim, view)
    if problem is not None:
        return problem
    try:
        children = [run_of(claim, place, child) for place, child in enumerate(listed(claim, value))]
    except UsageError as error:
        return after_failure(claim, error)
    return start_and_wait(claim, children)


def execute_parallel(claim: Claim, _view: RunView) -> Result:
    """Start a run for each branch, once; later, join them."""
    if children_of(claim.run, claim.step.name, claim.visit).exists():
        return joined(claim)
    return start_and_wait(
        claim,
        [
            branch_of(claim, place, claim.workflow.steps[branch[0]])
            for place, branch in enumerate(claim.step.branches)
        ],
    )


def listed(claim: Claim, value: object) -> list[Child]:
    if not isinstance(value, list) or not all(isinstance(child, Child) for child in value):
        raise UsageError(f"step {claim.step.name} must return a list of Child")
    if len(value) > MOST_CHILDREN:
        raise UsageError(
            f"step {claim.step.name} lists {len(value):,} runs: {MOST_CHILDREN:,} at most"
        )
    return value


def run_of(claim: Claim, place: int, child: Child) -> Run:
    run = prepared(
        child.workflow, child.input, tenant=claim.tenant, version=child.version, labels=child.labels
    )
    return placed(claim, place, run)


def branch_of(claim: Claim, place: int, first: Step) -> Run:
    run = Run(
        workflow=claim.workflow.name,
        version=claim.workflow.version,
        tenant_id=claim.tenant,
        step=first.name,
        input=claim.input,
    )
    return placed(claim, place, run)


def placed(claim: Claim, place: int, run: Run) -> Run:
    run.parent_id = claim.run
    run.parent_step, run.parent_visit, run.parent_index = claim.step.name, claim.visit, place
    return run


def start_and_wait(claim: Claim, children: list[Run]) -> Result:
    if not children:
        return Done([])
    begin = may_begin(Ends(queued=len(children)), at_once_of(claim.step))
    for child in children[begin:]:
        child.state, child.failure = RunState.WAITING, QUEUED

    def started() -> None:
        store(children)
        hints.runs_are_ready([child.pk for child in children[:begin]])

    ends = Ends(at_work=begin, queued=len(children) - begin)
    return Park("children", waiting_for(ends), also=started)


def joined(claim: Claim) -> Result:
    """Look at the runs that were started: go on, fail, or wait on."""
    step = claim.step
    ends = ends_at(claim.run, step.name, claim.visit)
    answer = join(policy_of(step), ends)
    if answer is Joined.NOT_YET:
        return Park("children", waiting_for(ends))
    also = partial(leave, claim)
    if answer is Joined.GO_ON:
        return listed_ends(claim, also)
    failed = f"{ends.failed:,} of {ends.total:,} runs"
    message = f"{failed} that step {step.name} started did not complete."
    return fail_or_hold(claim, "children_failed", message, also)


def leave(claim: Claim) -> None:
    """What is left over is asked to end, unless the author lets it run."""
    step = claim.step
    if step.children is None or step.children.leftover == "cancel":
        ask_to_end(
            children_of(claim.run, step.name, claim.visit), by=f"step {step.name} of its parent"
        )


def listed_ends(claim: Claim, also: Also) -> Done:
    """Each end with its result. What was encrypted where it came from is so here, too."""
    children = list(
        children_of(claim.run, claim.step.name, claim.visit)
        .order_by("parent_index")
        .only("workflow", "state", "failure")
    )
    last = last_outputs([child.pk for child in children if child.state == RunState.COMPLETED])
    ends = [
        ChildEnd(
            run=child.pk,
            workflow=child.workflow,
            state=child.state,
            result=restored(read_output(last[child.pk])) if child.pk in last else None,
            failure=(child.failure or {}).get("message", "")
            if child.state in FINAL_RUN_STATES
            else "",
        )
        for child in children
    ]
    value = to_json(ends, list[ChildEnd], limit=OUTPUT_LIMIT, what=f"ends of {claim.step.name}")
    return Done(value, also=also, sensitive=any(map(is_sealed, last.values())))
