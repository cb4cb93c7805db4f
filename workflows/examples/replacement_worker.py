"""Replace a machine that has failed: choose its size, create the new one, register it.

The provider keeps no keys, and shows our marker on the machine itself. When the answer is lost, a
look-up finds the machine, its state is checked, and the run goes on.
"""

from __future__ import annotations

from pydantic import BaseModel, Field

from workflows.core.definitions import Workflow
from workflows.core.intents import Intent
from workflows.services.run_view import RunView


class FailedMachine(BaseModel):
    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")
    size: str = "small"
    zone: str = "zone-a"


replacement_worker = Workflow("replacement_worker", version=1, input=FailedMachine)


@replacement_worker.step(retries=3)
def plan(run: RunView) -> FailedMachine:
    """Choose name, size and zone"""
    failed: FailedMachine = run.input
    return failed.model_copy(update={"name": f"{failed.name}-replacement"})


@replacement_worker.write(provider="machines")
def create_machine(run: RunView) -> Intent:
    """Create the machine"""
    machine: FailedMachine = run.output("plan")
    return Intent(
        action="machines.create",
        target=f"machine {machine.name}",
        parameters=machine.model_dump(),
        summary=f"Create machine {machine.name} ({machine.size}, {machine.zone})",
    )


@replacement_worker.step(retries=3)
def register(run: RunView) -> str:
    """Register it"""
    return f"{run.output('plan').name} is {run.output('create_machine')['resource']}"
