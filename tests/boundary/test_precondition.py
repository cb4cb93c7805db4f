"""What must be true before a write is read by its adapter, just before it leaves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciliation.models import Hold, Operation, Provider
from reconciliation.rehearsal.providers import ACTIONS
from tests.contract.far_side import FarSide, Said, Seen
from tests.factories import advanced, ready_provider, tenant
from workflows.core.definitions import Workflow
from workflows.core.intents import Intent
from workflows.models import AuthorisationRecord, Run
from workflows.registry import registry
from workflows.services.run_view import RunView
from workflows.services.runs import start

pytestmark = pytest.mark.django_db

guarded = Workflow("tests.guarded")


@guarded.write(provider="payments")
def refund(run: RunView) -> Intent:
    return Intent(
        action="refunds.create",
        target="order ORD-1",
        parameters={"order": "ORD-1", "amount": 500, "currency": "EUR"},
        summary="Refund order ORD-1",
        precondition={"state": "paid", "refunded": 0},
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
