"""The flow of the field cases: prepare → refund → notify, steered by files in the order's folder.

    ORD-7001.prepare         one line for each passage of the step
    ORD-7001.prepare.gate    while it is there, the step waits
    ORD-7001.poison          while it is there, `prepare` kills its own process
    ORD-7001.amount          what the order is worth now, if it has been changed

Human decisions come into it when the product has them; its wait is in `settling`.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from workflows.core.definitions import Workflow
from workflows.core.intents import Intent
from workflows.services.run_view import RunView

GATE_SECONDS = 0.02
TOO_LONG = 12 * 1024 * 1024


class Order(BaseModel):
    order: str
    folder: Path
    amount: Decimal = Decimal("125.00")
    gives: str = ""  # what `report` tries to give


def passed(run: RunView, step: str) -> None:
    """Leave a line for this passage, then wait while the step's gate is there."""
    order: Order = run.input
    with (order.folder / f"{order.order}.{step}").open("a") as lines:
        lines.write(f"{run.attempt}\n")
    gate = order.folder / f"{order.order}.{step}.gate"
    while gate.exists():
        time.sleep(GATE_SECONDS)


def passages(folder: Path, order: str, step: str) -> int:
    file = folder / f"{order}.{step}"
    return len(file.read_text().splitlines()) if file.exists() else 0


def worth(order: Order) -> Decimal:
    changed = order.folder / f"{order.order}.amount"
    return Decimal(changed.read_text()) if changed.exists() else order.amount


def money(run: RunView, action: str, what: str) -> Intent:
    order: Order = run.input
    amount = worth(order)
    return Intent(
        action=action,
        target=f"order {order.order}",
        parameters={"order": order.order, "amount": int(amount * 100), "currency": "USD"},
        summary=f"{what} USD {amount:,.2f} to order {order.order}",
        amount=amount,
        currency="USD",
    )


# --- the flow -----------------------------------------------------------------------------------

refunding = Workflow("refunding", version=1, input=Order)


@refunding.step(retries=3)
def prepare(run: RunView) -> str:
    """Prepare the refund"""
    order: Order = run.input
    passed(run, "prepare")
    if (order.folder / f"{order.order}.poison").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return order.order


@refunding.write(provider="payfake")
def refund(run: RunView) -> Intent:
    """Refund the order"""
    return money(run, "refunds.create", "Refund")


@refunding.step(retries=3)
def check(run: RunView) -> str:
    """Check what is noted of it"""
    passed(run, "check")
    resource: str = run.output("refund")["resource"]
    return resource


@refunding.write(provider="payfake")
def notify(run: RunView) -> Intent:
    """Notify the customer"""
    return money(run, "notices.create", "Tell of")


# --- a flow whose last step gives what cannot be stored -------------------------------------------

reporting = Workflow("reporting", version=1, input=Order)


class Unknown:
    """Something that JSON has no form for."""


GIVEN: dict[str, Callable[[], Any]] = {
    "datetime": lambda: datetime.now(UTC),
    "Decimal": lambda: Decimal("125.00"),
    "bytes": lambda: b"\x00\xff",
    "set": lambda: {"re_1"},
    "Unknown": Unknown,
    "text": lambda: "x" * TOO_LONG,
}


@reporting.write(provider="payfake")
def refund_first(run: RunView) -> Intent:
    """Refund the order"""
    return money(run, "refunds.create", "Refund")


@reporting.step(retries=3)
def report(run: RunView) -> Any:
    """Report what was done"""
    passed(run, "report")
    return GIVEN[run.input.gives]()


@reporting.step()
def close(run: RunView) -> None:
    """Close the order"""
    passed(run, "close")


# --- a flow without writes, for many runs -------------------------------------------------------

counted = Workflow("counted", version=1, input=Order, retain=timedelta(seconds=1))


@counted.step()
def one(run: RunView) -> int:
    """Count the first"""
    passed(run, "one")
    return 1


@counted.step()
def two(run: RunView) -> int:
    """Count the second"""
    passed(run, "two")
    return int(run.output("one")) + 1


@counted.step()
def three(run: RunView) -> int:
    """Count the third"""
    passed(run, "three")
    return int(run.output("two")) + 1
