"""What a held write holds back, also in the run that waits for its own: steps, and what a decision
lets go on."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client

from reconciliation.models import Operation
from reconciliation.pages import OperationPage
from reconciliation.selectors.operation_stamp import operation_stamp
from tests.console.posting import url_of
from tests.destination import RunningDestination
from tests.factories import owner_of, person, ready_provider, tenant
from tests.flows import drive
from workflows.core.definitions import Child, Workflow
from workflows.core.intents import Intent
from workflows.models import Run
from workflows.registry import registry
from workflows.services.run_view import RunView
from workflows.services.runs import start

pytestmark = pytest.mark.django_db


def comment_on(ticket: str) -> Intent:
    given = {"ticket": ticket, "body": "on its way"}
    return Intent("comments.create", f"ticket {ticket}", given, f"Comment on {ticket}")


two_notes = Workflow("tests.two_notes")


@two_notes.write(provider="desk", on_abandon="continue")
def tell_buyer(run: RunView) -> Intent:
    return comment_on("B-1")


@two_notes.step()
def book(run: RunView) -> str:
    return "booked"


@two_notes.write(provider="desk")
def tell_seller(run: RunView) -> Intent:
    return comment_on("S-1")


two_notes.parallel([tell_buyer, book], tell_seller, name="tell")


@two_notes.step()
def close(run: RunView) -> str:
    """Close the order"""
    return "closed"


noted = Workflow("tests.noted")


@noted.write(provider="desk")
def tell_desk(run: RunView) -> Intent:
    return comment_on("C-1")


order = Workflow("tests.order")


@order.children(join="any_failure")
def tell_all(run: RunView) -> list[Child]:
    return [Child(noted.name)]


@order.step()
def ship(run: RunView) -> str:
    """Ship the parcel"""
    return "shipped"


batch = Workflow("tests.order_batch")


@batch.children(join="all")
def take_orders(run: RunView) -> list[Child]:
    return [Child(order.name, labels={"order": "7"})]


day = Workflow("tests.day")


@day.children(join="all")
def take_batches(run: RunView) -> list[Child]:
    return [Child(batch.name)]


@pytest.fixture
def desk(client: Client, destination: RunningDestination) -> Any:
    for flow in (two_notes, noted, order, batch, day):
        if not registry.has(flow.name, flow.version):
            registry.add(flow)
    provider = ready_provider("desk", destination.url)
    client.force_login(owner_of(provider.default_queue, "reviewer_1"))
    destination.client.arm("apply_then_drop", times=None)
    return provider


def held_in(workflow: Workflow) -> list[Operation]:
    run = start(workflow.name, {}, tenant=tenant(), start_key="order 7")
    drive()
    return list(Operation.objects.filter(run__parent=run, state="held").order_by("target"))


def page_of(client: Client, operation: Operation) -> OperationPage:
    shown: OperationPage = client.get(url_of(operation)).context["page"]
    return shown


def says(page: OperationPage, kind: str) -> str:
    assert page.decide is not None
    return {option.kind: option.consequence for option in page.decide.offered}[kind]


def test_a_held_branch_holds_back_what_comes_after_its_group(client: Client, desk: Any) -> None:
    buyer, seller = held_in(two_notes)
    page = page_of(client, seller)
    assert [step.name for step in page.blocks] == ["tell_seller", "tell", "close"]
    assert page.blocks[1].note == (
        "Tests: two notes, order 7 waits here for all its branches; tell_buyer is held"
    )
    assert page.lede.endswith("until someone decides, and 2 steps wait for that.")
    assert page.started_by is not None
    assert page.started_by.text == "Tests: two notes, order 7"
    assert (
        "This branch of tell ends. Tests: two notes, order 7 goes on with close when the other "
        "branches have ended, too: tell_buyer is held."
    ) in says(page, "applied")
    assert (
        "Tests: two notes, order 7 fails at tell when the other branches have ended, too: "
        "tell_buyer is held."
    ) in says(page, "abandon")
    # The first of its two steps leads to the second, whatever the group waits for.
    first = page_of(client, buyer)
    assert [step.name for step in first.blocks] == ["tell_buyer", "book", "tell", "close"]
    assert "The run goes on with book." in says(first, "applied")


def test_a_branch_that_ends_elsewhere_changes_the_page(client: Client, desk: Any) -> None:
    buyer, seller = held_in(two_notes)
    before, seen = operation_stamp(person(), seller.pk), page_of(client, seller).seen
    Run.objects.filter(pk=buyer.run_id).update(state="completed", finished_at=Now())
    assert operation_stamp(person(), seller.pk).rows != before.rows
    page = page_of(client, seller)
    assert page.seen != seen
    assert "goes on with close." in says(page, "applied")


def test_a_held_child_holds_back_the_run_that_waits_for_it(client: Client, desk: Any) -> None:
    (held,) = held_in(order)
    page = page_of(client, held)
    assert [(step.name, step.note) for step in page.blocks] == [
        ("tell_desk", "this operation"),
        ("tell_all", "Tests: order, order 7 waits here for the end of this run"),
        ("ship", "Ship the parcel"),
    ]
    assert "Tests: order, order 7 fails at tell_all with it." in says(page, "abandon")
    shown = client.get(url_of(held)).content.decode()
    assert "started by <a" in shown
    # Once that run has gone on, or is over, nobody waits.
    Run.objects.filter(pk=held.run.parent_id).update(state="cancelled", finished_at=Now())
    assert [step.name for step in page_of(client, held).blocks] == ["tell_desk"]


def test_the_runs_above_that_wait_in_turn_are_named_too(
    client: Client, desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = start(day.name, {}, tenant=tenant(), start_key="Monday")
    drive()
    held = Operation.objects.get(state="held")
    page = page_of(client, held)
    assert [(step.name, step.note) for step in page.blocks[2:]] == [
        ("ship", "Ship the parcel"),
        (
            "take_orders",
            "Tests: order batch, number 1 waits here for the end of Tests: order, order: 7",
        ),
        (
            "take_batches",
            "Tests: day, Monday waits here for the end of Tests: order batch, number 1",
        ),
    ]
    assert page.lede.endswith("until someone decides, and 4 steps wait for that.")
    monkeypatch.setattr("workflows.selectors.ahead.RUNS_ABOVE", 1)
    assert page_of(client, held).blocks[-1].name == "take_orders"
    monkeypatch.undo()
    # One that is over waits for nobody.
    Run.objects.filter(pk=today.pk).update(state="cancelled", finished_at=Now())
    assert page_of(client, held).blocks[-1].name == "take_orders"
