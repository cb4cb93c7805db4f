"""Twenty-six hours after a send whose answer was lost, at Stripe's API v1 and at its API v2.

The rows are written as they were a day ago; the destination's clock is set ahead as far.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from reconciliation.adapters.uptime import uptime
from reconciliation.core.protection import in_flight_until
from reconciliation.core.states import OperationState, Purpose, TransmissionState
from reconciliation.models import ContractVersion, Operation, Transmission
from reconciliation.sealing import seal
from reconciliation.services.ledger import described, provider_of
from reconciliation.services.providers import contract_of
from reconciliation.services.transmit import transmit
from tests.claiming import claim_at_write
from tests.destination import RunningDestination
from tests.factories import open_hold_of, ready_provider, settled, tenant
from tests.sending import effects, ledger, posts
from workflows.core.definitions import Workflow
from workflows.core.intents import Intent
from workflows.models import Run
from workflows.registry import registry
from workflows.services.clock import database_now
from workflows.services.run_view import RunView
from workflows.services.runs import start

pytestmark = pytest.mark.django_db

LATER = timedelta(hours=26)
PATHS = {"stripe-v1": "/v1/payment_intents", "stripe-v2": "/v2/money_management/outbound_payments"}
QUICK = {"first_pause_seconds": 0.01, "longest_pause_seconds": 0.02, "look_ups": 3}

paid = Workflow("tests.paid_a_day_ago")


@paid.write(provider="payments")
def pay(run: RunView) -> Intent:
    return Intent(
        action="pay", target="order ORD-26", parameters=run.input["parameters"], summary="Pay"
    )


def stripe(api: str, destination: RunningDestination) -> None:
    shipped = ContractVersion.objects.filter(slug=api).latest("version").document
    document = {**shipped, "version": 1000, "budget": {**shipped["budget"], **QUICK}}
    version = ContractVersion.objects.create(slug=api, version=1000, document=document)
    ready_provider(
        "payments",
        f"{destination.url}/{api}",
        adapter=api,
        contract_version=version,
        credential_sealed=seal(b"acct_demo"),
        settings={"actions": {"pay": {"path": PATHS[api], "resource": "id"}}},
    )


def lost_a_day_ago(api: str, destination: RunningDestination, *, arrived: bool) -> Run:
    """A run whose one send left 26 hours ago; nobody has looked at it since."""
    stripe(api, destination)
    registry.add(paid)
    amount: Any = {"value": 12500, "currency": "usd"} if api == "stripe-v2" else 12500
    parameters = {"amount": amount} | ({} if api == "stripe-v2" else {"currency": "usd"})
    run = start(paid.name, {"parameters": parameters}, tenant=tenant())
    claim = claim_at_write(run)
    provider = provider_of(claim)
    assert provider is not None
    operation = described(claim, claim.step.function(RunView(claim)), provider)
    contract = contract_of(operation)
    sent_at = database_now() - LATER
    operation.created_at = operation.first_sent_at = sent_at
    assert contract.replay is not None
    operation.replay_not_after = sent_at + contract.replay.window
    operation.state = OperationState.UNKNOWN
    operation.save(force_insert=True)
    sent = Transmission(
        operation=operation,
        number=1,
        attempt=claim.attempt,
        worker=claim.worker,
        fence=claim.fence,
        purpose=Purpose.FIRST,
        started_at=sent_at,
        in_flight_until=in_flight_until(contract, sent_at),
        ended_at=sent_at + contract.timeout,
        state=TransmissionState.UNKNOWN,
    )
    sent.save(force_insert=True)
    if arrived:
        sent.send_before = uptime() + contract.timeout_seconds
        transmit(operation, sent, contract)
        assert effects(destination) == 1
    destination.client.settings(api, clock_ahead_seconds=LATER.total_seconds())
    Run.objects.filter(pk=run.pk).update(lease_expires_at=sent_at)
    return run


def the_operation(run: Run) -> Operation:
    return Operation.objects.get(run=run)


@pytest.mark.parametrize("asked", ["found", "nothing", "away"])
def test_on_v1_nothing_is_sent_again(asked: str, destination: RunningDestination) -> None:
    run = lost_a_day_ago("stripe-v1", destination, arrived=asked == "found")
    if asked == "away":
        destination.client.arm("lookup_unavailable", times=None)
    before = len(posts(destination))
    run = settled(run)
    operation = the_operation(run)
    assert ledger(operation) == [("first", "unknown")]
    assert len(posts(destination)) == before
    if asked == "found":
        assert (run.state, operation.state) == ("completed", "verified")
        return
    hold = open_hold_of(operation)
    reason = "window_over" if asked == "nothing" else "window_over_unasked"
    assert (run.state, hold.reason) == ("held", reason)
    assert "The key may be gone" in hold.message
    assert ("could not be asked" in hold.message) == (asked == "away")


@pytest.mark.parametrize("arrived", [True, False])
def test_on_v2_the_same_request_is_sent_again_under_its_key(
    arrived: bool, destination: RunningDestination
) -> None:
    run = settled(lost_a_day_ago("stripe-v2", destination, arrived=arrived))
    operation = the_operation(run)
    assert (run.state, operation.state) == ("completed", "verified")
    assert ledger(operation) == [("first", "unknown"), ("replay", "acknowledged")]
    assert effects(destination) == 1
    assert {entry.idempotency_key for entry in posts(destination)} == {operation.idempotency_key}


def test_on_v2_a_first_try_that_failed_is_no_saved_error(destination: RunningDestination) -> None:
    """What failed is driven on by its repeat, so the failure proved nothing."""
    run = lost_a_day_ago("stripe-v2", destination, arrived=False)
    destination.client.arm("error_before", status=402, type="card_error")
    run = settled(run)
    operation = the_operation(run)
    assert (run.state, operation.state) == ("completed", "verified")
    states = [state for _, state in ledger(operation)]
    assert states == ["unknown", "unknown", "acknowledged"]
    assert effects(destination) == 1
