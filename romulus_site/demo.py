"""The demonstration: three runs, each of which loses the answer to its write in its own way.

- ticket triage: the desk has neither key nor look-up. The run is held; its owner decides.
- replacement worker: the provider shows our marker. A look-up finds the machine; the run goes on.
- refund: the provider keeps keys. The worker is killed with SIGKILL after the provider applied the
  refund and before that was recorded. Another worker sends the same request again under the same
  key; there is one refund.

Nothing here is staged: the destination applies each write and then really drops or delays the
answer, and the worker really dies. Starting again goes on where the runs are.
"""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from reconciliation.core.states import TransmissionState
from reconciliation.models import ContractVersion, Operation, Provider, ReviewQueue, Transmission
from reconciliation.rehearsal.client import Destination
from reconciliation.rehearsal.providers import ACTIONS
from reconciliation.services.setup import make_owner
from workflows.core.states import FINAL_RUN_STATES, AttemptState, RunState
from workflows.models import Run, Tenant, Worker
from workflows.selectors import live_worker_pids
from workflows.services.runs import start as start_run

TENANT = "demo"
# Long enough that the worker is killed while it waits for an answer that would have come.
ANSWER_DELAY_SECONDS = 8


@dataclass(frozen=True)
class Example:
    """One demonstration: its workflow and input, its provider, and the trouble it meets."""

    workflow: str
    key: str  # its start key: tells it from others in the list
    input: dict[str, Any]
    provider: str
    name: str
    personality: str
    owner: str
    fault: str
    parameters: dict[str, Any]


EXAMPLES = (
    Example(
        workflow="ticket_triage",
        key="demonstration: ticket T-1042",
        input={
            "number": "T-1042",
            "subject": "Where is my refund?",
            "body": "I sent the parcel back and have heard nothing since. This is urgent.",
        },
        provider="desk",
        name="Rehearsal desk",
        personality="blind",
        owner="support_owner",
        fault="apply_then_drop",
        parameters={},
    ),
    Example(
        workflow="replacement_worker",
        key="demonstration: worker-7",
        input={"name": "worker-7", "size": "small", "zone": "zone-a"},
        provider="machines",
        name="Rehearsal machines",
        personality="lookup",
        owner="platform_owner",
        fault="apply_then_drop",
        parameters={},
    ),
    Example(
        workflow="refund",
        key="demonstration: ORD-7001",
        input={"order": "ORD-7001", "amount": "125.00", "currency": "USD"},
        provider="payments",
        name="Rehearsal payments",
        personality="keyed",
        owner="finance_owner",
        fault="apply_then_delay",
        parameters={"seconds": ANSWER_DELAY_SECONDS},
    ),
)

VISIBLE = ["order", "amount", "currency", "name", "size", "zone", "ticket", "body"]


def start(destination_url: str) -> None:
    """Set the providers up and start the runs that are not started yet."""
    for example in EXAMPLES:
        with transaction.atomic():
            tenant, _ = Tenant.objects.get_or_create(slug=TENANT, defaults={"name": "Demo"})
            set_up(example, tenant, destination_url)
        if not run_of(example):
            with Destination(destination_url) as destination:
                destination.arm(
                    example.fault,
                    personality=example.personality,
                    method="POST",
                    **example.parameters,
                )
            start_run(example.workflow, example.input, tenant=tenant, start_key=example.key)


def run_of(example: Example) -> Run | None:
    return Run.objects.filter(
        tenant__slug=TENANT, workflow=example.workflow, start_key=example.key
    ).first()


def set_up(example: Example, tenant: Tenant, destination_url: str) -> None:
    """Make provider, queue and owner of one example, once."""
    queue, _ = ReviewQueue.objects.get_or_create(
        slug=example.provider, defaults={"name": example.name, "tenant": tenant}
    )
    make_owner(User.objects.get(username=example.owner), queue)
    provider, _ = Provider.objects.get_or_create(
        slug=example.provider,
        defaults={
            "name": example.name,
            "adapter": "rehearsal",
            "account": f"acct_{TENANT}",
            "base_url": destination_url,
            "settings": {"actions": ACTIONS[example.personality]},
            "contract_version": ContractVersion.objects.filter(
                slug=f"rehearsal-{example.personality}"
            ).latest("version"),
            "visible_parameters": VISIBLE,
            "replay_trust": "The destination ships with Romulus, whose tests show what it claims.",
            "look_up_trust": "The destination ships with Romulus, whose tests show what it claims.",
            "default_queue": queue,
        },
    )
    ReviewQueue.objects.filter(pk=queue.pk, provider=None).update(provider=provider)


def tick() -> bool:
    """Kill the refund's worker when its moment has come; return whether all runs are settled."""
    kill_worker_of_refund()
    return all((run := run_of(example)) and is_settled(run) for example in EXAMPLES)


def is_settled(run: Run) -> bool:
    return run.state in (*FINAL_RUN_STATES, RunState.HELD)


def kill_worker_of_refund() -> None:
    """SIGKILL, once: the refund is applied and its worker waits for the answer."""
    first = (
        Transmission.objects.filter(
            operation__run__workflow="refund",
            operation__run__tenant__slug=TENANT,
            number=1,
            state=TransmissionState.SENDING,
        )
        .select_related("operation__run", "operation__provider")
        .first()
    )
    lease_owner = first.operation.run.lease_owner if first else None
    if first is None or lease_owner is None or not is_applied(first.operation):
        return
    if first.operation.run.attempts.filter(state=AttemptState.LOST).exists():
        return  # it has been killed; this is the one that takes over
    worker = Worker.objects.filter(pk=lease_owner, host=socket.gethostname()).first()
    if worker is not None and worker.pid in live_worker_pids():
        # It is gone already while its lease still runs out.
        with suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGKILL)


def is_applied(operation: Operation) -> bool:
    with Destination(operation.provider.base_url) as destination:
        return bool(destination.effects(operation=str(operation.pk)))


def result(destination_url: str) -> dict[str, Any]:
    """Return what came of each run, beside what the destination holds."""
    with Destination(destination_url) as destination:
        runs = [run for example in EXAMPLES if (run := run_of(example))]
        return {"runs": [result_of(run, destination) for run in runs]}


def result_of(run: Run, destination: Destination) -> dict[str, Any]:
    operations = run.operations.order_by("id")
    return {
        "id": str(run.pk),
        "workflow": run.workflow,
        "state": run.state,
        "step": run.step,
        "attempts": [
            {"step": row.step, "fence": row.fence, "worker": str(row.worker), "state": row.state}
            for row in run.attempts.order_by("fence")
        ],
        "operations": [operation_result(operation, destination) for operation in operations],
    }


def operation_result(operation: Operation, destination: Destination) -> dict[str, Any]:
    effects = destination.effects(operation=str(operation.pk))
    return {
        "id": str(operation.pk),
        "action": operation.action,
        "state": operation.state,
        "resource": operation.resource,
        "transmissions": [
            {"number": row.number, "purpose": row.purpose, "state": row.state, "phase": row.phase}
            for row in operation.transmissions.order_by("number")
        ],
        "destination": [effect.resource_id for effect in effects],
    }
