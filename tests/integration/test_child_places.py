"""Of children that run so many at a time, one that is held for a person takes up no place: also
when nobody looked at its parent as it was held (P10, P12)."""

from __future__ import annotations

import pytest

from reconciliation.core.states import DecisionKind
from reconciliation.models import Hold
from tests.claiming import acting as acting_workflow
from tests.claiming import acts, claimed, raising
from tests.deciding import decide
from tests.destination import RunningDestination
from tests.factories import administrator, advanced, ready_provider, settled, tenant
from workflows.core.definitions import Child, Workflow
from workflows.core.states import RunState
from workflows.models import Run
from workflows.registry import registry
from workflows.services.children import see_ends
from workflows.services.claims import release
from workflows.services.run_view import RunView
from workflows.services.runs import start

pytestmark = pytest.mark.django_db

ITEM = acting_workflow("tests.one_by_one_item", on_failure="hold")

items = Workflow("tests.one_by_one")
machines = Workflow("tests.machine_by_machine")


@items.children(at_once=1)
def work_through(run: RunView) -> list[Child]:
    return [Child(ITEM.name, {"act": "act"}) for _ in range(2)]


@machines.children(at_once=1)
def rent(run: RunView) -> list[Child]:
    return [Child("replacement_worker", {"name": name}) for name in ("w1", "w2")]


def children_of(flow: Workflow) -> list[Run]:
    """Those of a run that has just started them: the first is ready, the second waits for it."""
    for each in (ITEM, items, machines):
        registry.add(each)
    parent = advanced(start(flow.name, {}, tenant=tenant()))
    assert states_of(parent) == ["ready", "waiting"]
    return list(parent.children.order_by("parent_index"))


def states_of(parent: Run | None) -> list[str]:
    assert parent is not None
    return list(parent.children.order_by("parent_index").values_list("state", flat=True))


def test_one_whose_worker_was_killed_right_after_it_was_held_gives_up_its_place() -> None:
    first, second = children_of(items)
    release(claimed(first), RunState.HELD, failure={"reason": "step_failed", "message": "no"})
    assert see_ends() == 1
    assert states_of(first.parent) == ["held", "ready"]
    parent = Run.objects.get(pk=second.parent_id)
    assert parent.failure["message"] == (
        "0 of 2 runs that it started have ended; 1 held for a person."
    )
    assert see_ends() == 0


def test_one_whose_write_is_held_without_a_worker_gives_up_its_place(
    destination: RunningDestination,
) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("drop_before")
    first, _ = children_of(machines)
    assert settled(first).state == "held"
    see_ends()
    assert states_of(first.parent) == ["held", "ready"]


def test_what_comes_of_one_that_was_held_is_seen_anew() -> None:
    first, second = children_of(items)
    acts["act"] = raising(ValueError("line 17 is no number"))
    assert advanced(first).state == "held"
    acts["act"] = lambda _: 1
    assert advanced(second).state == "completed"
    see_ends()
    decide(Hold.objects.get(run=first), DecisionKind.TRY_AGAIN, by=administrator())
    claim = claimed(first)
    release(claim, RunState.FAILED, failure={"reason": "step_failed", "message": "no"})
    assert see_ends() == 1
    parent = Run.objects.get(pk=second.parent_id)
    assert parent.state == "ready"


def test_one_that_is_held_when_nobody_waits_for_it_any_more_is_not_looked_at_for_ever() -> None:
    first, _ = children_of(items)
    Run.objects.filter(pk=first.parent_id).update(step="later")
    release(claimed(first), RunState.HELD, failure={"reason": "step_failed", "message": "no"})
    assert [see_ends() for _ in range(2)] == [1, 0]
