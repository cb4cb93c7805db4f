"""Holding a run: claims, workers that go quiet, and steps that do what a test says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from tests.factories import tenant
from workflows.core.definitions import Workflow
from workflows.core.retry import RetryPolicy
from workflows.models import Run, Worker
from workflows.registry import registry
from workflows.services import run_holds
from workflows.services.claims import Also, Claim, claim_run, commit_step, nothing
from workflows.services.executor import take_step
from workflows.services.outputs import keep_output
from workflows.services.ownership import Keeper
from workflows.services.run_view import RunView
from workflows.services.runs import start
from workflows.sql.statement import FIRST_MOMENT, MICROSECOND, MOMENT


def worker() -> UUID:
    """The ID of a worker that does nothing by itself."""
    return Worker.objects.create(host="here", pid=1, workflows=[]).pk


def claimed(run: Run) -> Claim:
    claim = claim_run(run.pk, worker())
    assert claim is not None
    return claim


def moment(claim: Claim) -> datetime:
    """When it was made."""
    return FIRST_MOMENT + MOMENT.unpack(claim.claimed_at)[0] * MICROSECOND


def claim_at_write(run: Run) -> Claim:
    """The claim of a worker that has come to the write step of `run`."""
    keeper = Keeper()
    claim = claim_run(run.pk, keeper.worker)
    while claim is not None and claim.step.kind != "write":
        claim = take_step(claim, keeper)
    assert claim is not None
    return claim


def commit(claim: Claim, value: Any, *, go_on: bool = True, also: Also = nothing) -> Claim | None:
    """Commit `value` as the step's output, and go to the step that is written after it."""
    kept = keep_output(claim.step, value, run=claim.run, attempt=claim.attempt)
    following = claim.workflow.after(claim.step.name)
    return commit_step(claim, kept, following, go_on=go_on, also=also)


def expire_lease(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(lease_expires_at=Now() - timedelta(seconds=1))


def come_due(run: Run) -> None:
    """Let the rest of a run that is ready be over."""
    Run.objects.filter(pk=run.pk).update(ready_at=Now())


def lose_worker(run: Run) -> None:
    """Let a worker take `run` and go quiet."""
    claimed(run)
    expire_lease(run)


def attempts(run: Run) -> list[tuple[str, int, str]]:
    """Every attempt, the first one first; that which is under way is still columns of the run."""
    ended = list(run.attempts.order_by("fence").values_list("step", "number", "state"))
    running = Run.objects.filter(pk=run.pk, state="running").values_list("step", "tries")
    return ended + [(step, tries, "running") for step, tries in running]


@contextmanager
def opening_holds(opener: Callable[[Claim, str, str], None]) -> Iterator[None]:
    """Let `opener` keep a hold for each run that is held, until the block is left."""
    (before,) = run_holds._openers
    run_holds.register_hold_opener(opener)
    try:
        yield
    finally:
        run_holds.register_hold_opener(before)


# --- steps that do what a test says -----------------------------------------------------------

# What the step `act` does in a test, by name: a run's input names it.
acts: dict[str, Callable[[RunView], Any]] = {}


def acting(name: str, **options: Any) -> Workflow:
    """A workflow whose first step does what the test says, and whose second gives its output."""
    workflow = Workflow(name)

    @workflow.step(**options)
    def act(run: RunView) -> Any:
        return acts[run.input["act"]](run)

    @workflow.step()
    def after(run: RunView) -> Any:
        return run.output("act")

    return workflow


# Three tries at once, without a rest.
EAGER = RetryPolicy(attempts=3, first_delay=timedelta(0), jitter=0)
RESTING = RetryPolicy(attempts=3, first_delay=timedelta(seconds=60), jitter=0)

ONCE = acting("tests.once")
ATOMIC = acting("tests.atomic", atomic=True)
ATOMIC_RETRIED = acting("tests.atomic_retried", atomic=True, retries=EAGER)
ATOMIC_HOLDING = acting("tests.atomic_holding", atomic=True, on_failure="hold")
HOLDING = acting("tests.holding", on_failure="hold")
RETRIED = acting("tests.retried", retries=EAGER)
RESTED = acting("tests.rested", retries=RESTING)
RETRIED_HOLDING = acting("tests.retried_holding", retries=EAGER, on_failure="hold")


def ready_run(workflow: Workflow = ONCE, function: Callable[[RunView], Any] | None = None) -> Run:
    """A run whose step `act` does `function`."""
    registry.add(workflow)
    acts["act"] = function or (lambda _: 1)
    return start(workflow.name, {"act": "act"}, tenant=tenant())


def raising(error: BaseException) -> Callable[[RunView], Any]:
    def fail(run: RunView) -> Any:
        raise error

    return fail
