"""Wait steps: opened, resolved, over; the event before, in, and after its time."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from reconciliation.core.states import DecisionKind
from reconciliation.services.decisions import move_run
from tests.events import (
    COUNTING,
    FAILING,
    HOLDING,
    SHARING,
    TYPE,
    begun,
    delivered,
    driven,
    event_of,
    expecting,
    incoming,
    let_deadline_come,
    source,
    swept,
    wait_of,
    waiting,
)
from tests.factories import many_runs, tenant
from tests.flows import drive
from workflows.core.definitions import END, Workflow
from workflows.core.errors import EventIsTaken, WaitIsOver
from workflows.core.events import Outcome
from workflows.core.standing import Moves
from workflows.core.states import RunState
from workflows.models import Attempt, Event, Match, Run, Wait
from workflows.registry import registry
from workflows.services.inbox import give, match_again, receive
from workflows.services.migrations import migrate_run
from workflows.services.pauses import forget
from workflows.services.results import result_of
from workflows.services.run_view import RunView
from workflows.services.runs import start
from workflows.services.stopping import cancel_run, pause_run, resume_run
from workflows.services.waits import SecondNet

pytestmark = pytest.mark.django_db


# --- the event --------------------------------------------------------------------------------


def test_a_run_waits_without_a_worker_and_goes_on_with_its_event() -> None:
    run = waiting()
    wait = wait_of(run)
    assert (run.state, run.lease_owner, run.wake_at) == ("waiting", None, wait.deadline)
    assert wait.deadline is not None
    assert wait.deadline - wait.started_at == timedelta(hours=1)
    receipt = delivered(event_id="evt_9", payload={"amount": 125})
    assert receipt.outcome is Outcome.MATCHED
    run = driven(run)
    assert (run.state, result_of(run)) == ("completed", ["evt_9", {"amount": 125}])
    assert (wait_of(run).state, event_of(receipt).state) == ("resolved", "matched")
    assert Match.objects.get().event_id == receipt.event


def test_an_event_that_was_there_before_is_taken_at_once_by_the_same_worker() -> None:
    receipt = delivered(event_id="evt_early")
    assert receipt.outcome is Outcome.STORED
    run = waiting()
    assert (run.state, result_of(run)) == ("completed", ["evt_early", {"amount": 125}])
    assert list(Attempt.objects.filter(run=run).values_list("step", "number")) == [
        ("refunded", 1),
        ("told", 1),
    ]


def test_of_several_events_before_the_oldest_is_taken() -> None:
    first, second = delivered(event_id="evt_1"), delivered(event_id="evt_2")
    run = waiting()
    assert result_of(run)[0] == "evt_1"
    assert (event_of(first).state, event_of(second).state) == ("matched", "stored")


def test_a_delivery_that_comes_again_is_counted_and_takes_nothing() -> None:
    first = delivered(event_id="evt_1")
    assert waiting().state == "completed"
    run = waiting()
    again = delivered(event_id="evt_1")
    assert (again.event, again.outcome) == (first.event, Outcome.DUPLICATE)
    run.refresh_from_db()
    assert (run.state, event_of(first).duplicates) == ("waiting", 1)


def test_the_same_id_of_another_source_is_another_event() -> None:
    delivered(event_id="evt_1")
    assert delivered(event_id="evt_1", of=source("shop")).outcome is Outcome.STORED


@pytest.mark.parametrize(
    ("correlation", "type"),
    [
        ("ORD-7", "charge.refunded"),
        ("ord-7 ", "charge.refunded"),
        ("ord-70", "charge.refunded"),
        ("ord-7\u0301", "charge.refunded"),
        ("ord-7", "charge.Refunded"),
        ("ord-7", "charge"),
    ],
)
def test_nothing_is_folded_or_trimmed(correlation: str, type: str) -> None:
    run = waiting(correlation="ord-7")
    assert delivered(correlation, type=type).outcome is Outcome.STORED
    assert driven(run).state == "waiting"


def test_another_tenant_has_its_own_events() -> None:
    run = waiting()
    receipt = delivered(of=source("theirs", tenant("contoso")))
    assert (receipt.outcome, driven(run).state) == (Outcome.STORED, "waiting")
    assert delivered().outcome is Outcome.MATCHED


def test_the_first_of_several_types_counts() -> None:
    run = waiting(HOLDING)
    assert delivered(type="charge.failed").outcome is Outcome.MATCHED
    assert delivered(type=TYPE).outcome is Outcome.LATE
    assert driven(run).state == "completed"


def test_a_count_takes_so_many_and_no_more() -> None:
    delivered(event_id="evt_1")
    run = waiting(COUNTING)
    assert run.state == "waiting"
    assert delivered(event_id="evt_2").outcome is Outcome.MATCHED
    assert driven(run).state == "waiting"
    assert delivered(event_id="evt_3").outcome is Outcome.MATCHED
    assert delivered(event_id="evt_4").outcome is Outcome.LATE
    run = driven(run)
    assert (run.state, result_of(run)) == ("completed", ["evt_1", "evt_2", "evt_3"])


# --- more than one wait -----------------------------------------------------------------------


def test_an_event_for_two_waits_is_given_to_neither() -> None:
    runs = [waiting(), waiting(HOLDING)]
    receipt = delivered()
    assert receipt.outcome is Outcome.AMBIGUOUS
    event = event_of(receipt)
    assert (event.state, event.ambiguous_at is not None) == ("stored", True)
    assert [driven(run).state for run in runs] == ["waiting", "waiting"]
    # Nor to one that comes later, whoever is asked meanwhile.
    assert waiting().state == "waiting"


def test_shared_waits_all_get_it_and_a_mix_is_ambiguous() -> None:
    runs = [waiting(SHARING), waiting(SHARING)]
    assert delivered(event_id="evt_1").outcome is Outcome.MATCHED
    assert [result_of(driven(run))[0] for run in runs] == ["evt_1", "evt_1"]
    waiting(SHARING)
    waiting(FAILING)
    assert delivered().outcome is Outcome.AMBIGUOUS


def test_an_ambiguous_event_goes_to_the_only_wait_that_is_left_when_it_is_replayed() -> None:
    gone, left = waiting(), waiting()
    receipt = delivered()
    cancel_run(gone.pk, by="user:1 ada")
    assert match_again(receipt.event) is Outcome.MATCHED
    assert driven(left).state == "completed"
    with pytest.raises(EventIsTaken):
        match_again(receipt.event)


def test_giving_by_hand_is_kept_with_who_and_why() -> None:
    runs = [waiting(), waiting()]
    receipt = delivered()
    wait = wait_of(runs[1])
    assert give(receipt.event, [wait.pk], by="user:1 ada", reason="The order is theirs.") == [
        runs[1].pk
    ]
    match = Match.objects.get()
    assert (match.by, match.reason, match.wait_id) == (
        "user:1 ada",
        "The order is theirs.",
        wait.pk,
    )
    assert [driven(run).state for run in runs] == ["waiting", "completed"]
    with pytest.raises(WaitIsOver):
        give(delivered("other").event, [wait.pk], by="user:1 ada", reason="Once more.")
    with pytest.raises(EventIsTaken):
        give(receipt.event, [wait_of(runs[0]).pk], by="user:1 ada", reason="To both.")


# --- ends and pauses --------------------------------------------------------------------------


def test_a_cancelled_wait_swallows_nothing() -> None:
    run = waiting()
    cancel_run(run.pk, by="user:1 ada")
    assert wait_of(run).state == "cancelled"
    assert delivered(event_id="evt_1").outcome is Outcome.LATE
    assert result_of(waiting())[0] == "evt_1"


def test_a_run_whose_end_was_asked_for_takes_nothing_more() -> None:
    run = waiting()
    Run.objects.filter(pk=run.pk).update(cancel_asked_at="2026-01-01T00:00Z")
    assert delivered().outcome is not Outcome.MATCHED


def test_a_paused_run_gets_its_event_and_goes_on_when_it_is_resumed() -> None:
    run = waiting()
    pause_run(run.pk, by="user:1 ada")
    assert delivered().outcome is Outcome.MATCHED
    assert driven(run).state == "ready"
    resume_run(run.pk, by="user:1 ada")
    forget()
    assert driven(run).state == "completed"


def test_a_person_who_ends_a_held_run_ends_its_wait() -> None:
    run = waiting()
    Run.objects.move(run, RunState.HELD, failure={"reason": "step_missing", "message": ""})
    run.refresh_from_db()
    move_run(run, DecisionKind.FAIL_RUN)
    assert wait_of(run).state == "cancelled"


# --- what it is given and gives ---------------------------------------------------------------


class Refund(BaseModel):
    id: Decimal
    note: str = ""


TYPED = expecting("typed", payload=Refund)
COUNTING_TYPED = expecting("counting_typed", on_deadline="continue", count=3, payload=Refund)


@pytest.mark.parametrize(
    ("payload", "shown"),
    [({"id": 2**63 - 1}, str(2**63 - 1)), ({"id": "1.10", "note": "é\U0001f600"}, "1.10")],
)
def test_a_payload_comes_as_the_type_that_is_declared(payload: Any, shown: str) -> None:
    delivered(payload=payload)
    run = waiting(TYPED)
    assert result_of(run)[1]["id"] == shown


def test_a_payload_that_does_not_fit_is_held_without_its_values() -> None:
    delivered(event_id="evt_1", payload={"id": "s3cret"})
    run = waiting(TYPED)
    assert run.state == "held"
    assert run.failure is not None
    assert run.failure["reason"] == "payload_unfit"
    message = run.failure["message"]
    assert message.startswith("event evt_1 of payments does not fit what the wait declares: at id")
    assert "s3cret" not in message
    # What it has taken stays its own: with a type that fits it goes on.
    assert wait_of(run).state == "resolved"


def test_what_came_until_the_deadline_is_read_again_once_its_type_is_mended() -> None:
    run = waiting(COUNTING_TYPED)
    delivered(event_id="evt_1", payload={"id": "no number"})
    let_deadline_come(run)
    run = swept(run)
    assert run.failure is not None
    assert run.failure["reason"] == "payload_unfit"
    Run.objects.move(run, RunState.READY, failure=None)
    mended = expecting("counting_typed", on_deadline="continue", count=3)
    registry._known[("tests.counting_typed", 1)] = mended
    assert result_of(driven(run)) == ["evt_1"]
    assert [wait.state for wait in run.waits.all()] == ["expired"]


def test_a_number_that_no_reader_would_keep_is_held_and_says_what_helps() -> None:
    delivered(payload={"id": 2**63 - 1})
    run = waiting()
    assert run.state == "held"
    assert run.failure is not None
    assert "beyond 2^53" in run.failure["message"]
    assert "payload=" in run.failure["message"]


@pytest.mark.parametrize(
    ("correlation", "said"),
    [
        (48213, "returned int: a correlation is text"),
        (None, "returned NoneType: a correlation is text"),
        ("", "a correlation that no event can have"),
        ("x" * 301, "a correlation that no event can have"),
        ("a\x00b", "a correlation that no event can have"),
    ],
)
def test_what_is_no_correlation_fails_the_step(correlation: Any, said: str) -> None:
    flow = Workflow("tests.mistaken")

    @flow.wait(event=TYPE)
    def refunded(run: RunView) -> str:
        return correlation  # type: ignore[no-any-return]

    registry._known.pop(("tests.mistaken", 1), None)
    run = begun(flow)
    run = driven(run)
    assert run.state == "failed"
    assert run.failure is not None
    assert said in run.failure["message"]


# --- rejected deliveries, replays, the second net ---------------------------------------------


def test_a_rejected_delivery_is_given_to_nobody_and_one_that_comes_again_mended_is() -> None:
    run = waiting()
    first = delivered(event_id="evt_1", problem="no correlation at data.id")
    assert first.outcome is Outcome.REJECTED
    assert driven(run).state == "waiting"
    again = delivered(event_id="evt_1", problem="no correlation at data.id")
    assert again.outcome is Outcome.DUPLICATE
    mended = delivered(event_id="evt_1", payload={"amount": 7})
    assert (mended.event, mended.outcome) == (first.event, Outcome.MATCHED)
    assert result_of(driven(run)) == ["evt_1", {"amount": 7}]
    assert event_of(first).problem == ""


def test_the_second_net_gives_what_was_missed() -> None:
    run = waiting()
    receipt = delivered("elsewhere")
    Event.objects.filter(pk=receipt.event).update(correlation="48213")
    assert SecondNet()() == 1
    assert driven(run).state == "completed"


def test_the_second_net_walks_through_all_waits_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("workflows.services.waits.LOOKED_AT", 2)
    runs = [waiting(correlation=str(number)) for number in range(5)]
    receipt = delivered("elsewhere")
    last = max(runs, key=lambda run: run.pk)
    correlation = wait_of(last).correlation
    Event.objects.filter(pk=receipt.event).update(correlation=correlation)
    net = SecondNet()
    assert [net() for _ in range(3)] == [0, 0, 1]


def test_only_the_run_that_waits_for_it_is_moved() -> None:
    runs = many_runs(3, "waiting")
    Wait.objects.bulk_create(
        Wait(run=run, step="x", visit=1, tenant=run.tenant, event_types=[TYPE], correlation=f"{n}")
        for n, run in enumerate(runs)
    )
    assert receive(incoming("2")).outcome is Outcome.MATCHED
    assert sorted(Run.objects.values_list("state", flat=True)) == ["ready", "waiting", "waiting"]


# --- where a run stands in its workflow -------------------------------------------------------


def test_a_wait_inside_a_parallel_branch_is_its_own_runs() -> None:
    flow = Workflow("tests.beside")

    @flow.wait(event=TYPE)
    def refunded(run: RunView) -> str:
        return "48213"

    @flow.step()
    def pack(run: RunView) -> str:
        return "packed"

    flow.parallel(refunded, pack, name="both")

    @flow.step()
    def close(run: RunView) -> str:
        return str(run.output("refunded").event_id)

    registry._known.pop((flow.name, 1), None)
    registry.add(flow)
    run = start(flow.name, {}, tenant=tenant())
    drive()
    assert delivered(event_id="evt_1").outcome is Outcome.MATCHED
    drive()
    run.refresh_from_db()
    assert (run.state, result_of(run)) == ("completed", "evt_1")


def waiting_under_version_1() -> Run:
    one, two = Workflow("tests.versioned"), Workflow("tests.versioned", version=2)

    @one.wait(event=TYPE, within=timedelta(days=3))
    def refunded(run: RunView) -> str:
        return "48213"

    @two.wait(event="charge.refund.updated", on_deadline="fail")
    def refund_seen(run: RunView) -> str:
        return "other"

    @two.step()
    def told(run: RunView) -> str:
        return str(run.output("refund_seen").event_id)

    two.migrates(from_version=1, steps={"refunded": "refund_seen"})
    for flow in (one, two):
        registry._known.pop((flow.name, flow.version), None)
        registry.add(flow)
    return driven(start(one.name, {}, tenant=tenant(), version=1))


def test_a_run_that_waits_moves_to_a_later_version_with_its_wait() -> None:
    run = waiting_under_version_1()
    before = wait_of(run)
    outcome = migrate_run(run.pk, 2, by="command:ada")
    assert isinstance(outcome.answer, Moves)
    after = wait_of(run)
    assert (after.pk, after.deadline, after.step) == (before.pk, before.deadline, "refund_seen")
    delivered(event_id="evt_1")
    assert result_of(driven(run)) == "evt_1"


def test_a_run_whose_event_has_come_takes_it_along_to_a_later_version() -> None:
    run = waiting_under_version_1()
    delivered(event_id="evt_1")
    assert isinstance(migrate_run(run.pk, 2, by="command:ada").answer, Moves)
    assert result_of(driven(run)) == "evt_1"


def test_a_loop_takes_an_event_that_came_between_two_visits() -> None:
    flow = Workflow("tests.twice")

    @flow.wait(event=TYPE)
    def refunded(run: RunView) -> str:
        return "48213"

    @flow.branch(to=("refunded", END))
    def is_enough(run: RunView) -> str:
        if run.visit == 2:
            return END
        delivered(event_id="evt_2")
        return "refunded"

    registry._known.pop((flow.name, 1), None)
    registry.add(flow)
    delivered(event_id="evt_1")
    run = driven(start(flow.name, {}, tenant=tenant()))
    assert run.state == "completed"
    taken = Match.objects.order_by("wait__visit").values_list("wait__visit", "event__event_id")
    assert list(taken) == [(1, "evt_1"), (2, "evt_2")]
