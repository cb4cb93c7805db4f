"""Refund an order: check it, refund it, tell the customer; and the same with an approval between.

The provider keeps keys for a day. When a worker dies between the refund and its record, another
one sends the same request again under the same key, and the provider answers with the refund that
is already there: there is one refund.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from pydantic import BaseModel, Field

from workflows.core.definitions import Workflow
from workflows.core.errors import PermanentError
from workflows.core.intents import Intent
from workflows.core.proposals import ProposedAction
from workflows.services.run_view import RunView


class RefundRequest(BaseModel):
    order: str = Field(pattern=r"^ORD-[0-9]{1,12}$")
    amount: Decimal = Field(gt=0, max_digits=12, decimal_places=2)
    currency: str = Field(default="USD", pattern=r"^[A-Z]{3}$")


class Order(BaseModel):
    number: str
    refundable: Decimal


refund = Workflow("refund", version=1, input=RefundRequest)

# What was paid, in an example without a shop: no order allows more than this.
PAID = Decimal("10000.00")


@refund.step(retries=3)
def load_order(run: RunView) -> Order:
    """Load the order"""
    request: RefundRequest = run.input
    if request.amount > PAID:
        raise PermanentError(f"{request.order} was paid {PAID:,}; less than {request.amount:,}")
    return Order(number=request.order, refundable=request.amount)


@refund.write(provider="payments")
def create_refund(run: RunView) -> Intent:
    """Refund the order"""
    request: RefundRequest = run.input
    order: Order = run.output("load_order")
    return Intent(
        action="refunds.create",
        target=f"order {order.number}",
        parameters={
            "order": order.number,
            # In the smallest unit, as providers count money.
            "amount": int(order.refundable * 100),
            "currency": request.currency,
        },
        summary=f"Refund {request.currency} {order.refundable:,.2f} to order {order.number}",
        amount=order.refundable,
        currency=request.currency,
    )


@refund.step(retries=3)
def tell_customer(run: RunView) -> str:
    """Tell the customer"""
    return f"Your refund {run.output('create_refund')['resource']} is on its way."


# --- the same, where people are asked before the money moves ------------------------------------


class AgentRefundRequest(RefundRequest):
    """A refund that an agent asks for, on behalf of the person whose case it is."""

    agent: str = ""
    on_behalf_of: str = ""
    reason: str = ""


approved_refund = Workflow("approved_refund", version=1, input=AgentRefundRequest)
approved_refund.step(retries=3)(load_order)


@approved_refund.approval(action="refunds.create", expires_in=timedelta(hours=24))
def propose(run: RunView) -> ProposedAction:
    """Ask for approval"""
    request: AgentRefundRequest = run.input
    order: Order = run.output("load_order")
    return ProposedAction(
        action="refunds.create",
        target=f"order {order.number}",
        parameters={
            "order": order.number,
            "amount": int(order.refundable * 100),
            "currency": request.currency,
        },
        summary=f"Refund {request.currency} {order.refundable:,.2f} to order {order.number}",
        amount=order.refundable,
        currency=request.currency,
        reason=request.reason,
        proposed_by=f"agent:{request.agent}" if request.agent else "",
        on_behalf_of=f"person:{request.on_behalf_of}" if request.on_behalf_of else "",
    )


@approved_refund.write(provider="payments", approved_by=propose)
def send_refund(run: RunView) -> Intent:
    """Refund the order as approved"""
    approved: ProposedAction = run.output("propose").action
    return approved


@approved_refund.step(retries=3)
def tell_approved(run: RunView) -> str:
    """Tell the customer"""
    return f"Your refund {run.output('send_refund')['resource']} is on its way."
