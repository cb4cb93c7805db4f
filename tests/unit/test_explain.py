"""Promise P12: whatever is not finished says why, what would move it, and who owns it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from workflows.core.explain import Cause, Explanation, RunFacts, explain
from workflows.core.states import RunState

NOW = datetime(2026, 3, 10, 3, 0, tzinfo=UTC)

FACTS = RunFacts(
    state=RunState.READY,
    step="create_refund",
    number=2,
    steps=3,
    workflow="refund",
    version=4,
    ready_at=NOW - timedelta(seconds=5),
    lease_expires_at=None,
    worker="",
    failure="",
    attempts=0,
    workers_with_version=2,
    workers_alive=3,
    ahead=0,
)


def why(state: RunState, **facts: Any) -> Explanation:
    return explain(replace(FACTS, state=state, **facts), NOW)


def leased(seconds: float, **facts: Any) -> Explanation:
    """A run whose lease ends `seconds` from now."""
    return why(
        RunState.RUNNING,
        lease_expires_at=NOW + timedelta(seconds=seconds),
        worker="host/17",
        attempts=1,
        **facts,
    )


CASES: dict[str, tuple[Explanation, Cause, str, str, str]] = {
    "completed": (
        why(RunState.COMPLETED),
        Cause.FINISHED,
        "Every step is committed.",
        "Nothing is needed.",
        "",
    ),
    "failed": (
        why(RunState.FAILED, failure="Payments refused it.", owner="finance"),
        Cause.FINISHED,
        "It failed at step 2 of 3, create_refund: Payments refused it.",
        "Start a new run.",
        "finance",
    ),
    "cancelled": (
        why(RunState.CANCELLED),
        Cause.FINISHED,
        "It was cancelled at step 2 of 3, create_refund.",
        "Nothing is needed.",
        "",
    ),
    "held": (
        why(RunState.HELD, failure="The key may be gone.", owner="finance"),
        Cause.HELD,
        "It is held at step 2 of 3, create_refund. The key may be gone.",
        "A recorded decision. Waiting longer or restarting workers will not help.",
        "finance",
    ),
    "held for nobody": (
        why(RunState.HELD, failure="The key may be gone."),
        Cause.HELD,
        "It is held at step 2 of 3, create_refund. The key may be gone.",
        "A recorded decision. Waiting longer or restarting workers will not help.",
        "nobody: no queue takes it, an administrator must set one up",
    ),
    "waiting for an outcome": (
        why(RunState.WAITING, waits_for="the provider is asked again soon"),
        Cause.SETTLING,
        "It waits at step 2 of 3, create_refund: the provider is asked again soon",
        "The provider's answer, or a decision.",
        "Romulus",
    ),
    "waiting, and nobody said for what": (
        why(RunState.WAITING),
        Cause.SETTLING,
        "It waits at step 2 of 3, create_refund: the outcome of its write is being found out",
        "The provider's answer, or a decision.",
        "Romulus",
    ),
    "paused": (
        why(RunState.WAITING, paused=True, waits_for="dispatch is not on", owner="finance"),
        Cause.PAUSED,
        "It waits at step 2 of 3, create_refund: dispatch is not on",
        "Turning dispatch on.",
        "finance",
    ),
    "a worker is on it": (
        leased(9),
        Cause.LEASED,
        "Worker host/17 is on it at step 2 of 3, create_refund, try 1.",
        "Nothing is needed.",
        "host/17",
    ),
    "its worker went quiet": (
        leased(-1),
        Cause.LEASE_EXPIRED,
        "Worker host/17 went quiet at step 2 of 3, create_refund; its lease has expired.",
        "The next sweep gives it to another worker.",
        "Romulus",
    ),
    "its worker went quiet at this very moment": (
        leased(0),
        Cause.LEASE_EXPIRED,
        "Worker host/17 went quiet at step 2 of 3, create_refund; its lease has expired.",
        "The next sweep gives it to another worker.",
        "Romulus",
    ),
    "ready, and it is the next": (
        why(RunState.READY),
        Cause.BACKLOG,
        "It is ready at step 2 of 3, create_refund; it is the next.",
        "A free worker; 2 have this version.",
        "Romulus",
    ),
    "ready, behind others": (
        why(RunState.READY, ahead=41),
        Cause.BACKLOG,
        "It is ready at step 2 of 3, create_refund; 41 runs are ahead of it.",
        "A free worker; 2 have this version.",
        "Romulus",
    ),
    "resting before the next try": (
        why(
            RunState.READY,
            ready_at=NOW + timedelta(seconds=12.4),
            attempts=2,
            failure="TimeoutError: no answer",
        ),
        Cause.RETRY,
        "Try 3 is due in 12 s at step 2 of 3, create_refund. TimeoutError: no answer",
        "Time.",
        "Romulus",
    ),
    "nobody has its version": (
        why(RunState.READY, workers_with_version=0),
        Cause.NO_WORKER,
        "It is ready at step 2 of 3, create_refund, and none of the 3 live workers "
        "has refund version 4.",
        "Starting a worker that has refund version 4.",
        "whoever runs the workers",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_state_says_why_what_would_move_it_and_who_owns_it(name: str) -> None:
    explanation, cause, sentence, moves, owner = CASES[name]
    assert explanation == Explanation(cause, sentence, moves, owner)


def test_every_state_of_a_run_and_every_cause_has_its_case() -> None:
    assert {case[1] for case in CASES.values()} == set(Cause)
    for state in RunState:
        assert why(state, lease_expires_at=NOW).sentence


def test_an_expired_lease_that_nobody_can_take_over_says_so() -> None:
    explanation = leased(-1, workers_with_version=0, workers_alive=0)
    assert explanation.cause is Cause.NO_WORKER
    assert "none of the 0 live workers has refund version 4" in explanation.sentence


def test_a_rest_that_nobody_can_end_says_that_a_worker_is_missing() -> None:
    explanation = why(RunState.READY, ready_at=NOW + timedelta(seconds=60), workers_with_version=0)
    assert explanation.cause is Cause.NO_WORKER


def test_an_expired_lease_is_not_called_ready() -> None:
    assert "It is ready" not in leased(-1, workers_with_version=0).sentence


def test_one_run_ahead_is_one_run() -> None:
    assert "1 run is ahead of it" in why(RunState.READY, ahead=1).sentence
