"""The flow of the field cases that waits for an event: prepare → refund → settled → notify; and one
whose deadline is told by its input, which takes one of two ways.
"""

from __future__ import annotations

from datetime import datetime

from tests.acceptance.refunding import Order, money, passed
from workflows.core.definitions import END, Workflow
from workflows.core.intents import Intent
from workflows.services.run_view import RunView

SETTLED = "refund.settled"

settling = Workflow("settling", version=1, input=Order)


@settling.step(retries=3)
def prepare(run: RunView) -> str:
    """Prepare the refund"""
    passed(run, "prepare")
    order: str = run.input.order
    return order


@settling.write(provider="payfake")
def refund(run: RunView) -> Intent:
    """Refund the order"""
    return money(run, "refunds.create", "Refund")


@settling.wait(event=SETTLED)
def settled(run: RunView) -> str:
    """Wait until the refund is settled"""
    order: str = run.input.order
    return order


@settling.write(provider="payfake")
def notify(run: RunView) -> Intent:
    """Notify the customer"""
    return money(run, "notices.create", "Tell of")


# --- a flow that takes one of two ways ------------------------------------------------------------


class DatedOrder(Order):
    until: datetime


dated = Workflow("dated", version=1, input=DatedOrder)


def until(run: RunView) -> datetime:
    given: datetime = run.input.until
    return given


@dated.wait(event=SETTLED, until=until, on_deadline="remind")
def settled_in_time(run: RunView) -> str:
    """Wait until the refund is settled"""
    order: str = run.input.order
    return order


@dated.step(then=END)
def go_on(run: RunView) -> str:
    """Go on with the event"""
    passed(run, "go_on")
    event_id: str = run.output("settled_in_time").event_id
    return event_id


@dated.step()
def remind(run: RunView) -> str:
    """Remind whoever is to settle it"""
    passed(run, "remind")
    return "reminded"
