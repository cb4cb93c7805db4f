"""What must be true before a write is read by its adapter, just before it leaves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciliation.adapters.base import Connection, Prepared, Unavailable, Verified
from reconciliation.adapters.registry import adapter_for
from reconciliation.models import Hold, Operation, Provider
from reconciliation.rehearsal.providers import ACTIONS
from tests.contract.far_side import FarSide, Said, Seen
from tests.contract.lanes import CONTRACTS, LOOPBACK
from tests.factories import advanced, ready_provider, tenant
from workflows.core.definitions import Workflow
from workflows.core.intents import Intent
from workflows.models import AuthorisationRecord, Run
from workflows.registry import registry
from workflows.services.run_view import RunView
from workflows.services.runs import start

pytestmark = pytest.mark.django_db

guarded = Workflow("tests.guarded")
expects: dict[str, Any] = {}


@guarded.write(provider="payments")
def refund(run: RunView) -> Intent:
    return Intent(
        action="refunds.create",
        target="order ORD-1",
        parameters={"order": "ORD-1", "amount": 500, "currency": "EUR"},
        summary="Refund order ORD-1",
        precondition={"state": "paid", **expects},
    )


REQUEST_ID = {"Request-Id": "req_1"}  # by which the contract knows an answer of the provider's own


class Shop:
    """A provider with an order that can be refunded, and what it was asked."""

    def __init__(self, side: FarSide) -> None:
        self.side = side
        self.order: Any = {"state": "paid", "refunded": 0}
        self.status = 200
        side.answers = self.answer

    def answer(self, seen: Seen) -> Said:
        if seen.path == "/orders/ORD-1":
            return Said(self.status, body=json.dumps(self.order).encode())
        if seen.method == "POST":
            sent = json.loads(seen.body)
            made = sent | {"id": "re_1", "account": "acct_demo", "status": "succeeded"}
            return Said(201, REQUEST_ID, json.dumps(made).encode())
        return Said(200, body=b'{"id": "re_1", "status": "succeeded"}')

    @property
    def asked(self) -> list[str]:
        return [seen.method for seen in self.side.seen]


@pytest.fixture
def shop(side: FarSide) -> Shop:
    registry.add(guarded)
    expects["refunded"] = 0
    actions = {
        name: action | {"precondition": {"path": "/orders/{order}"}}
        for name, action in ACTIONS["keyed"].items()
    }
    ready_provider("payments", side.url, settings={"actions": actions})
    return Shop(side)


def written() -> Run:
    return advanced(start("tests.guarded", {}, tenant=tenant()))


def test_it_is_read_once_before_the_write(shop: Shop) -> None:
    assert written().state == "completed"
    assert shop.asked == ["GET", "POST", "GET"]
    row = AuthorisationRecord.objects.get()
    assert (row.allowed, row.findings[-1]["check"]) == (True, "precondition")


@pytest.mark.parametrize(
    ("order", "status"),
    [
        ({"state": "refunded", "refunded": 0}, 200),
        ({"state": "paid", "refunded": False}, 200),
        ({"state": "paid"}, 200),
        ({"state": "paid", "refunded": 0}, 503),
    ],
)
def test_what_is_not_true_any_more_or_cannot_be_read_holds_the_write(
    shop: Shop, order: Any, status: int
) -> None:
    shop.order, shop.status = order, status
    run = written()
    assert (run.state, shop.asked) == ("held", ["GET"])
    hold = Hold.objects.get()
    assert hold.reason == "precondition_gone"
    assert "Helps: Someone who knows why it changed" in hold.message
    assert AuthorisationRecord.objects.get().failed == "precondition"
    assert "paid" not in hold.message


def test_a_provider_that_declares_no_such_reading_refuses_the_intent(shop: Shop) -> None:
    Provider.objects.update(settings={"actions": ACTIONS["keyed"]})
    run = written()
    assert (run.state, shop.asked) == ("failed", [])
    assert "declares no precondition" in run.failure["message"]
    assert not Operation.objects.exists()


@pytest.mark.parametrize(
    ("said", "detail"),
    [
        (Said(fault="drop"), "could not be read"),
        (Said(body=b"[" * 100_000), "could not be read"),
        (Said(body=b'{"state": "refunded", "refunded": 0, "state": "paid"}'), "could not be read"),
        (Said(302, {"Location": "/orders/ORD-2"}), "could not be read"),
    ],
    ids=["no answer", "without end", "two answers in one", "elsewhere"],
)
def test_what_is_no_plain_answer_is_a_no(shop: Shop, said: Said, detail: str) -> None:
    shop.side.answers = lambda _seen: said
    run = written()
    assert (run.state, shop.asked) == ("held", ["GET"])
    assert detail in Hold.objects.get().message


def test_a_one_is_no_true_however_deep_it_lies(shop: Shop) -> None:
    expects["refunded"] = {"by": 1}
    shop.order = {"state": "paid", "refunded": {"by": True}}
    assert written().state == "held"
    shop.side.seen.clear()
    shop.order = {"state": "paid", "refunded": {"by": 1.0}}
    assert written().state == "completed"


@pytest.mark.parametrize(("slug", "family"), [("stripe-v1", "v1"), ("stripe-v2", "v2")])
def test_at_stripe_it_is_read_the_same_way(side: FarSide, slug: str, family: str) -> None:
    action = {
        "path": f"/{family}/refunds",
        "precondition": {"path": f"/{family}/charges/{{charge}}"},
    }
    settings = {"headers": {"Stripe-Version": "2024-06-20"}, "actions": {"refunds.create": action}}
    connection = Connection(side.url, "acct_1", "", "sk_test_1", settings, LOOPBACK)
    by = adapter_for(slug, connection, CONTRACTS[slug])
    path = by.precondition_path("refunds.create", {"charge": "ch_1/../x", "amount": 500})
    expected = {"refunded": False, "amount_refunded": 0}
    asked = Prepared("POST", "", {}, b"", expected=expected, read_path=path)
    side.answers = lambda _seen: Said(body=b'{"refunded": false, "amount_refunded": 0}')
    found = by.read_before(asked, 5)
    assert isinstance(found, Verified)
    assert found.met
    (seen,) = side.seen
    assert (seen.method, seen.path) == ("GET", f"/{family}/charges/ch_1%2F..%2Fx")
    side.answers = lambda _seen: Said(body=b'{"refunded": true, "amount_refunded": 500}')
    found = by.read_before(asked, 5)
    assert isinstance(found, Verified)
    assert not found.met
    side.answers = lambda _seen: Said(404, body=b'{"error": {"type": "invalid_request_error"}}')
    assert isinstance(by.read_before(asked, 5), Unavailable)
