"""The deadline of a wait: what came in time, what came late, and what follows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.events import (
    COUNTING,
    ELSEWHERE,
    FAILING,
    GOING_ON,
    HOLDING,
    delivered,
    driven,
    event_of,
    expecting,
    let_deadline_come,
    swept,
    wait_of,
    waiting,
)
from workflows.core.events import Outcome
from workflows.core.states import RunState
from workflows.models import Event, Run
from workflows.services.results import result_of

pytestmark = pytest.mark.django_db

COUNTING_OR_HELD = expecting("counting_or_held", on_deadline="hold", count=3)


def test_at_the_deadline_the_run_fails_and_a_later_event_is_late() -> None:
    run = waiting()
    let_deadline_come(run)
    run = swept(run)
    assert (run.state, wait_of(run).state) == ("failed", "expired")
    assert run.failure is not None
    assert run.failure["reason"] == "deadline"
    receipt = delivered()
    event = event_of(receipt)
    assert (receipt.outcome, event.state) == (Outcome.LATE, "late")
    assert event.problem == "It came after the deadline of the wait at step refunded."


def test_an_event_after_the_deadline_is_late_even_before_that_is_carried_out() -> None:
    run = waiting(GOING_ON)
    let_deadline_come(run)
    assert delivered().outcome is Outcome.LATE
    run = swept(run)
    assert (run.state, result_of(run)) == ("completed", None)


def test_an_event_in_time_wins_over_a_deadline_that_is_carried_out_late() -> None:
    run = waiting(GOING_ON)
    receipt = delivered("elsewhere", event_id="evt_1")
    let_deadline_come(run)
    # It was stored in time, and nobody has looked: what the second net is for.
    wait = wait_of(run)
    assert wait.deadline is not None
    in_time = wait.deadline - timedelta(milliseconds=1)
    Event.objects.filter(pk=receipt.event).update(correlation="48213", received_at=in_time)
    run = swept(run)
    assert (run.state, result_of(run)[0]) == ("completed", "evt_1")
    assert wait_of(run).state == "resolved"


def test_a_deadline_that_is_past_when_the_wait_opens_resolves_at_once() -> None:
    run = waiting(GOING_ON, seconds=-1)
    assert (run.state, result_of(run), wait_of(run).state) == ("completed", None, "expired")


def test_an_event_before_a_deadline_that_is_past_when_the_wait_opens_wins() -> None:
    receipt = delivered(event_id="evt_1")
    Event.objects.filter(pk=receipt.event).update(received_at=datetime(2026, 1, 1, tzinfo=UTC))
    run = waiting(GOING_ON, seconds=-1)
    assert result_of(run)[0] == "evt_1"


def test_at_the_deadline_the_run_goes_on_at_the_step_that_is_named() -> None:
    late, in_time = waiting(ELSEWHERE, "1"), waiting(ELSEWHERE, "2")
    let_deadline_come(late)
    delivered("2", event_id="evt_2")
    assert result_of(swept(late)) == "reminded"
    assert result_of(driven(in_time)) == ["evt_2", {"amount": 125}]


def test_a_count_gives_those_that_came_until_the_deadline() -> None:
    run = waiting(COUNTING)
    delivered(event_id="evt_1")
    let_deadline_come(run)
    assert result_of(swept(run)) == ["evt_1"]


def test_held_at_the_deadline_and_tried_again_it_waits_anew_and_takes_the_late_event() -> None:
    run = waiting(HOLDING)
    let_deadline_come(run)
    run = swept(run)
    assert (run.state, run.failure and run.failure["reason"]) == ("held", "deadline")
    assert delivered(event_id="evt_late").outcome is Outcome.LATE
    Run.objects.move(run, RunState.READY, failure=None)  # as a decision does
    run = driven(run)
    assert (run.state, result_of(run)[0]) == ("completed", "evt_late")
    assert [wait.state for wait in run.waits.order_by("id")] == ["expired", "resolved"]


def test_of_several_events_those_that_came_in_time_count_when_it_waits_anew() -> None:
    run = waiting(COUNTING_OR_HELD)
    delivered(event_id="evt_1")
    delivered(event_id="evt_2")
    let_deadline_come(run)
    run = swept(run)
    assert run.failure is not None
    assert run.failure["message"].startswith("Only 2 of 3 events")
    Run.objects.move(run, RunState.READY, failure=None)  # as a decision does
    run = driven(run)
    assert run.state == "waiting"
    delivered(event_id="evt_3")
    assert result_of(driven(run)) == ["evt_1", "evt_2", "evt_3"]


def test_a_deadline_is_kept_over_restarts() -> None:
    run = waiting(FAILING)
    deadline = wait_of(run).deadline
    Run.objects.filter(pk=run.pk).update(state="ready", wake_at=None)
    run = driven(run)
    assert (run.state, run.wake_at, wait_of(run).deadline) == ("waiting", deadline, deadline)
