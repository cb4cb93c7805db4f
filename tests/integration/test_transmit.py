"""One sending of an operation: what leaves, how often, what its answer proves, what is kept of it.

The journal of the rehearsal destination is the judge of what was on the wire. Where a provider
misbehaves in ways that it does not rehearse, a `Scripted` one stands at the far side.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

import pytest
from cryptography.fernet import InvalidToken
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.db.models.functions import Now
from pydantic import BaseModel
from pytest_django import Settings

from reconciliation.adapters.base import Prepared, Transmitted
from reconciliation.core.errors import DispatchTurnedOff, InvalidProvider, NotAllowed
from reconciliation.core.states import DecisionKind, Purpose
from reconciliation.models import (
    AuditEntry,
    ContractVersion,
    Evidence,
    Hold,
    Operation,
    Provider,
    Transmission,
)
from reconciliation.rehearsal.client import JournalEntry
from reconciliation.sealing import seal, unseal
from reconciliation.services import transmit as transmitting
from reconciliation.services import write_step
from reconciliation.services.decisions import Answer, record_decision
from reconciliation.services.ledger import open_operation, operation_of, provider_of
from reconciliation.services.providers import adapter_of, contract_of
from reconciliation.services.reconcile import ask_again, look_up, reconcile
from tests.destination import RunningDestination
from tests.factories import (
    NOTE,
    advanced,
    code_of,
    open_hold_of,
    person,
    quick_contract,
    ready_provider,
    settled,
    started_run,
    tenant,
    wait_until,
)
from tests.waiting import wait_for
from workflows.core.definitions import Workflow
from workflows.core.errors import LostOwnership
from workflows.core.intents import Intent
from workflows.models import Run
from workflows.registry import registry
from workflows.services.claims import Claim, claim_run
from workflows.services.clock import database_now
from workflows.services.executor import take_step
from workflows.services.ownership import Keeper
from workflows.services.run_view import RunView
from workflows.services.runs import start

pytestmark = pytest.mark.django_db


# --- what tests start from --------------------------------------------------------------------


def the_operation() -> Operation:
    return Operation.objects.select_related(
        "run", "provider__contract_version", "provider__default_queue", "contract_version"
    ).get()


def posts(destination: RunningDestination) -> list[JournalEntry]:
    """Every write that reached the destination, wherever it was aimed."""
    return [entry for entry in destination.client.journal() if entry.method == "POST"]


def effects(destination: RunningDestination) -> int:
    return len(destination.client.effects())


def ledger(operation: Operation) -> list[tuple[str, str]]:
    return list(operation.transmissions.order_by("number").values_list("purpose", "state"))


def shipped(kind: str) -> dict[str, Any]:
    document: dict[str, Any] = ContractVersion.objects.get(
        slug=f"rehearsal-{kind}", version=1
    ).document
    return document


def parking_contract(kind: str = "keyed") -> ContractVersion:
    """A contract under which a lost write is not repeated before it cannot be on its way."""
    replay = shipped(kind)["replay"] | {"overlaps": False}
    return quick_contract(kind, replay=replay, timeout_seconds=1)


def proving_contract(**changes: Any) -> ContractVersion:
    """Without keys; finding nothing proves that nothing was done, once nothing is on its way."""
    rule = {
        "marker": "metadata.operation",
        "visibility_lag_seconds": 0,
        "absence_proof_after_seconds": 0,
    }
    return quick_contract("lookup", look_up=rule, timeout_seconds=1, **changes)


def expire_lease(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(lease_expires_at=Now() - timedelta(seconds=1))


def claim_at_write(run: Run) -> Claim:
    """The claim of a worker that has come to the write step of `run`."""
    keeper = Keeper()
    claim = claim_run(run.pk, keeper.worker)
    while claim is not None and claim.step.kind != "write":
        claim = take_step(claim, keeper)
    assert claim is not None
    return claim


@dataclass(frozen=True)
class Sender:
    """A worker that has written down that it sends, and has not sent yet."""

    claim: Claim
    operation: Operation
    transmission: Transmission

    def transmit(self) -> Any:
        contract = contract_of(self.operation)
        return transmitting.transmit(self.operation, self.transmission, contract)

    def record(self, outcome: Any) -> None:
        contract = contract_of(self.operation)
        transmitting.record(self.operation, self.transmission, outcome, contract)


def about_to_send(run: Run) -> Sender:
    claim = claim_at_write(run)
    intent = claim.step.function(RunView(claim))
    operation = open_operation(claim, intent, provider_of(claim))
    transmission = transmitting.begin(operation, claim, Purpose.FIRST, contract_of(operation))
    return Sender(claim, operation, transmission)


def decide(operation: Operation, kind: DecisionKind, resource: str = "") -> None:
    hold = open_hold_of(operation)
    answer = Answer(kind, NOTE, hold.version, uuid4(), code_of(operation.pk), resource=resource)
    record_decision(hold.pk, person(), answer)


# --- a provider that the test scripts ---------------------------------------------------------


@dataclass
class Scripted:
    """A provider at the far side of the wire that answers whatever the test says."""

    url: str = ""
    status: int = 201
    body: bytes = b'{"id": "r_1"}'
    headers: dict[str, str] = field(default_factory=lambda: {"Request-Id": "req_1"})
    # What it reads of a request before it answers; the answer may depend on it.
    answers: Callable[[BaseHTTPRequestHandler], bytes] | None = None
    sent: bytes = b""  # the body of the latest request
    requests: list[tuple[str, str]] = field(default_factory=list)


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    provider = Scripted()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            provider.sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            provider.requests.append((self.command, self.path))
            body = provider.answers(self) if provider.answers else provider.body
            self.send_response(provider.status)
            for name, value in {**provider.headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer  # noqa: N815 (names that the server calls)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    provider.url = f"http://127.0.0.1:{server.server_port}"
    yield provider
    server.shutdown()
    thread.join()
    server.server_close()


# --- what leaves ------------------------------------------------------------------------------

fees = {"fee": 100}
priced = Workflow("tests.priced")
asked: list[str] = []


@priced.write(provider="payments")
def charge(run: RunView) -> Intent:
    """Charge what the fee table says now"""
    asked.append("charge")
    return Intent("refunds.create", "order A1", dict(fees) | TERMS, f"Charge {fees['fee']}")


TERMS = {"order": "A1", "currency": "USD", "amount": 12500}


@pytest.fixture
def fee_table() -> Iterator[dict[str, int]]:
    registry.add(priced)
    asked.clear()
    yield fees
    fees["fee"] = 100


def test_a_replay_sends_the_same_bytes_though_the_code_would_send_others(
    destination: RunningDestination, fee_table: dict[str, int]
) -> None:
    """A03: one key never comes with two bodies."""
    ready_provider("payments", destination.url, contract_version=parking_contract())
    destination.client.arm("drop_before")
    run = advanced(start("tests.priced", {}, tenant=tenant()))
    fee_table["fee"] = 130
    run = settled(run)
    assert (run.state, asked) == ("completed", ["charge"])
    first, second = posts(destination)
    assert first.body == second.body
    assert json.loads(second.body)["fee"] == 100
    assert first.idempotency_key == second.idempotency_key == str(the_operation().pk)
    assert (first.operation, second.operation) == (str(the_operation().pk),) * 2
    assert first.attempt != second.attempt


def test_each_transmission_is_one_request_on_the_wire(destination: RunningDestination) -> None:
    """A02: nothing below repeats a write by itself."""
    ready_provider("payments", destination.url)
    destination.client.arm("apply_then_drop", times=2)
    destination.client.arm("proxy_502")
    settled(started_run("refund"))
    sent = the_operation().transmissions.order_by("number").values_list("pk", flat=True)
    assert [entry.attempt for entry in posts(destination)] == [str(pk) for pk in sent]
    assert len(sent) == 4
    assert effects(destination) == 1


def test_what_protects_a_send_is_stored_before_a_byte_of_it_leaves(
    destination: RunningDestination,
) -> None:
    """Promise P3."""
    provider = ready_provider("payments", destination.url)
    sender = about_to_send(started_run("refund"))
    assert posts(destination) == []
    operation = the_operation()
    assert operation.state == "sending"
    assert operation.first_sent_at == sender.transmission.started_at
    assert provider.contract_version is not None
    window = provider.contract_version.contract.replay
    assert window is not None
    assert operation.first_sent_at is not None
    assert operation.replay_not_after == operation.first_sent_at + window.window
    transmission = operation.transmissions.get()
    assert (transmission.state, transmission.attempt_id) == ("sending", sender.claim.attempt)


def test_the_window_counts_from_the_first_send(destination: RunningDestination) -> None:
    """A04."""
    ready_provider("payments", destination.url)
    destination.client.arm("apply_then_drop", times=2)
    settled(started_run("refund"))
    operation = the_operation()
    first = operation.transmissions.get(number=1)
    assert operation.transmissions.count() == 3
    assert operation.first_sent_at == first.started_at


def test_the_stored_request_holds_no_credential(destination: RunningDestination) -> None:
    ready_provider("payments", destination.url, credential_sealed=seal(b"sk_live_1"))
    advanced(started_run("refund"))
    request = unseal(the_operation().request_sealed)
    assert b"sk_live_1" not in request
    assert "Authorization" not in Prepared.from_bytes(request).headers


def test_the_authorisation_of_the_run_is_asked_at_the_send(
    destination: RunningDestination,
) -> None:
    """P2: a worker that was overtaken between the decision and the send sends nothing."""
    ready_provider("payments", destination.url)
    run = started_run("refund")
    claim = claim_at_write(run)
    operation = open_operation(claim, claim.step.function(RunView(claim)), provider_of(claim))
    expire_lease(run)
    assert claim_run(run.pk, Keeper().worker)
    with pytest.raises(LostOwnership):
        transmitting.send(operation, claim, Purpose.FIRST)
    assert not Transmission.objects.exists()
    assert posts(destination) == []


@pytest.mark.parametrize("switch", ["paused", "off"])
def test_a_switch_that_is_thrown_after_the_decision_to_send_still_counts(
    destination: RunningDestination, switch: str
) -> None:
    """Promise P13, A22."""
    ready_provider("payments", destination.url)
    claim = claim_at_write(started_run("refund"))
    operation = open_operation(claim, claim.step.function(RunView(claim)), provider_of(claim))
    Provider.objects.update(dispatch=switch)
    with pytest.raises(DispatchTurnedOff):
        transmitting.send(operation, claim, Purpose.FIRST)
    assert not Transmission.objects.exists()
    assert posts(destination) == []


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
    assert not run.outputs.filter(step="tell_requester").exists()


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
    assert not run.outputs.filter(step="tell_customer").exists()


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


# --- the wrong place --------------------------------------------------------------------------


@pytest.mark.parametrize("moved", [{"account": "acct_other"}, {"region": "eu-1"}])
def test_nothing_is_replayed_through_another_account_or_region(
    destination: RunningDestination, moved: dict[str, str]
) -> None:
    ready_provider("payments", destination.url, contract_version=parking_contract())
    destination.client.arm("apply_then_drop")
    run = advanced(started_run("refund"))
    Provider.objects.update(**moved)
    run = settled(run)
    hold = open_hold_of(the_operation())
    assert (run.state, hold.reason) == ("held", "not_ready")
    assert "the account, region, address" in hold.message
    assert (len(posts(destination)), effects(destination)) == (1, 1)


def test_nothing_is_replayed_at_another_address(
    destination: RunningDestination, scripted: Scripted
) -> None:
    ready_provider("payments", destination.url, contract_version=parking_contract())
    destination.client.arm("apply_then_drop")
    run = advanced(started_run("refund"))
    Provider.objects.update(base_url=scripted.url)
    assert settled(run).state == "held"
    assert scripted.requests == []
    assert len(posts(destination)) == 1


def test_what_was_never_sent_is_not_sent_elsewhere_either(
    destination: RunningDestination,
) -> None:
    ready_provider("payments", destination.url, dispatch="paused")
    run = advanced(started_run("refund"))
    Provider.objects.update(account="acct_other", dispatch="on")
    Operation.objects.update(due_at=Now())
    reconcile(the_operation().pk)
    assert open_hold_of(the_operation()).reason == "not_ready"
    run.refresh_from_db()
    assert (run.state, posts(destination)) == ("held", [])


def test_nothing_is_replayed_with_another_credential(destination: RunningDestination) -> None:
    """Architecture section 8: the scope is account, region, endpoint and credential."""
    provider = ready_provider(
        "payments",
        destination.url,
        adapter="http",  # whose account is its credential
        account="acct_a",
        credential_sealed=seal(b"acct_a"),
        contract_version=parking_contract(),
    )
    destination.client.arm("apply_then_drop")
    run = advanced(started_run("refund"))
    Provider.objects.filter(pk=provider.pk).update(credential_sealed=seal(b"acct_b"))
    settled(run)
    assert [effect.account for effect in destination.client.effects()] == ["acct_a"]


def test_finding_nothing_in_another_account_proves_nothing(
    destination: RunningDestination,
) -> None:
    contract = proving_contract()
    provider = ready_provider("machines", destination.url, contract_version=contract)
    sender = about_to_send(started_run("replacement_worker"))
    sender.transmit()  # it arrives, and its worker dies
    expire_lease(sender.operation.run)
    wait_until(sender.transmission.in_flight_until)

    Provider.objects.filter(pk=provider.pk).update(account="acct_other")
    run = settled(Run.objects.get())
    assert run.state == "held"
    Provider.objects.filter(pk=provider.pk).update(account="acct_demo")
    offered_again = open_hold_of(the_operation())
    assert offered_again.reason == "not_ready"
    with pytest.raises(NotAllowed, match="has not been asked"):
        decide(the_operation(), DecisionKind.SEND_AGAIN)
    assert not Evidence.objects.filter(kind="absence").exists()
    assert effects(destination) == 1


def test_a_person_who_asks_is_not_answered_by_another_account(
    destination: RunningDestination,
) -> None:
    provider = ready_provider("machines", destination.url, contract_version=proving_contract())
    sender = about_to_send(started_run("replacement_worker"))
    sender.transmit()  # it arrives, and its worker dies
    destination.client.arm("lookup_unavailable", times=None)
    expire_lease(sender.operation.run)
    run = settled(Run.objects.get())
    assert open_hold_of(the_operation()).reason == "look_up_unavailable"
    destination.client.disarm()
    wait_until(sender.transmission.in_flight_until)

    Provider.objects.filter(pk=provider.pk).update(account="acct_other")
    ask_again(the_operation().pk)
    Provider.objects.filter(pk=provider.pk).update(account="acct_demo")
    assert not the_operation().evidence.filter(kind="absence").exists()
    assert run.state == "held"


def test_nothing_is_replayed_as_another_user_of_the_address(scripted: Scripted) -> None:
    scripted.status = 500
    address = scripted.url.replace("http://", "http://acct_a:a@")
    ready_provider("payments", address, contract_version=parking_contract())
    run = advanced(started_run("refund"))
    assert [method for method, _ in scripted.requests] in ([], ["POST"])  # or it is refused
    Provider.objects.update(base_url=address.replace("acct_a:a", "acct_b:b"))
    settled(run)
    assert len(scripted.requests) <= 1


# --- the wrong time ---------------------------------------------------------------------------


def test_a_worker_that_was_frozen_before_its_send_sends_nothing_when_it_thaws(
    destination: RunningDestination,
) -> None:
    """A10: frozen between the commit and the first byte; somebody else has settled it since."""
    ready_provider("machines", destination.url, contract_version=proving_contract())
    frozen = about_to_send(started_run("replacement_worker"))
    expire_lease(frozen.operation.run)
    wait_until(frozen.transmission.in_flight_until)
    assert settled(Run.objects.get()).state == "completed"
    assert effects(destination) == 1

    frozen.transmit()
    assert effects(destination) == 1


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


def test_a_lost_send_is_unknown_to_whoever_takes_over(destination: RunningDestination) -> None:
    ready_provider("desk", destination.url)
    sender = about_to_send(started_run("ticket_triage"))
    expire_lease(sender.operation.run)
    run = settled(Run.objects.get())
    transmission = the_operation().transmissions.get()
    assert (run.state, transmission.state) == ("held", "unknown")
    assert transmission.detail_redacted == "the worker that sent it went quiet"
    assert transmission.ended_at is not None
    assert posts(destination) == []


def test_the_late_answer_of_a_stale_attempt_is_kept_as_evidence_and_changes_nothing_else(
    destination: RunningDestination,
) -> None:
    """A10, promise P2."""
    ready_provider("desk", destination.url)
    stale = about_to_send(started_run("ticket_triage"))
    outcome = stale.transmit()
    expire_lease(stale.operation.run)
    run = settled(Run.objects.get())
    before = Run.objects.values().get(), Transmission.objects.values().get()

    stale.record(outcome)
    operation = the_operation()
    assert (Run.objects.values().get(), Transmission.objects.values().get()) == before
    assert (run.state, operation.state) == ("held", "held")
    receipt = operation.evidence.get()
    assert (receipt.kind, receipt.completes) == ("receipt", True)
    assert receipt.resource == destination.client.effects()[0].resource_id


def test_a_late_answer_settles_what_is_held_by_itself(destination: RunningDestination) -> None:
    ready_provider("desk", destination.url)
    stale = about_to_send(started_run("ticket_triage"))
    outcome = stale.transmit()
    expire_lease(stale.operation.run)
    run = settled(Run.objects.get())
    stale.record(outcome)
    due = the_operation().due_at
    assert due is not None
    assert due <= database_now()  # the sweep brings it up
    reconcile(the_operation().pk)
    run = advanced(run)
    assert (run.state, the_operation().state) == ("completed", "verified")
    assert Hold.objects.get().state == "closed"
    assert len(posts(destination)) == 1


def test_proof_that_comes_while_the_run_is_held_for_its_lost_workers_leaves_no_hold_behind(
    destination: RunningDestination,
) -> None:
    """A run is held exactly as long as a hold of it is open: for whatever reason it is held."""
    ready_provider("desk", destination.url)
    stale = about_to_send(started_run("ticket_triage"))
    outcome = stale.transmit()
    for _ in range(2):  # two more workers, of which the first has given up the lost send
        expire_lease(stale.operation.run)
        claim = claim_run(stale.operation.run_id, Keeper().worker)
        assert claim is not None
        transmitting.give_up_lost_sends(the_operation(), claim)
    expire_lease(stale.operation.run)
    run = advanced(Run.objects.get())
    assert (run.state, run.failure["reason"]) == ("held", "workers_lost")

    stale.record(outcome)
    Operation.objects.filter(due_at__isnull=False).update(due_at=Now())
    reconcile(the_operation().pk)
    run.refresh_from_db()
    assert run.holds.filter(state="open").exists() is (run.state == "held")


def test_a_late_refusal_says_nothing_that_could_advance_or_end_a_run(
    destination: RunningDestination,
) -> None:
    ready_provider("payments", destination.url, contract_version=parking_contract())
    destination.client.arm("error_before", status=400)
    stale = about_to_send(started_run("refund"))
    outcome = stale.transmit()
    expire_lease(stale.operation.run)
    run = advanced(Run.objects.get())
    assert run.state == "waiting"
    stale.record(outcome)
    assert the_operation().evidence.get().kind == "rejection"
    assert (Run.objects.get().state, the_operation().state) == ("waiting", "unknown")


def test_an_answer_that_comes_during_the_take_over_is_used(
    destination: RunningDestination,
) -> None:
    ready_provider("desk", destination.url)
    stale = about_to_send(started_run("ticket_triage"))
    outcome = stale.transmit()
    expire_lease(stale.operation.run)
    later = claim_run(stale.operation.run_id, Keeper().worker)
    assert later is not None
    operation = operation_of(later)
    assert operation is not None
    stale.record(outcome)
    transmitting.give_up_lost_sends(operation, later)
    result = write_step.settle(later, operation)
    result.also()  # type: ignore[misc]
    assert the_operation().state == "verified"


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


def test_a_look_up_that_shows_ours_a_thousand_times_is_kept_in_bounds(scripted: Scripted) -> None:
    ready_provider("machines", scripted.url)
    about_to_send(started_run("replacement_worker"))
    scripted.status = 200
    ours = {"metadata": {"operation": str(the_operation().pk)}}
    scripted.body = json.dumps({"data": [{"id": f"m_{n}"} | ours for n in range(1000)]}).encode()
    look_up(the_operation())
    assert Evidence.objects.count() < 100


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


# --- a question that breaks -------------------------------------------------------------------


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

    wait_for(held, "somebody is asked", limit=10)
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


# --- keys that are gone -----------------------------------------------------------------------


def test_what_cannot_be_unsealed_is_not_written_down_as_sent(
    destination: RunningDestination, settings: Settings
) -> None:
    ready_provider("desk", destination.url, dispatch="paused")
    run = advanced(started_run("ticket_triage"))
    Provider.objects.update(dispatch="on")
    Operation.objects.update(due_at=Now())
    reconcile(the_operation().pk)
    settings.ROMULUS_KEYS = ["a-key-that-has-sealed-nothing"]
    run = advanced(run)
    assert run.state == "held"
    assert not Transmission.objects.exists()


def test_an_old_key_still_opens_what_it_sealed(
    destination: RunningDestination, settings: Settings
) -> None:
    ready_provider("payments", destination.url, contract_version=parking_contract())
    destination.client.arm("drop_before")
    run = advanced(started_run("refund"))
    settings.ROMULUS_KEYS = ["a-new-key", *settings.ROMULUS_KEYS]
    assert settled(run).state == "completed"
    first, second = posts(destination)
    assert first.body == second.body


def test_a_key_that_is_gone_opens_nothing() -> None:
    with pytest.raises(InvalidToken):
        unseal(b"nothing that was ever sealed")


# --- people and proof -------------------------------------------------------------------------


def test_the_words_of_a_person_do_not_contradict_a_provider(
    destination: RunningDestination,
) -> None:
    ready_provider("desk", destination.url)
    stale = about_to_send(started_run("ticket_triage"))
    outcome = stale.transmit()
    expire_lease(stale.operation.run)
    run = settled(Run.objects.get())
    decide(the_operation(), DecisionKind.APPLIED, resource="seen by Ada in the desk")
    assert settled(run).state == "completed"
    stale.record(outcome)
    assert Provider.objects.get().contradicted_at is None


def test_two_resources_of_one_operation_stop_every_replay_to_the_provider(
    destination: RunningDestination,
) -> None:
    provider = ready_provider("payments", destination.url)
    sender = about_to_send(started_run("refund"))
    sender.record(sender.transmit())
    outcome = sender.transmit()
    other = outcome.record.__class__(**{**outcome.record.__dict__, "resource": "re_another"})
    sender.record(outcome.__class__(outcome.report, other))
    provider.refresh_from_db()
    assert provider.contradicted_at is not None
    assert "re_another" in provider.contradiction
    assert Evidence.objects.filter(kind="conflict").count() == 1


# --- intents that cannot become a request -----------------------------------------------------

intents: dict[str, Intent] = {}
intending = Workflow("tests.intending")


@intending.write(provider="desk")
def comment(run: RunView) -> Intent:
    """Return what the test says"""
    return intents["it"]


def intended(**changes: Any) -> Run:
    registry.add(intending)
    fields: dict[str, Any] = {
        "action": "comments.create",
        "target": "ticket 17",
        "parameters": {"ticket": "17", "body": "Hello"},
        "summary": "Comment",
    }
    intents["it"] = Intent(**(fields | changes))
    return advanced(start("tests.intending", {}, tenant=tenant()))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"action": "comments.delete"}, "no action 'comments.delete' is declared"),
        ({"parameters": {"body": "Hello"}}, "takes 'ticket', which is not given"),
        ({"parameters": {"ticket": "1", "body": "a\x00"}}, r"at $.body: text with a NUL"),
        ({"parameters": {"ticket": "1", "body": ["\ud800"]}}, r"at $.body[0]: text with half"),
        ({"parameters": {"ticket": "1", "body": 2**60}}, r"at $.body: 1152921504606846976"),
        ({"parameters": {"ticket": "1", "body": float("nan")}}, r"at $.body: nan"),
        *(
            pytest.param(changes, says)
            for changes, says in [
                ({"parameters": {"ticket": "1", "amount": Decimal("1.5")}}, "$.amount"),
                ({"parameters": {"ticket": "1", "body": {1, 2}}}, "$.body"),
                ({"parameters": {"ticket": "1", "body": 2**53}}, "$.body"),
                ({"parameters": {1: "one", "ticket": "1"}}, "parameters"),
                ({"summary": "x" * 301}, "summary"),
                ({"target": "x" * 301}, "target"),
                ({"target": "a\x00b"}, "target"),
                ({"effect": "e" * 101}, "effect"),
                ({"currency": "EURO"}, "currency"),
                ({"amount": Decimal("NaN")}, "amount"),
            ]
        ),
    ],
)
def test_an_intent_that_cannot_become_a_request_fails_the_step_in_words(
    destination: RunningDestination, changes: dict[str, Any], says: str
) -> None:
    ready_provider("desk", destination.url)
    run = intended(**changes)
    assert (run.state, run.failure["reason"]) == ("failed", "intent_refused")
    assert says in run.failure["message"]
    assert not Operation.objects.exists()
    assert posts(destination) == []


def test_a_provider_that_is_not_set_up_is_named() -> None:
    run = intended()
    assert run.failure["reason"] in ("intent_refused", "not_ready")
    assert "provider 'desk', which is not set up here" in run.failure["message"]


@pytest.mark.parametrize("ticket", ["..", "."])
def test_a_parameter_stays_inside_its_part_of_the_path(scripted: Scripted, ticket: str) -> None:
    ready_provider("desk", scripted.url)
    intended(parameters={"ticket": ticket, "body": "Hello"})
    assert {path for _, path in scripted.requests} <= {f"/blind/v1/tickets/{ticket}/comments"}


@pytest.mark.parametrize(
    ("ticket", "path"),
    [
        ("a/b", "/blind/v1/tickets/a%2Fb/comments"),
        ("../../admin", "/blind/v1/tickets/..%2F..%2Fadmin/comments"),
        ("1?x=1#y", "/blind/v1/tickets/1%3Fx%3D1%23y/comments"),
        ("{body}", "/blind/v1/tickets/%7Bbody%7D/comments"),
    ],
)
def test_a_parameter_is_quoted_into_the_path(scripted: Scripted, ticket: str, path: str) -> None:
    ready_provider("desk", scripted.url)
    intended(parameters={"ticket": ticket, "body": "Hello"})
    assert scripted.requests == [("POST", path)]


def test_no_parameter_is_dropped_for_the_marker() -> None:
    provider = ready_provider("payments")
    assert provider.contract_version is not None
    adapter = adapter_of(provider, provider.contract_version.contract)
    parameters = {"order": "A1", "metadata": "a note that the author meant to send"}
    with pytest.raises(InvalidProvider, match="'metadata' stands where the provider's marker"):
        adapter.prepare("refunds.create", parameters, uuid4(), "k")


def test_a_refusal_is_held_where_the_author_says_so(destination: RunningDestination) -> None:
    holding = Workflow("tests.holding_write")

    @holding.write(provider="desk", on_failure="hold")
    def comment(run: RunView) -> Intent:
        return Intent("comments.create", "ticket 17", {"ticket": "17", "body": "x"}, "Comment")

    registry.add(holding)
    ready_provider("desk", destination.url, account="not-an-account")
    assert advanced(start("tests.holding_write", {}, tenant=tenant())).state == "held"


# --- secrets ----------------------------------------------------------------------------------

CREDENTIAL, PAYLOAD = "sk_live_51Nw0tAr3alKey", "the private words of a customer"
SENT = "Category: general. Urgent: no."  # what the write says, and nobody may see
# Where inputs and outputs are kept, for those who may see payloads.
PAYLOADS_BELONG_IN = {"workflows_run.input", "workflows_run.result", "workflows_stepoutput.value"}


def found_in_database(secret: str) -> set[str]:
    """The columns of every table in which `secret` can be read."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = 'public'"
        )
        columns = cursor.fetchall()
        found = set()
        for table, column, kind in columns:
            shown = f"encode({column}, 'escape')" if kind == "bytea" else f"{column}::text"
            statement = f"SELECT EXISTS (SELECT FROM {table} WHERE position(%s in {shown}) > 0)"  # noqa: S608
            cursor.execute(statement.replace(f"{table} WHERE", f'"{table}" WHERE'), [secret])
            if cursor.fetchone()[0]:
                found.add(f"{table}.{column}")
    return found


def echo_of(scripted: Scripted) -> Callable[[BaseHTTPRequestHandler], bytes]:
    """What a careless provider says of a request that it refuses."""

    def echo(request: BaseHTTPRequestHandler) -> bytes:
        said = f"{request.headers} {scripted.sent.decode()}"
        error = {"type": "authentication_error", "message": said, "code": request.path}
        return json.dumps({"error": error}).encode()

    return echo


@pytest.mark.parametrize(
    ("status", "state"), [(401, "failed"), (500, "held"), (201, "completed"), (302, "held")]
)
def test_neither_the_credential_nor_what_was_sent_is_kept_or_logged(
    scripted: Scripted,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    status: int,
    state: str,
) -> None:
    """A27, promise P9: a provider that echoes the request, with debug logging on."""
    caplog.set_level("DEBUG")
    scripted.status = status
    scripted.headers |= {"WWW-Authenticate": f"Bearer {CREDENTIAL}", "X-Body": PAYLOAD}
    if status != 201:
        scripted.answers = echo_of(scripted)
    ready_provider(
        "desk", scripted.url, adapter="http", credential_sealed=seal(CREDENTIAL.encode())
    )
    run = settled(started_run("ticket_triage", subject="Hello", body=PAYLOAD))
    assert run.state == state
    assert len(scripted.requests) == 1
    assert found_in_database(CREDENTIAL) == set()
    assert found_in_database(CREDENTIAL[:12]) == set()
    assert SENT in scripted.sent.decode()
    assert found_in_database(SENT) == set()
    assert found_in_database(PAYLOAD) <= PAYLOADS_BELONG_IN
    said = caplog.text + capfd.readouterr().err
    for secret in (CREDENTIAL[:12], SENT, PAYLOAD):
        assert secret not in said


def test_what_people_may_not_see_is_stored_as_a_digest_alone(
    destination: RunningDestination,
) -> None:
    ready_provider("desk", destination.url, visible_parameters=["ticket"])
    advanced(started_run("ticket_triage", body=PAYLOAD))
    operation = the_operation()
    assert operation.parameters_redacted == {"ticket": "T-17", "body": "[not shown]"}
    assert operation.parameters_digest
    assert AuditEntry.objects.filter(detail__icontains=PAYLOAD).count() == 0


def test_a_field_that_differs_is_told_without_its_value(
    destination: RunningDestination,
) -> None:
    ready_provider("payments", destination.url, visible_parameters=["order"])
    destination.client.arm("mismatched_receipt", field="amount")
    advanced(started_run("refund"))
    (difference,) = the_operation().evidence.get(kind="conflict").differences
    assert difference == {"field": "amount", "intended": "[not shown]", "found": "[not shown]"}


def test_a_password_in_an_address_is_not_copied_into_the_ledger(scripted: Scripted) -> None:
    address = scripted.url.replace("http://", f"http://app:{CREDENTIAL}@")
    ready_provider("desk", address)
    advanced(started_run("ticket_triage"))
    assert found_in_database(CREDENTIAL) <= {"reconciliation_provider.base_url"}


leaking = Workflow("tests.leaking")


@leaking.step(on_failure="hold")
def connect(run: RunView) -> None:
    raise ConnectionError(f"could not connect to postgres://app:{CREDENTIAL}@db.internal/orders")


def test_a_password_in_an_error_of_a_step_is_not_kept() -> None:
    """A27: a database error with the connection string in it."""
    registry.add(leaking)
    assert advanced(start("tests.leaking", {}, tenant=tenant())).state == "held"
    assert found_in_database(CREDENTIAL) == set()


talkative = Workflow("tests.talkative")


class Card(BaseModel):
    number: int


def store_twice() -> None:
    for _ in range(2):
        with transaction.atomic():
            get_user_model().objects.create_user(PAYLOAD)


def read_wrongly() -> None:
    Card.model_validate({"number": PAYLOAD})


@talkative.step(on_failure="hold")
def talk(run: RunView) -> None:
    {"store_twice": store_twice, "read_wrongly": read_wrongly}[run.input["act"]]()


@pytest.mark.parametrize("act", ["store_twice", "read_wrongly"])
def test_a_private_value_in_an_error_of_a_step_is_not_kept(act: str) -> None:
    """P9: what databases and validators add to their errors is the value itself."""
    registry.add(talkative)
    assert advanced(start("tests.talkative", {"act": act}, tenant=tenant())).state == "held"
    assert found_in_database(PAYLOAD) <= {"auth_user.username"}
