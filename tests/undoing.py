"""A write whose author says how it is undone, and sends that were long enough ago."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciliation.models import Operation
from tests.factories import tenant
from tests.tampering import tamper
from workflows.core.definitions import Workflow
from workflows.core.intents import Intent
from workflows.models import Run
from workflows.registry import registry
from workflows.services.run_view import RunView
from workflows.services.runs import start


def machine(name: str) -> Intent:
    return Intent(
        action="machines.create",
        target=f"machine {name}",
        parameters={"name": name, "size": "small", "zone": "zone-a"},
        summary=f"Create machine {name}",
    )


def taken_back(run: RunView, receipt: Mapping[str, str]) -> Intent:
    if run.input.get("broken"):
        raise ValueError("the undo itself is broken")
    return machine(f"tombstone-of-{receipt['resource'].replace('_', '-')}")


def build(name: str, **options: Any) -> Workflow:
    flow = Workflow(name)

    @flow.write(provider="machines", undo=taken_back, **options)
    def create(run: RunView) -> Intent:
        """Create the machine"""
        return machine(run.input["name"])

    @flow.step()
    def tell(run: RunView) -> str:
        """Tell"""
        made = run.output("create")
        return f"made {made['resource']}" if made else "made none"

    return flow


undoable = build("tests.undoable")
goes_on = build("tests.goes_on", on_abandon="continue")


def begun(flow: Workflow, **input: Any) -> Run:
    """A run that no worker has taken."""
    registry.add(flow)
    return start(flow.name, {"name": "w1"} | input, tenant=tenant())


def age_sends(operation: Operation, hours: int = 2) -> None:
    """Let what was sent be so long ago that nothing of it can still be on its way."""
    back = f"interval '{hours} hours'"
    tamper(
        "reconciliation_transmission",
        f"started_at = started_at - {back}, in_flight_until = in_flight_until - {back}",
        f"operation_id = '{operation.pk}'",
    )


def chain_of(run: Run) -> list[Operation]:
    """The operations of a run, each after the one in whose place it came."""
    operations = {each.pk: each for each in Operation.objects.filter(run=run)}
    links = {each.supersedes_id or each.compensates_id: each for each in operations.values()}
    found, last = [], None
    while (last := links.get(last.pk if last else None)) is not None:
        found.append(last)
    assert len(found) == len(operations)
    return found
