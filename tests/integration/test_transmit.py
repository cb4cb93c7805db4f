"""One sending of an operation: what leaves, how often, and where to.

The journal of the rehearsal destination is the judge of what was on the wire.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from django.db.models.functions import Now

from reconciliation.adapters.base import Prepared
from reconciliation.adapters.uptime import uptime
from reconciliation.core.errors import DispatchTurnedOff, NotAllowed
from reconciliation.core.states import DecisionKind, Purpose
from reconciliation.models import Evidence, Operation, Provider, Transmission
from reconciliation.sealing import seal, unseal
from reconciliation.services import transmit as transmitting
from reconciliation.services.providers import contract_of
from reconciliation.services.reconcile import ask_again, reconcile
from tests.claiming import claim_at_write, expire_lease
from tests.deciding import decide
from tests.destination import RunningDestination
from tests.factories import (
    advanced,
    open_hold_of,
    ready_provider,
    settled,
    started_run,
    switched,
    tenant,
    wait_until,
)
from tests.scripted import Scripted
from tests.sending import (
    Sender,
    about_to_send,
    effects,
    opened,
    parking_contract,
    posts,
    proving_contract,
    the_operation,
)
from workflows.core.definitions import Workflow
from workflows.core.errors import LostOwnership
from workflows.core.intents import Intent
from workflows.models import Run
from workflows.registry import registry
from workflows.services.claims import claim_run
from workflows.services.ownership import Keeper
from workflows.services.run_view import RunView
from workflows.services.runs import start

pytestmark = pytest.mark.django_db

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
    assert transmission.state == "sending"
    sent_by = (transmission.attempt, transmission.worker, transmission.fence)
    assert sent_by == (sender.claim.attempt, sender.claim.worker, sender.claim.fence)


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
    operation = opened(claim)
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
    operation = opened(claim)
    switched(Provider.objects.get(), switch)
    with pytest.raises(DispatchTurnedOff):
        transmitting.send(operation, claim, Purpose.FIRST)
    assert not Transmission.objects.exists()
    assert posts(destination) == []


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


@pytest.mark.parametrize("frozen_seconds", [0, 1.5])  # of the two that it may take
def test_a_worker_that_was_frozen_between_its_claim_to_send_and_the_send_asks_once_more(
    frozen_seconds: float, destination: RunningDestination
) -> None:
    """Promise P13. One that goes straight on is on record as under way: the switch has seen it."""
    ready_provider("payments", destination.url)
    sender = about_to_send(started_run())
    sender.transmission.send_before = uptime() + timeout_of(sender) - frozen_seconds
    switched(Provider.objects.get(), "off")
    sender.record(sender.transmit())
    sent = 0 if frozen_seconds else 1
    assert len(posts(destination)) == sent
    if frozen_seconds:
        transmission = the_operation().transmissions.get()
        assert (transmission.state, the_operation().state) == ("not_sent", "intended")
        assert transmission.detail_redacted == "dispatch was turned off before it left"
        assert the_operation().first_sent_at is None


def timeout_of(sender: Sender) -> float:
    return contract_of(sender.operation).timeout.total_seconds()


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
    Provider.objects.update(account="acct_other")
    switched(Provider.objects.get(), "on")
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
        decide(open_hold_of(the_operation()), DecisionKind.SEND_AGAIN)
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
