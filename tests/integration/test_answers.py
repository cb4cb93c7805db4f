"""Answers: what each of them proves, those that nobody expects, and questions that break.

Where a provider misbehaves in ways that the rehearsal destination does not rehearse, a `Scripted`
one stands at the far side.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from reconciliation.adapters.base import Transmitted
from reconciliation.models import Evidence, Hold, Operation, Provider
from reconciliation.services.reconcile import look_up, reconcile
from tests.claiming import expire_lease
from tests.destination import RunningDestination
from tests.factories import (
    advanced,
    open_hold_of,
    quick_contract,
    ready_provider,
    settled,
    started_run,
    wait_until,
)
from tests.scripted import Scripted
from tests.sending import about_to_send, effects, ledger, posts, shipped, the_operation
from tests.waiting import wait_for
from workflows.models import Run
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

# --- what an answer proves --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "reached"),
    [
        ("apply_then_drop", 1),
        ("drop_before", 0),
        ("truncated_body", 1),
        ("proxy_502", 1),
        ("proxy_502;applied=false", 0),
        ("redirect", 0),
        ("redirect;status=307", 0),
        ("redirect;status=308", 0),
        ("error_after;status=500", 1),
        ("error_before;status=503", 0),
        ("error_before;status=404", 0),
        ("error_before;status=409", 0),
        ("apply_then_delay;seconds=4", 1),
        ("never_apply", 0),
    ],
)
def test_what_is_not_proven_is_unknown_and_is_not_sent_again(
    destination: RunningDestination, fault: str, reached: int
) -> None:
    """Promises P4 and P5, at a provider with neither key nor look-up."""
    ready_provider("desk", destination.url)
    destination.client.arm(fault)
    run = settled(started_run("ticket_triage"))
    operation = the_operation()
    assert (run.state, operation.state) == ("held", "held")
    assert ledger(operation) == [("first", "unknown")]
    assert open_hold_of(operation).reason == "unguarded"
    assert [entry.path for entry in posts(destination)] == ["/blind/v1/tickets/T-17/comments"]
    assert effects(destination) == reached
    assert not run.attempts.outputs().filter(step="tell_requester").exists()


def test_a_connection_that_never_was_is_proven_not_sent_and_tried_again() -> None:
    ready_provider(
        "desk",
        "http://127.0.0.1:9",
        contract_version=quick_contract("blind", budget=shipped_budget("blind", not_sent=3)),
    )
    run = settled(started_run("ticket_triage"))
    operation = the_operation()
    assert (run.state, open_hold_of(operation).reason) == ("held", "unreachable")
    assert ledger(operation) == [("first", "not_sent")] * 3
    assert not operation.evidence.exists()


def shipped_budget(kind: str, **changes: Any) -> dict[str, Any]:
    quick = {"first_pause_seconds": 0.01, "longest_pause_seconds": 0.02}
    return shipped(kind)["budget"] | quick | changes


@pytest.mark.parametrize(
    "fault",
    [
        "error_before;status=402;type=card_error;code=declined",
        "error_before;status=400;type=invalid_request_error",
    ],
)
def test_a_refusal_for_good_is_one_send_and_the_end(
    destination: RunningDestination, fault: str
) -> None:
    """A05 a, b: no second try, no hold for what is known, and nobody is told that it happened."""
    ready_provider("payments", destination.url)
    destination.client.arm(fault, times=None)
    run = settled(started_run("refund"))
    operation = the_operation()
    assert (run.state, operation.state) == ("failed", "rejected")
    assert run.failure["reason"] == "rejected"
    assert fault.split("=")[1][:3] in run.failure["message"]
    assert ledger(operation) == [("first", "rejected")]
    assert len(posts(destination)) == 1
    assert not Hold.objects.exists()
    assert not run.attempts.outputs().filter(step="tell_customer").exists()


def test_a_refusal_for_now_is_tried_again_not_before_its_time(
    destination: RunningDestination,
) -> None:
    """A05 c."""
    ready_provider("payments", destination.url)
    destination.client.arm("error_before", status=429, retry_after=1)
    run = advanced(started_run("refund"))
    assert run.state == "waiting"
    assert len(posts(destination)) == 1
    reconcile(the_operation().pk)  # a hint that comes too early changes nothing
    assert Run.objects.get().state == "waiting"
    assert settled(run).state == "completed"
    operation = the_operation()
    first, second = operation.transmissions.order_by("number")
    assert first.ended_at is not None
    assert second.started_at - first.ended_at >= timedelta(seconds=1)
    assert effects(destination) == 1


def test_a_refusal_for_now_is_bounded_and_its_end_is_visible(
    destination: RunningDestination,
) -> None:
    """A05 c."""
    ready_provider("payments", destination.url)
    destination.client.arm("error_before", status=429, times=None)
    run = settled(started_run("refund"))
    assert (run.state, open_hold_of(the_operation()).reason) == ("held", "refused_too_often")
    assert len(posts(destination)) == 4


def test_a_provider_that_is_away_is_bounded_and_its_end_is_visible(
    destination: RunningDestination,
) -> None:
    """A05 d: one operation, one key, and a person at the end of the budget."""
    ready_provider("payments", destination.url)
    destination.client.arm("error_before", status=503, times=None)
    run = settled(started_run("refund"))
    assert (run.state, open_hold_of(the_operation()).reason) == ("held", "budget_spent")
    assert len({entry.idempotency_key for entry in posts(destination)}) == 1
    assert len(posts(destination)) == 4


def test_a_key_that_came_with_other_parameters_is_held_and_counts_as_nothing(
    destination: RunningDestination,
) -> None:
    """A03: neither a success nor a plain refusal."""
    ready_provider("payments", destination.url)
    destination.client.arm("drop_before")
    destination.client.arm("error_before", status=400, type="idempotency_error", code="key_reused")
    run = settled(started_run("refund"))
    operation = the_operation()
    assert (run.state, operation.state) == ("held", "held")
    assert open_hold_of(operation).reason == "key_mismatch"
    assert ledger(operation) == [("first", "unknown"), ("replay", "unknown")]
    assert operation.transmissions.get(number=2).meaning == "key_mismatch"
    assert len(posts(destination)) == 2
    assert not operation.evidence.exists()


def test_a_key_that_is_still_executing_is_neither_success_nor_refusal(
    destination: RunningDestination,
) -> None:
    ready_provider("payments", destination.url)
    destination.client.arm("apply_then_drop")
    destination.client.arm("key_in_flight")
    run = settled(started_run("refund"))
    assert run.state == "completed"
    assert [row[1] for row in ledger(the_operation())] == ["unknown", "unknown", "acknowledged"]
    assert effects(destination) == 1


# --- answers that nobody expects --------------------------------------------------------------


def test_an_acknowledgement_is_never_followed_by_a_second_send(
    destination: RunningDestination,
) -> None:
    """A documented 409 that names what is there already, at a provider without keys."""
    documented = {"status": 409, "means": "acknowledged"}
    contract = quick_contract("blind", answers=[documented, *shipped("blind")["answers"]])
    provider = ready_provider("desk", destination.url, contract_version=contract)
    provider.settings["actions"]["comments.create"]["resource"] = "id || error.code"
    provider.save()
    destination.client.arm("error_after", status=409, code="c_17")
    settled(started_run("ticket_triage"))
    assert len(posts(destination)) == 1
    assert effects(destination) == 1


def test_a_yes_that_shows_nothing_proves_nothing(destination: RunningDestination) -> None:
    """An adapter of somebody else's, which reads the ID and no record."""
    ready_provider("desk", destination.url)
    sender = about_to_send(started_run("ticket_triage"))
    outcome = sender.transmit()
    sender.record(Transmitted(outcome.report))
    assert sender.operation.transmissions.get().state == "unknown"
    expire_lease(sender.operation.run)
    settled(Run.objects.get())
    assert open_hold_of(the_operation()).reason == "unguarded"
    assert len(posts(destination)) == 1


@pytest.mark.parametrize("after", ["1e400", "99999999999999", "nan"])
def test_a_retry_after_beyond_reason_does_not_lose_the_refusal(
    scripted: Scripted, after: str
) -> None:
    scripted.status, scripted.body = 429, b'{"error": {"type": "rate_limit_error"}}'
    scripted.headers["Retry-After"] = after
    ready_provider("payments", scripted.url)
    advanced(started_run("refund"))
    assert the_operation().transmissions.first().state == "rejected"  # type: ignore[union-attr]


@pytest.mark.parametrize("after", ["-5", "soon", "", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_retry_after_of_another_form_is_left_to_the_contract_s_own_pacing(
    scripted: Scripted, after: str
) -> None:
    scripted.status, scripted.body = 429, b'{"error": {"type": "rate_limit_error"}}'
    scripted.headers["Retry-After"] = after
    ready_provider("payments", scripted.url)
    run = settled(started_run("refund"))
    assert (run.state, open_hold_of(the_operation()).reason) == ("held", "refused_too_often")


@pytest.mark.parametrize("resource", ["r" * 400, "re_\u0000", "re_\ud800"])
def test_an_id_that_cannot_be_kept_as_it_is_does_not_lose_the_answer(
    scripted: Scripted, resource: str
) -> None:
    """P4: a success that was answered must never look as if nothing had been."""
    scripted.body = json.dumps({"id": resource}).encode()
    ready_provider("desk", scripted.url)
    advanced(started_run("ticket_triage"))
    operation = the_operation()
    assert operation.state != "sending"
    assert operation.transmissions.get().state != "sending"


def test_a_state_that_cannot_be_kept_as_it_is_does_not_break_the_check(scripted: Scripted) -> None:
    scripted.answers = lambda request: (
        b'{"id": "re_1"}' if request.command == "POST" else b'{"status": "a\\u0000b"}'
    )
    scripted.status = 200
    ready_provider("payments", scripted.url)
    run = advanced(started_run("refund"))
    assert (run.state, the_operation().state) == ("held", "postcondition_failed")


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b'"ok"', b"{", b"\xff", b"[" * 200_000, b"{}", b'{"id": null}']
)
def test_a_success_that_names_nothing_is_unknown(scripted: Scripted, body: bytes) -> None:
    scripted.body = body
    ready_provider("desk", scripted.url)
    run = settled(started_run("ticket_triage"))
    operation = the_operation()
    assert (run.state, operation.state) == ("held", "held")
    assert (ledger(operation), len(scripted.requests)) == ([("first", "unknown")], 1)
    assert open_hold_of(operation).reason == "unguarded"


def test_an_answer_that_is_larger_than_any_receipt_is_unknown(scripted: Scripted) -> None:
    scripted.body = json.dumps({"id": "r_1", "pad": "x" * 2_000_000}).encode()
    ready_provider("desk", scripted.url)
    settled(started_run("ticket_triage"))
    assert ledger(the_operation()) == [("first", "unknown")]


def test_an_answer_without_the_provider_s_own_mark_is_not_the_provider_s(
    scripted: Scripted,
) -> None:
    scripted.headers.clear()
    ready_provider("desk", scripted.url)
    settled(started_run("ticket_triage"))
    assert ledger(the_operation()) == [("first", "unknown")]


# --- look-ups, and questions that break -------------------------------------------------------


def waiting_for_look_up(destination: RunningDestination) -> Run:
    """A run whose write was lost, and whose look-up is due."""
    ready_provider("machines", destination.url)
    destination.client.arm("apply_then_drop")
    destination.client.arm("lookup_unavailable", retry_after=1)
    run = advanced(started_run("replacement_worker"))
    assert run.state == "waiting"
    wait_until(the_operation().due_at)  # type: ignore[arg-type]
    return run


def rename_the_action() -> None:
    provider = Provider.objects.get()
    actions = provider.settings["actions"]
    Provider.objects.update(settings={"actions": {"machines.make": actions["machines.create"]}})


def break_the_expression() -> None:
    provider = Provider.objects.get()
    provider.settings["actions"]["machines.create"]["look_up"]["items"] = "data["
    provider.save()


def lose_the_adapter() -> None:
    Provider.objects.update(adapter="gone")


@pytest.mark.parametrize("broken", [rename_the_action, break_the_expression, lose_the_adapter])
def test_a_question_that_cannot_be_asked_ends_with_a_person(
    destination: RunningDestination, broken: Callable[[], None]
) -> None:
    """P12: a provider that was set up anew while a write of it is unknown."""
    run = waiting_for_look_up(destination)
    broken()

    def held() -> bool:
        Operation.objects.filter(due_at__isnull=False).update(due_at=Now())
        reconcile(the_operation().pk)
        run.refresh_from_db()
        return run.state == "held"

    wait_for(held, "somebody is asked")
    assert Hold.objects.filter(state="open").exists()


def test_a_filter_that_was_ignored_shows_nothing_about_ours(scripted: Scripted) -> None:
    """Architecture section 8: never because a filter was sent."""
    ready_provider("machines", scripted.url)
    about_to_send(started_run("replacement_worker"))
    scripted.status = 200
    strangers = [{"id": f"m_{n}", "metadata": {"operation": "another"}} for n in range(100)]
    scripted.body = json.dumps({"data": strangers, "has_more": True}).encode()
    look_up(the_operation())
    assert not Evidence.objects.filter(kind="absence").exists()


def test_a_look_up_that_shows_ours_a_thousand_times_is_kept_in_bounds(scripted: Scripted) -> None:
    ready_provider("machines", scripted.url)
    about_to_send(started_run("replacement_worker"))
    scripted.status = 200
    ours = {"metadata": {"operation": str(the_operation().pk)}}
    scripted.body = json.dumps({"data": [{"id": f"m_{n}"} | ours for n in range(1000)]}).encode()
    look_up(the_operation())
    assert Evidence.objects.count() < 100


def test_a_look_up_speaks_for_the_moment_at_which_it_was_asked(
    destination: RunningDestination,
) -> None:
    ready_provider("machines", destination.url)
    about_to_send(started_run("replacement_worker"))
    destination.client.arm("apply_then_delay", method="GET", seconds=0.5)
    asked_at = database_now()
    look_up(the_operation())
    absence = Evidence.objects.get(kind="absence")
    assert absence.observed_at < asked_at + timedelta(seconds=0.5)
