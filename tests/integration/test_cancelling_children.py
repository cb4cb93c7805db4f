"""Cancelling a run that waits for others, or that another waits for."""

from __future__ import annotations

import pytest
from django.db.models.functions import Now

from tests.cancelling import BY, cancel, is_cancelled
from tests.claiming import ONCE, attempts, claimed
from tests.destination import RunningDestination
from tests.factories import advanced, ready_provider, tenant
from tests.sending import about_to_send, the_operation
from workflows.core.definitions import Child, Workflow
from workflows.models import Run
from workflows.registry import registry
from workflows.services import ending
from workflows.services.ending import end_cancelled
from workflows.services.executor import take
from workflows.services.ownership import Keeper
from workflows.services.results import result_of
from workflows.services.run_view import RunView
from workflows.services.runs import start
from workflows.services.stopping import pause_run

pytestmark = pytest.mark.django_db

family = Workflow("tests.family")
grown = Workflow("tests.grown")


@family.children(at_once=2)
def bring_up(run: RunView) -> list[Child]:
    return [Child("tests.grown", {"act": "act"}) for _ in range(3)]


@grown.children()
def bring_up_too(run: RunView) -> list[Child]:
    return [Child(ONCE.name, {"act": "act"})]


@pytest.fixture
def parent() -> Run:
    """A run that waits for three, of whom one is ready, one waits for a child of its own, and one
    for its turn."""
    for workflow in (ONCE, grown, family):
        registry.add(workflow)
    run = advanced(start("tests.family", {}, tenant=tenant()))
    first = run.children.order_by("parent_index")[0]
    assert advanced(first).state == "waiting"
    assert [child.state for child in run.children.order_by("parent_index")] == [
        "waiting",
        "ready",
        "waiting",
    ]
    return run


def test_the_runs_that_it_waits_for_are_cancelled_too(parent: Run) -> None:
    assert cancel(parent) == "cancelled"
    assert is_cancelled(parent)
    while end_cancelled():
        pass
    others = Run.objects.exclude(pk=parent.pk)
    assert others.count() == 4
    assert all(is_cancelled(run) for run in others)


def test_however_many_they_are_one_turn_of_the_sweep_ends_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In batches, those of paused tenants and of one that is being worked on among them."""
    monkeypatch.setattr(ending, "BATCH", 7)
    monkeypatch.setattr(ending, "TURN_SECONDS", 60.0)  # on a slow machine too
    large = Workflow("tests.large_family")

    @large.children()
    def bring_up_many(run: RunView) -> list[Child]:
        return [Child(ONCE.name, {"act": "act"}) for _ in range(30)]

    for workflow in (ONCE, large):
        registry.add(workflow)
    parent = advanced(start(large.name, {}, tenant=tenant()))
    working, paused_one, *_ = parent.children.all()
    claimed(working)
    pause_run(paused_one.pk, by=BY)
    assert cancel(parent) == "cancelled"
    assert end_cancelled() == 30
    assert all(is_cancelled(child) for child in parent.children.all())
    assert attempts(working) == [("act", 1, "lost")]


def test_a_child_that_is_cancelled_is_an_end_that_its_parent_sees(parent: Run) -> None:
    (_, second, _) = parent.children.order_by("parent_index")
    cancel(second)
    assert is_cancelled(second)
    third = parent.children.get(parent_index=2)
    assert third.state == "ready"  # its turn has come
    second.refresh_from_db()
    assert second.end_seen_at is not None


def test_a_parent_goes_on_when_its_last_child_is_cancelled(parent: Run) -> None:
    for child in parent.children.all():
        cancel(child)
    while end_cancelled():
        pass
    ends = result_of(advanced(parent))
    assert [end["state"] for end in ends] == ["cancelled"] * 3
    assert {end["failure"] for end in ends} == {"Cancelled by ada."}


def test_a_worker_that_ends_a_run_asks_for_the_end_of_what_it_started(parent: Run) -> None:
    asked = {"cancel_asked_at": Now(), "cancel_asked_by": BY}
    Run.objects.filter(pk=parent.pk).update(state="ready", **asked)
    assert advanced(parent).state == "cancelled"
    assert set(parent.children.values_list("cancel_asked_by", flat=True)) == {BY}


def test_a_child_that_has_a_write_open_is_settled_before_it_ends(
    destination: RunningDestination,
) -> None:
    sending = Workflow("tests.sending_family")

    @sending.children()
    def refund_all(run: RunView) -> list[Child]:
        return [Child("refund", {"order": "ORD-7001", "amount": "125.00"})]

    registry.add(sending)
    ready_provider("payments", destination.url)
    parent = advanced(start(sending.name, {}, tenant=tenant()))
    child = parent.children.get()
    sender = about_to_send(child)
    outcome = sender.transmit()
    cancel(parent)
    assert is_cancelled(parent)
    assert end_cancelled() == 0
    sender.record(outcome)
    take(sender.claim, Keeper())
    assert is_cancelled(child)
    assert the_operation().state == "verified"
