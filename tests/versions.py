"""Two versions of one workflow, and processes that have one of them, both, or neither.

Version 2 renames `load` and `pay`, adds `check`, asks for a new field of the input and of the
output of `load`, and calls the sleep by the name that it had.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from workflows.core.definitions import Workflow
from workflows.core.intents import Intent
from workflows.registry import registry
from workflows.services.run_view import RunView

NAME = "tests.versioned"
AN_HOUR = timedelta(hours=1)


@dataclass
class Asked:
    order: str


@dataclass
class AskedWhy:
    order: str
    reason: str


@dataclass
class Order:
    number: str


@dataclass
class PricedOrder:
    number: str
    amount: int


def first_version(sleep: timedelta = AN_HOUR) -> Workflow:
    """load, pay, settled (which sleeps), tell."""
    flow = Workflow(NAME, version=1, input=Asked)

    @flow.step()
    def load(run: RunView) -> Order:
        return Order(run.input.order)

    @flow.write(provider="payments")
    def pay(run: RunView) -> Intent:
        return intent_of(run.input.order)

    @flow.sleep()
    def settled(run: RunView) -> timedelta:
        return sleep

    @flow.step()
    def tell(run: RunView) -> dict[str, Any]:
        return {"order": run.output("load").number, "receipt": run.output("pay")}

    return flow


def changed_first_version() -> Workflow:
    """The first version after somebody has taken `settled` away, and kept its number."""
    flow = first_version()
    del flow.steps["settled"]
    return flow


def second_version(version: int = 2, sleep: timedelta = AN_HOUR, **declared: Any) -> Workflow:
    """load_order, refund, check, settled, tell; `declared` stands in for parts of its migration."""
    flow = Workflow(NAME, version=version, input=AskedWhy)

    @flow.step()
    def load_order(run: RunView) -> PricedOrder:
        return PricedOrder(run.input.order, 125)

    @flow.write(provider="payments")
    def refund(run: RunView) -> Intent:
        return intent_of(run.input.order)

    @flow.step()
    def check(run: RunView) -> bool:
        return True

    @flow.sleep()
    def settled(run: RunView) -> timedelta:
        return sleep

    @flow.step()
    def tell(run: RunView) -> dict[str, Any]:
        order = run.output("load_order")
        return {
            "order": order.number,
            "amount": order.amount,
            "receipt": run.output("refund"),
            "reason": run.input.reason,
        }

    given: dict[str, Any] = {
        "from_version": 1,
        "steps": {"load": "load_order", "pay": "refund"},
        "outputs": {"load": lambda old: old | {"amount": 125}},
        "input": lambda old: old | {"reason": "not said"},
    }
    flow.migrates(**(given | declared))
    return flow


def intent_of(order: str) -> Intent:
    return Intent(
        action="refunds.create",
        target=f"order {order}",
        parameters={"amount": 12500, "currency": "eur", "order": order},
        summary=f"Refund order {order}",
    )


@contextmanager
def process_with(*workflows: Workflow) -> Iterator[None]:
    """A process that has these workflows, and no others, while the block lasts."""
    before = dict(vars(registry))
    vars(registry).update(vars(type(registry)()))
    try:
        for workflow in workflows:
            registry.add(workflow)
        yield
    finally:
        vars(registry).update(before)


def step_versions() -> tuple[Workflow, Workflow]:
    """Two versions of two steps; the later one renames the first of them."""
    first, second = Workflow("tests.two_steps", version=1), Workflow("tests.two_steps", version=2)

    @first.step()
    def work(run: RunView) -> int:
        return 1

    @first.step()
    def after(run: RunView) -> int:
        return int(run.output("work"))

    @second.step()
    def worked(run: RunView) -> int:
        return 1

    second.step()(after)
    second.migrates(from_version=1, steps={"work": "worked"})
    return first, second
