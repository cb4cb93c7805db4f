"""How a step ends: failures and retries, outputs, and what a person lets be tried again.

Promise P1, and that no run is ever left without a reason (P12).
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError
from django.db.models.functions import Now
from pydantic import BaseModel, field_validator
from pytest_django import Settings

from reconciliation.core.states import DecisionKind
from reconciliation.models import Hold
from tests.claiming import (
    HOLDING,
    ONCE,
    RESTED,
    RETRIED,
    RETRIED_HOLDING,
    acts,
    attempts,
    claimed,
    commit,
    expire_lease,
    lose_worker,
    raising,
    ready_run,
    worker,
)
from tests.deciding import decide
from tests.factories import administrator, advanced, tenant
from workflows.core.definitions import Workflow
from workflows.core.errors import PermanentError, UsageError
from workflows.core.retry import MAX_LOST_ATTEMPTS
from workflows.models import Run
from workflows.registry import registry
from workflows.services.claims import claim_run
from workflows.services.executor import advance
from workflows.services.ownership import Keeper
from workflows.services.results import result_of
from workflows.services.run_view import RunView
from workflows.services.runs import start

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[2]

# --- a step that raises -----------------------------------------------------------------------


def make_due(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(ready_at=Now())


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
    assert (run.state, result_of(run), run.failure) == ("completed", 3, None)


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
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=120, check=True)


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
        raise self.args[0]


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(1),
        ValueError("half of \udc80 a pair"),
        Unprintable(RuntimeError("no words")),
        Unprintable(SystemExit(1)),
        MemoryError(),
        RecursionError("too deep"),
        ExceptionGroup("several", [ValueError("\x00")]),
    ],
    ids=repr,
)
def test_whatever_a_step_raises_is_its_result(error: BaseException) -> None:
    assert advanced(ready_run(ONCE, raising(error))).state == "failed"


# --- a person lets it be tried again ----------------------------------------------------------


def lost_too_often(workflow: Workflow = ONCE) -> Run:
    run = ready_run(workflow)
    for _ in range(MAX_LOST_ATTEMPTS):
        lose_worker(run)
    return advanced(run)


def decide_run(run: Run, kind: DecisionKind) -> None:
    decide(Hold.objects.get(run=run, state="open"), kind, by=administrator())
    run.refresh_from_db()


def test_trying_again_resets_the_count_of_losses() -> None:
    run = lost_too_often()
    decide_run(run, DecisionKind.TRY_AGAIN)
    assert (run.state, run.failure) == ("ready", None)
    claim = claimed(run)
    # its attempts go on being numbered: the earlier ones stay in the record
    assert (claim.losses, claim.number) == (0, 5)
    commit(claim, 1, go_on=False)
    assert advanced(run).state == "completed"


def test_trying_again_resets_the_count_of_failures() -> None:
    run = ready_run(RETRIED_HOLDING, raising(ValueError("still no such order")))
    for _ in range(3):
        run = advanced(run)
    assert run.state == "held"
    decide_run(run, DecisionKind.TRY_AGAIN)
    run = advanced(advanced(run))
    assert run.state == "ready"  # two of three tries are used up
    assert advanced(run).state == "held"


def test_a_person_may_end_the_run() -> None:
    run = lost_too_often()
    decide_run(run, DecisionKind.FAIL_RUN)
    assert (run.state, run.failure["reason"]) == ("failed", "decided")


# --- outputs that cannot be stored (A12) ------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (object(), "object"),
        ("a\x00b", "NUL"),
        ({"a": 2**60}, r"at $.a: 1152921504606846976 is beyond 2^53"),
        ("x" * 2_000, "2,002 bytes, and the limit is 1,024"),
    ],
)
def test_an_output_that_cannot_be_stored_is_held_and_the_step_not_run_again(
    value: Any, says: str, settings: Settings
) -> None:
    settings.ROMULUS_MAX_OUTPUT_BYTES = 1024
    ran: list[int] = []

    def work(run: RunView) -> Any:
        ran.append(1)
        return value

    run = advanced(ready_run(RETRIED, work))
    hold = Hold.objects.get(run=run)
    assert (run.state, hold.reason, ran) == ("held", "output_not_storable", [1])
    assert hold.message.startswith("output of step act: ")
    assert says in hold.message
    assert not run.attempts.outputs().exists()


class Raising(BaseModel):
    """An output whose own check breaks, when it is stored."""

    number: int

    @field_validator("number")
    @classmethod
    def look_it_up(cls, value: int) -> int:
        raise KeyError(value)


class Naming(BaseModel):
    """An output whose own check says what no text column takes."""

    number: int

    @field_validator("number")
    @classmethod
    def refuse(cls, value: int) -> int:
        raise ValueError(f"{value}: no \x00, {'x' * 5000}")


unstorable = Workflow("tests.unstorable")


@unstorable.step()
def give_raising(run: RunView) -> Raising:
    return {"number": 1}  # type: ignore[return-value]


naming = Workflow("tests.naming")


@naming.step()
def give_naming(run: RunView) -> Naming:
    return {"number": 1}  # type: ignore[return-value]


@pytest.mark.parametrize("workflow", [unstorable, naming, ONCE], ids=["check", "words", "number"])
def test_an_output_that_nobody_can_even_describe_is_held_too(workflow: Workflow) -> None:
    registry.add(workflow)
    acts["act"] = lambda _: 10**5000
    run = advanced(start(workflow.name, {"act": "act"}, tenant=tenant()))
    assert (run.state, run.failure["reason"]) == ("held", "output_not_storable")


def test_an_output_can_be_given_on_as_it_was_read() -> None:
    run = advanced(ready_run(ONCE, lambda _: {"mass": 1e16}))
    assert (run.state, result_of(run)) == ("completed", {"mass": 1e16})


# --- the database goes away -------------------------------------------------------------------


@pytest.mark.usefixtures("lost_session")
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
    assert result_of(advanced(run)) == 2


@pytest.mark.parametrize(
    "error", [OperationalError("deadlock detected"), InterfaceError("another database")], ids=repr
)
def test_what_fails_while_the_database_is_there_is_the_step_s_failure(error: Exception) -> None:
    """Not a worker that went quiet: its own retries count, and its own words say why."""
    run = advanced(ready_run(RETRIED, raising(error)))
    assert attempts(run) == [("act", 1, "failed")]
    acts["act"] = lambda _: 2
    make_due(run)
    assert result_of(advanced(run)) == 2


@pytest.mark.parametrize(
    "error", [asyncio.CancelledError(), KeyboardInterrupt(), GeneratorExit()], ids=repr
)
def test_what_would_end_a_process_or_a_coroutine_is_the_step_s_failure(
    error: BaseException,
) -> None:
    run = advanced(ready_run(ONCE, raising(error)))
    assert run.state == "failed"
    assert attempts(run) == [("act", 1, "failed")]
