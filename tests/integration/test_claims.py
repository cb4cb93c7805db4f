"""Holding a run: who gets it, what a stale holder can no longer do, and how each end is recorded.

Promises P1 and P2, and that no run is ever left without a reason (P12).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import InterfaceError, OperationalError
from django.db.models.functions import Now
from pydantic import BaseModel, field_validator
from pytest_django import Settings

from reconciliation.core.states import DecisionKind
from reconciliation.models import Hold
from reconciliation.services.decisions import Answer, record_decision
from tests.factories import NOTE, code_of, person, tenant
from tests.waiting import wait_for
from workflows.core.definitions import Workflow
from workflows.core.errors import LostOwnership, PermanentError, UsageError
from workflows.core.retry import MAX_LOST_ATTEMPTS, RetryPolicy
from workflows.core.states import AttemptState, RunState
from workflows.models import Run, Worker
from workflows.registry import registry
from workflows.services.claims import Claim, claim_run, commit_step, record_superseded, release
from workflows.services.executor import advance
from workflows.services.ownership import Keeper
from workflows.services.run_view import RunView
from workflows.services.runs import start

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[2]

# What the step `act` does in a test, by name: a run's input names it.
acts: dict[str, Callable[[RunView], Any]] = {}


def act_of(run: RunView) -> Any:
    return acts[run.input["act"]](run)


def acting(name: str, **options: Any) -> Workflow:
    """A workflow whose first step does what the test says, and whose second gives its output."""
    workflow = Workflow(name)

    @workflow.step(**options)
    def act(run: RunView) -> Any:
        return act_of(run)

    @workflow.step()
    def after(run: RunView) -> Any:
        return run.output("act")

    return workflow


# Three tries at once, without a rest.
EAGER = RetryPolicy(attempts=3, first_delay=timedelta(0), jitter=0)
RESTING = RetryPolicy(attempts=3, first_delay=timedelta(seconds=60), jitter=0)

ONCE = acting("tests.once")
HOLDING = acting("tests.holding", on_failure="hold")
RETRIED = acting("tests.retried", retries=EAGER)
RESTED = acting("tests.rested", retries=RESTING)
RETRIED_HOLDING = acting("tests.retried_holding", retries=EAGER, on_failure="hold")


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    for workflow in (ONCE, HOLDING, RETRIED, RESTED, RETRIED_HOLDING):
        registry.add(workflow)
    yield
    acts.clear()


def does(name: str, function: Callable[[RunView], Any]) -> dict[str, Any]:
    """The input of a run whose step does `function`."""
    acts[name] = function
    return {"act": name}


def raising(error: BaseException) -> Callable[[RunView], Any]:
    def fail(run: RunView) -> Any:
        raise error

    return fail


def ready_run(workflow: Workflow = ONCE, function: Callable[[RunView], Any] | None = None) -> Run:
    return start(workflow.name, does("act", function or (lambda _: 1)), tenant=tenant())


def worker() -> Any:
    return Worker.objects.create(host="here", pid=1, workflows=[]).pk


def claimed(run: Run) -> Claim:
    claim = claim_run(run.pk, worker())
    assert claim is not None
    return claim


def expire_lease(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(lease_expires_at=Now() - timedelta(seconds=1))


def make_due(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(ready_at=Now())


def advanced(run: Run, keeper: Keeper | None = None) -> Run:
    advance(run.pk, keeper or Keeper())
    run.refresh_from_db()
    return run


def attempts(run: Run) -> list[tuple[str, int, str]]:
    return list(run.attempts.order_by("fence").values_list("step", "number", "state"))


# --- who gets it ------------------------------------------------------------------------------


def test_a_ready_run_that_is_due_is_claimed_under_a_lease_and_a_fence(settings: Settings) -> None:
    run = ready_run()
    claim = claimed(run)
    run.refresh_from_db()
    attempt = run.attempts.get()
    assert (run.state, run.fence, run.lease_owner) == ("running", 1, claim.worker)
    assert run.lease_expires_at is not None
    lease = run.lease_expires_at - attempt.claimed_at
    assert abs(lease.total_seconds() - settings.ROMULUS_LEASE_SECONDS) < 1
    assert (attempt.state, attempt.number, attempt.fence) == ("running", 1, 1)
    assert (claim.step.name, claim.failures, claim.lost) == ("act", 0, 0)


def test_a_run_that_is_not_due_is_not_claimed() -> None:
    run = ready_run()
    Run.objects.filter(pk=run.pk).update(ready_at=Now() + timedelta(seconds=30))
    assert claim_run(run.pk, worker()) is None
    assert not run.attempts.exists()


def test_a_run_that_another_worker_holds_is_not_claimed() -> None:
    run = ready_run()
    claim = claimed(run)
    assert claim_run(run.pk, worker()) is None
    assert claim_run(run.pk, claim.worker) is None  # nor once more by the same one
    assert run.attempts.count() == 1


@pytest.mark.parametrize("state", ["waiting", "held", "completed", "failed", "cancelled"])
def test_a_run_that_is_neither_ready_nor_left_lying_is_not_claimed(state: str) -> None:
    run = ready_run()
    finished = Now() if state in ("completed", "failed", "cancelled") else None
    Run.objects.filter(pk=run.pk).update(state=state, finished_at=finished)
    assert claim_run(run.pk, worker()) is None


def test_a_run_that_does_not_exist_is_not_claimed() -> None:
    assert claim_run(uuid4(), worker()) is None


@pytest.mark.parametrize("other", [{"version": 2}, {"workflow": "tests.unknown"}])
def test_a_version_that_this_process_does_not_have_is_left_to_others(other: dict[str, Any]) -> None:
    """A11: an old worker leaves what it does not know alone, and uses up no try."""
    run = ready_run()
    Run.objects.filter(pk=run.pk).update(**other)
    assert claim_run(run.pk, worker()) is None
    run.refresh_from_db()
    assert (run.state, run.fence) == ("ready", 0)
    assert not run.attempts.exists()


def test_a_run_whose_lease_ran_out_is_taken_over_and_the_earlier_attempt_is_lost() -> None:
    run = ready_run()
    first = claimed(run)
    expire_lease(run)
    second = claimed(run)
    run.refresh_from_db()
    assert (run.fence, run.lease_owner) == (2, second.worker)
    assert attempts(run) == [("act", 1, "lost"), ("act", 2, "running")]
    lost = run.attempts.get(pk=first.attempt)
    assert lost.ended_at is not None
    assert "lease ran out" in lost.error
    assert (second.lost, second.failures, second.number) == (1, 0, 2)


def test_the_fence_grows_with_every_claim_and_every_step() -> None:
    run = ready_run()
    fences = [claimed(run).fence]
    expire_lease(run)
    second = claimed(run)
    following = commit_step(second, 1, go_on=True)
    assert following is not None
    fences += [second.fence, following.fence]
    assert fences == [1, 2, 3]


def test_a_position_that_the_workflow_no_longer_has_is_held_with_that_reason() -> None:
    run = ready_run()
    Run.objects.filter(pk=run.pk).update(step="renamed")
    run = advanced(run)
    assert run.state == "held"
    assert run.failure["reason"] == "step_missing"
    assert Hold.objects.get(run=run).reason == "step_missing"


# --- what commits -----------------------------------------------------------------------------


def test_output_end_of_attempt_and_move_are_one_and_the_next_attempt_is_open() -> None:
    run = ready_run()
    claim = claimed(run)
    following = commit_step(claim, {"a": 1}, go_on=True)
    run.refresh_from_db()
    assert (run.state, run.step, run.fence) == ("running", "after", 2)
    assert run.outputs.get().value == {"a": 1}
    assert run.outputs.get().attempt_id == claim.attempt
    assert attempts(run) == [("act", 1, "committed"), ("after", 1, "running")]
    assert following is not None
    assert run.attempts.get(state="running").pk == following.attempt


def test_a_worker_that_may_not_go_on_hands_the_run_back() -> None:
    run = ready_run()
    assert commit_step(claimed(run), 1, go_on=False) is None
    run.refresh_from_db()
    assert (run.state, run.step, run.lease_owner) == ("ready", "after", None)
    assert claimed(run).step.name == "after"


def test_the_last_output_is_the_result() -> None:
    run = advanced(ready_run(ONCE, lambda _: {"total": "1.50"}))
    assert (run.state, run.result, run.failure) == ("completed", {"total": "1.50"}, None)
    assert run.finished_at is not None


def stale_and_present(run: Run) -> tuple[Claim, Claim]:
    stale = claimed(run)
    expire_lease(run)
    return stale, claimed(run)


def record_of(run: Run) -> tuple[Any, ...]:
    """Everything that is stored of a run, but for the states of its lost attempts."""
    run.refresh_from_db()
    fields = ("state", "step", "visit", "fence", "lease_owner", "lease_expires_at", "failure")
    return (
        *(getattr(run, name) for name in fields),
        list(run.outputs.values_list("step", "value")),
        list(run.attempts.exclude(state="lost").values_list("pk", "state", "ended_at")),
    )


@pytest.mark.parametrize(
    "late",
    [
        lambda claim: commit_step(claim, "late", go_on=True),
        lambda claim: commit_step(claim, "late", go_on=False),
        lambda claim: release(claim, RunState.READY, delay=timedelta(0)),
        lambda claim: release(claim, RunState.FAILED, attempt_state=AttemptState.FAILED),
        lambda claim: release(claim, RunState.HELD),
        lambda claim: release(claim, RunState.WAITING),
    ],
)
def test_a_stale_claim_changes_nothing_and_is_told(late: Callable[[Claim], Any]) -> None:
    """A10: the later holder's lease is neither shortened nor prolonged."""
    run = ready_run()
    stale, _ = stale_and_present(run)
    before = record_of(run)
    with pytest.raises(LostOwnership, match=f"run {run.pk}: fence 1 holds it no more"):
        late(stale)
    assert record_of(run) == before


def test_what_should_commit_with_a_stale_claim_is_undone_with_it() -> None:
    run = ready_run()
    stale, _ = stale_and_present(run)

    def also() -> None:
        Run.objects.filter(pk=run.pk).update(labels={"written": "by the stale one"})

    with pytest.raises(LostOwnership):
        commit_step(stale, 1, go_on=True, also=also)
    run.refresh_from_db()
    assert run.labels == {}


@pytest.mark.parametrize("changed", [{"fence": 2}, {"worker": uuid4()}])
def test_neither_the_fence_nor_the_worker_alone_is_enough(changed: dict[str, Any]) -> None:
    """A10: the same worker's name under another fence, or another's name under the same one."""
    run = ready_run()
    claim = claimed(run)
    with pytest.raises(LostOwnership):
        commit_step(replace(claim, **changed), 1, go_on=True)
    assert commit_step(claim, 1, go_on=True)


def test_a_late_commit_is_recorded_as_superseded() -> None:
    run = ready_run()

    def overtaken(view: RunView) -> int:
        expire_lease(run)
        claimed(run)
        return 1

    acts["act"] = overtaken
    run = advanced(run)
    assert (run.state, run.fence) == ("running", 2)
    assert attempts(run) == [("act", 1, "superseded"), ("act", 2, "running")]
    assert not run.outputs.exists()


def test_an_attempt_that_ended_well_is_never_called_superseded() -> None:
    run = ready_run()
    claim = claimed(run)
    commit_step(claim, 1, go_on=True)
    record_superseded(claim)
    assert attempts(run)[0] == ("act", 1, "committed")


# --- a step that raises -----------------------------------------------------------------------


def test_a_step_that_raises_is_tried_again_after_a_rest() -> None:
    run = advanced(ready_run(RESTED, raising(TimeoutError("no answer"))))
    assert (run.state, run.failure) == (
        "ready",
        {"reason": "retry", "message": "TimeoutError: no answer"},
    )
    attempt = run.attempts.get()
    assert attempt.ended_at is not None
    assert run.ready_at - attempt.ended_at == timedelta(seconds=60)
    assert (attempt.state, attempt.error) == ("failed", "TimeoutError: no answer")
    assert claim_run(run.pk, worker()) is None


def test_the_rest_doubles_with_each_failure() -> None:
    run = advanced(ready_run(RESTED, raising(TimeoutError())))
    make_due(run)
    run = advanced(run)
    second = run.attempts.get(number=2)
    assert second.ended_at is not None
    assert run.ready_at - second.ended_at == timedelta(seconds=120)


def test_tries_that_are_spent_fail_the_run() -> None:
    run = ready_run(RETRIED, raising(ValueError("no such order")))
    for _ in range(3):
        run = advanced(run)
    assert (run.state, run.failure) == (
        "failed",
        {"reason": "step_failed", "message": "ValueError: no such order"},
    )
    assert attempts(run) == [("act", number, "failed") for number in (1, 2, 3)]
    assert not Hold.objects.exists()


def test_tries_that_are_spent_hold_the_run_where_its_author_says_so() -> None:
    run = advanced(ready_run(HOLDING, raising(ValueError("no such order"))))
    hold = Hold.objects.get(run=run)
    assert (run.state, run.failure["reason"]) == ("held", "step_failed")
    assert (hold.reason, hold.message) == ("step_failed", "ValueError: no such order")
    assert attempts(run) == [("act", 1, "failed")]


def test_a_success_after_failures_goes_on_and_forgets_the_failure() -> None:
    run = ready_run(RETRIED, lambda run: run.attempt if run.attempt == 3 else 1 / 0)
    for _ in range(3):
        run = advanced(run)
    assert (run.state, run.result, run.failure) == ("completed", 3, None)


def test_an_error_that_its_author_calls_permanent_is_not_tried_again() -> None:
    run = advanced(ready_run(RETRIED, raising(PermanentError("it was paid less"))))
    assert run.state == "failed"
    assert len(attempts(run)) == 1


def test_what_a_step_raises_is_kept_in_bounded_length() -> None:
    run = advanced(ready_run(ONCE, raising(ValueError("x" * 100_000 + "\x00"))))
    assert run.state == "failed"
    assert len(run.failure["message"]) == 500


def test_a_megabyte_of_words_does_not_stop_a_worker() -> None:
    code = "from workflows.core.words import describe; describe(ValueError('x' * 1_000_000))"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=10, check=True)


def test_an_input_that_no_longer_fits_fails_the_step_and_says_where() -> None:
    run = start("refund", {"order": "ORD-1", "amount": "1"}, tenant=tenant())
    Run.objects.filter(pk=run.pk).update(input={"order": "ORD-1"})
    run = advanced(run)
    assert "input: at amount: Field required" in run.failure["message"]


@pytest.mark.parametrize("step", ["unknown", "after"])
def test_an_output_that_is_not_there_fails_the_step_and_names_it(step: str) -> None:
    run = advanced(ready_run(ONCE, lambda run: run.output(step)))
    assert run.state == "failed"
    assert repr(step) in run.failure["message"]
    assert UsageError.__name__ in run.failure["message"]


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "error", [SystemExit(1), ValueError("half of \udc80 a pair"), Unprintable()], ids=repr
)
def test_whatever_a_step_raises_is_its_result(error: BaseException) -> None:
    assert advanced(ready_run(ONCE, raising(error))).state == "failed"


# --- workers that go quiet --------------------------------------------------------------------


def lose_worker(run: Run) -> None:
    claimed(run)
    expire_lease(run)


def lost_too_often(workflow: Workflow = ONCE) -> Run:
    run = ready_run(workflow)
    for _ in range(MAX_LOST_ATTEMPTS):
        lose_worker(run)
    return advanced(run)


def test_a_step_that_ends_its_workers_is_held_with_the_reason_and_never_run_again() -> None:
    """A13: crashed claims count, in the database."""
    ran: list[int] = []
    run = ready_run(ONCE, lambda _: ran.append(1))
    for _ in range(MAX_LOST_ATTEMPTS):
        lose_worker(run)
    run = advanced(run)
    hold = Hold.objects.get(run=run)
    assert (run.state, run.failure["reason"], ran) == ("held", "workers_lost", [])
    assert hold.reason == "workers_lost"
    assert hold.message.startswith("3 workers went quiet at step act.")


def test_fewer_losses_than_that_are_borne() -> None:
    run = ready_run()
    for _ in range(MAX_LOST_ATTEMPTS - 1):
        lose_worker(run)
    assert advanced(run).state == "completed"


def test_losses_and_failures_are_counted_apart() -> None:
    run = ready_run(RETRIED, raising(ValueError()))
    lose_worker(run)
    run = advanced(run)
    lose_worker(run)
    claim = claimed(run)
    assert (claim.failures, claim.lost, claim.number) == (1, 2, 4)


def test_losses_at_one_step_do_not_count_at_the_next() -> None:
    run = ready_run()
    lose_worker(run)
    lose_worker(run)
    following = commit_step(claimed(run), 1, go_on=False)
    assert following is None
    claim = claimed(run)
    assert (claim.step.name, claim.lost, claim.number) == ("after", 0, 1)


def test_a_step_that_always_outlasts_its_lease_is_held_too() -> None:
    run = ready_run()
    earlier: Claim | None = None
    for _ in range(MAX_LOST_ATTEMPTS + 1):
        claim = claimed(run)
        if earlier:  # which ends now, too late
            record_superseded(earlier)
        earlier = claim
        expire_lease(run)
    assert claimed(run).lost >= MAX_LOST_ATTEMPTS


# --- a person lets it be tried again ----------------------------------------------------------


def decide(run: Run, kind: DecisionKind) -> None:
    hold = Hold.objects.get(run=run, state="open")
    administrator = person("admin_1", is_superuser=True)
    answer = Answer(kind, NOTE, hold.version, uuid4(), code_of(run.pk))
    record_decision(hold.pk, administrator, answer)
    run.refresh_from_db()


def test_trying_again_resets_the_count_of_losses() -> None:
    run = lost_too_often()
    decide(run, DecisionKind.TRY_AGAIN)
    assert (run.state, run.failure) == ("ready", None)
    claim = claimed(run)
    # its attempts go on being numbered: the earlier ones stay in the record
    assert (claim.lost, claim.number) == (0, 5)
    commit_step(claim, 1, go_on=False)
    assert advanced(run).state == "completed"


def test_trying_again_resets_the_count_of_failures() -> None:
    run = ready_run(RETRIED_HOLDING, raising(ValueError("still no such order")))
    for _ in range(3):
        run = advanced(run)
    assert run.state == "held"
    decide(run, DecisionKind.TRY_AGAIN)
    run = advanced(advanced(run))
    assert run.state == "ready"  # two of three tries are used up
    assert advanced(run).state == "held"


def test_a_person_may_end_the_run() -> None:
    run = lost_too_often()
    decide(run, DecisionKind.FAIL_RUN)
    assert (run.state, run.failure["reason"]) == ("failed", "decided")


# --- outputs that cannot be stored (A12) ------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (object(), "object"),
        ("a\x00b", "NUL"),
        ({"a": 2**60}, r"at $.a: 1152921504606846976 is beyond 2^53"),
        ("x" * 2_000_000, "2,000,002 bytes, and the limit is 1,048,576"),
    ],
)
def test_an_output_that_cannot_be_stored_is_held_and_the_step_not_run_again(
    value: Any, says: str
) -> None:
    ran: list[int] = []

    def work(run: RunView) -> Any:
        ran.append(1)
        return value

    run = advanced(ready_run(RETRIED, work))
    hold = Hold.objects.get(run=run)
    assert (run.state, hold.reason, ran) == ("held", "output_not_storable", [1])
    assert hold.message.startswith("output of step act: ")
    assert says in hold.message
    assert not run.outputs.exists()


class Raising(BaseModel):
    """An output whose own check breaks, when it is stored."""

    number: int

    @field_validator("number")
    @classmethod
    def look_it_up(cls, value: int) -> int:
        raise KeyError(value)


unstorable = Workflow("tests.unstorable")


@unstorable.step()
def give_raising(run: RunView) -> Raising:
    return {"number": 1}  # type: ignore[return-value]


@pytest.mark.parametrize("workflow", [unstorable, ONCE], ids=["check", "number"])
def test_an_output_that_nobody_can_even_describe_is_held_too(workflow: Workflow) -> None:
    registry.add(unstorable)
    acts["act"] = lambda _: 10**5000
    run = advanced(start(workflow.name, {"act": "act"}, tenant=tenant()))
    assert (run.state, run.failure["reason"]) == ("held", "output_not_storable")


def test_an_output_can_be_given_on_as_it_was_read() -> None:
    run = advanced(ready_run(ONCE, lambda _: {"mass": 1e16}))
    assert (run.state, run.result) == ("completed", {"mass": 1e16})


# --- the database goes away -------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [OperationalError("the connection is closed"), InterfaceError("closed")], ids=repr
)
def test_an_outage_is_nobody_s_failure_and_leaves_the_attempt_to_its_lease(
    error: Exception,
) -> None:
    run = ready_run(ONCE, raising(error))
    with pytest.raises(type(error)):
        advance(run.pk, Keeper())
    run.refresh_from_db()
    assert (run.state, run.failure) == ("running", None)
    assert attempts(run) == [("act", 1, "running")]

    acts["act"] = lambda _: 2
    expire_lease(run)
    assert advanced(run).result == 2


# --- a worker that cannot prove its leases ----------------------------------------------------


def test_a_keeper_that_could_not_renew_claims_nothing_until_it_can(settings: Settings) -> None:
    settings.ROMULUS_LEASE_SECONDS = 0.05
    keeper = Keeper()
    run = ready_run()
    wait_for(lambda: not keeper.may_claim(), "its proof is over")
    assert advanced(run, keeper).state == "ready"
    assert not run.attempts.exists()

    keeper.lease = 30
    keeper.renew()
    assert advanced(run, keeper).state == "completed"


def test_a_keeper_that_is_closing_finishes_its_step_and_takes_up_nothing_new() -> None:
    keeper = Keeper()

    def close(view: RunView) -> int:
        keeper.close()
        return 1

    run = ready_run(ONCE, close)
    run = advanced(run, keeper)
    assert (run.state, run.step) == ("ready", "after")
    assert advanced(run, keeper).state == "ready"
    assert advanced(run, Keeper()).state == "completed"


def test_a_keeper_tells_what_its_process_has() -> None:
    keeper = Keeper()
    row = Worker.objects.get(pk=keeper.worker)
    assert ["refund", 1] in row.workflows
    assert isinstance(row.seen_at, datetime)
