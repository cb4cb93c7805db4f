"""Stripe's own client, and a destination that speaks what Stripe documents of its two APIs."""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
import stripe

from reconciliation.models import ContractVersion
from tests.destination import RunningDestination, eventually
from tests.lanes.clients import StripeClient, StripeClientV2
from tests.lanes.playing import (
    FOUND,
    REPLAYED,
    SETTLED,
    TIMEOUT_SECONDS,
    VARIANTS,
    ends,
    lane,
)

pytestmark = pytest.mark.lanes

PAYMENT = {"amount": 12500, "currency": "usd"}
PAYOUT = {"amount": {"value": 12500, "currency": "usd"}}
# Its first request executes until the destination ends.
SLOW = "a-key-of-its-own"
DECLINED = {**PAYMENT, "payment_method": "pm_card_chargeDeclined"}


def client(destination: RunningDestination, api: str) -> Any:
    return stripe.StripeClient(
        "acct_lane",
        base_addresses={"api": f"{destination.url}/{api}"},
        max_network_retries=0,
        http_client=stripe.RequestsClient(timeout=10),
    )


def pay(destination: RunningDestination, key: str = "k1", **changes: Any) -> Any:
    intents = client(destination, "stripe-v1").v1.payment_intents
    return intents.create({**PAYMENT, **changes}, options={"idempotency_key": key})


def pay_out(destination: RunningDestination, key: str = "k1", **changes: Any) -> Any:
    payments = client(destination, "stripe-v2").v2.money_management.outbound_payments
    return payments.create({**PAYOUT, **changes}, {"idempotency_key": key})


def effects(destination: RunningDestination) -> int:
    return len(destination.client.effects())


def was_replayed(made: Any) -> bool:
    return bool(made.last_response.headers.get("Idempotent-Replayed") == "true")


# --- what it documents ----------------------------------------------------------------------------


def test_v1_gives_the_first_result_for_a_day_and_then_pays_again(
    destination: RunningDestination,
) -> None:
    first, again = pay(destination), pay(destination)
    assert (first.id, was_replayed(first)) == (again.id, False)
    assert was_replayed(again)
    destination.client.settings("stripe-v1", clock_ahead_seconds=hours(23))
    assert was_replayed(pay(destination))
    destination.client.settings("stripe-v1", clock_ahead_seconds=hours(25))
    assert pay(destination).id != first.id
    assert effects(destination) == 2


def test_v2_gives_the_first_result_for_thirty_days(destination: RunningDestination) -> None:
    first = pay_out(destination)
    destination.client.settings("stripe-v2", clock_ahead_seconds=hours(26))
    assert (pay_out(destination).id, effects(destination)) == (first.id, 1)
    destination.client.settings("stripe-v2", clock_ahead_seconds=hours(24 * 30 + 1))
    assert pay_out(destination).id != first.id


def test_other_parameters_under_a_key_are_an_idempotency_error(
    destination: RunningDestination,
) -> None:
    pay(destination)
    with pytest.raises(stripe.IdempotencyError) as refused:
        pay(destination, amount=12501)
    assert (refused.value.http_status, effects(destination)) == (400, 1)


def test_v1_keeps_a_decline_under_its_key_and_v2_tries_again(
    destination: RunningDestination,
) -> None:
    for replayed in (None, "true"):
        with pytest.raises(stripe.CardError) as declined:
            pay(destination, **DECLINED)
        assert declined.value.headers.get("Idempotent-Replayed") == replayed
    declines = {"payment_method": DECLINED["payment_method"]}
    for _ in range(2):
        with pytest.raises(stripe.StripeError) as declined_v2:
            pay_out(destination, **declines)
        assert declined_v2.value.headers.get("Idempotent-Replayed") is None
    assert effects(destination) == 0


def test_v1_keeps_a_500_and_v2_drives_the_work_on(destination: RunningDestination) -> None:
    destination.client.arm("error_after", personality="stripe-v1")
    destination.client.arm("error_after", personality="stripe-v2")
    for _ in range(2):
        with pytest.raises(stripe.APIError):
            pay(destination)
    with pytest.raises(stripe.APIError):
        pay_out(destination, key="k2")
    assert pay_out(destination, key="k2").id
    assert effects(destination) == 2  # one of each


def test_a_key_whose_first_request_is_executing_is_in_use(destination: RunningDestination) -> None:
    destination.client.arm("slow", personality="stripe-v1", seconds=600)
    waiting = threading.Thread(target=lambda: swallowed(destination), daemon=True)
    waiting.start()
    eventually(destination.client.journal)
    with pytest.raises(stripe.StripeError) as refused:
        pay(destination, SLOW)
    assert refused.value.http_status == 409
    assert refused.value.json_body["error"]["code"] == "idempotency_key_in_use"
    assert refused.value.headers["Stripe-Should-Retry"] == "true"


def swallowed(destination: RunningDestination) -> None:
    with suppress(stripe.StripeError):
        pay(destination, SLOW)


def hours(number: float) -> float:
    return timedelta(hours=number).total_seconds()


# --- the lanes ------------------------------------------------------------------------------------


def shipped(slug: str) -> dict[str, Any]:
    """The shipped contract, less patient."""
    document: dict[str, Any] = ContractVersion.objects.filter(slug=slug).latest("version").document
    changes = {"timeout_seconds": TIMEOUT_SECONDS, "deadlines": {}}
    return {**document, **changes}


@pytest.mark.django_db
def test_v1_settles_what_is_lost_by_its_list_and_then_by_its_key(
    destination: RunningDestination,
) -> None:
    document = shipped("stripe-v1")
    stripes = lane(StripeClient, f"{destination.url}/stripe-v1", PAYMENT, document)
    played, outcome = stripes.play("plain", "same_key_twice", "other_parameters", *VARIANTS)
    assert ends(played) == {
        "plain": SETTLED,
        "same_key_twice": SETTLED,
        "other_parameters": SETTLED,
        "lost_answer": FOUND,
        "never_arrived": REPLAYED,
        "late_answer": FOUND,
    }
    assert (set(outcome.claims.values()), outcome.breaches) == ({"confirmed"}, 0)


@pytest.mark.django_db
def test_v2_settles_what_is_lost_by_its_key(destination: RunningDestination) -> None:
    document = shipped("stripe-v2")
    stripes = lane(StripeClientV2, f"{destination.url}/stripe-v2", PAYOUT, document)
    played, outcome = stripes.play("plain", "same_key_twice", *VARIANTS)
    ledgers = {name: tuple(each.ledger) for name, each in played.items()}
    assert ledgers == {
        "plain": SETTLED[2],
        "same_key_twice": SETTLED[2],
        "lost_answer": REPLAYED[2],
        "never_arrived": REPLAYED[2],
        "late_answer": REPLAYED[2],
    }
    assert effects(destination) == len(played)
    assert (outcome.claims["replay"], outcome.breaches) == ("confirmed", 0)
