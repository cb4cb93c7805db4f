"""What tests start from; each name says the state that it leaves."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from guardian.shortcuts import assign_perm

from reconciliation.core.facts import Dispatch
from reconciliation.models import (
    ContractVersion,
    DispatchStop,
    Hold,
    Operation,
    Provider,
    ReviewQueue,
)
from reconciliation.rehearsal.providers import ACTIONS
from reconciliation.services.reconcile import reconcile
from tests.waiting import wait_for
from workflows.models import Run, Tenant
from workflows.services.clock import database_now
from workflows.services.executor import advance
from workflows.services.ownership import Keeper
from workflows.services.runs import start

PERSONALITIES = {"payments": "keyed", "payfake": "keyed", "machines": "lookup", "desk": "blind"}
NOTE = "Seen in the destination by the person on call."


def tenant(slug: str = "northwind") -> Tenant:
    return Tenant.objects.get_or_create(slug=slug, defaults={"name": slug.capitalize()})[0]


def person(name: str = "reviewer_1", **fields: Any) -> Any:
    found = get_user_model().objects.filter(username=name).first()
    return found or get_user_model().objects.create_user(name, password=name, **fields)


def owner_of(queue: ReviewQueue, name: str = "reviewer_1") -> Any:
    """Somebody who may see the tenant's runs and decide the queue's holds."""
    user = person(name)
    queue.owners.add(user)
    assign_perm("reconciliation.view_reviewqueue", user, queue)
    assign_perm("reconciliation.decide", user, queue)
    for each in Tenant.objects.all():
        assign_perm("workflows.view_tenant", user, each)
        assign_perm("workflows.view_payloads", user, each)
    # Rights are remembered on the object; a fresh one has the new ones.
    return get_user_model().objects.get(pk=user.pk)


def quick_contract(kind: str, **changes: Any) -> ContractVersion:
    """A shipped contract with short pauses, so that a test need not wait for what is due."""
    shipped = ContractVersion.objects.get(slug=f"rehearsal-{kind}", version=1)
    document = shipped.document | {
        "version": 1000 + ContractVersion.objects.count(),
        "timeout_seconds": 2,
        "budget": shipped.document["budget"]
        | {"first_pause_seconds": 0.01, "longest_pause_seconds": 0.02},
    }
    if document["look_up"]:
        document["look_up"] = document["look_up"] | {"visibility_lag_seconds": 0}
    document |= changes
    return ContractVersion.objects.create(
        slug=document["slug"], version=document["version"], document=document
    )


def ready_provider(slug: str, base_url: str = "http://127.0.0.1:9", **fields: Any) -> Provider:
    """A provider at the rehearsal destination that lacks nothing, with an owner `reviewer_1`."""
    kind = PERSONALITIES[slug]
    tenant()
    queue, _ = ReviewQueue.objects.get_or_create(slug=slug, defaults={"name": slug})
    owner_of(queue)
    defaults: dict[str, Any] = {
        "name": slug.capitalize(),
        "adapter": "rehearsal",
        "account": "acct_demo",
        "base_url": base_url,
        "contract_version": quick_contract(kind),
        "settings": {"actions": ACTIONS[kind]},
        "visible_parameters": ["order", "amount", "currency", "name", "size", "zone", "ticket"],
        "replay_trust": "shown by the tests",
        "look_up_trust": "shown by the tests",
        "look_ups_per_second": 1000,  # a test that is not about the pace need not wait for a turn
        "default_queue": queue,
    }
    state = fields.pop("dispatch", Dispatch.ON)
    provider = Provider.objects.create(slug=slug, **(defaults | fields))
    switched(provider, state)
    return provider


def switched(provider: Provider, state: str) -> None:
    """Set a provider's dispatch without a word, and let nothing that waits go on by that."""
    DispatchStop.objects.filter(provider=provider).delete()
    if state != Dispatch.ON:
        DispatchStop.objects.create(provider=provider, state=state, by="system", reason="A test.")


def started_run(workflow: str = "refund", **input: Any) -> Run:
    given = {
        "refund": {"order": "ORD-7001", "amount": "125.00"},
        "approved_refund": {"order": "ORD-7001", "amount": "125.00"},
        "replacement_worker": {"name": "w1"},
        "ticket_triage": {"number": "T-17", "subject": "A refund", "body": "Where is it?"},
    }[workflow]
    return start(workflow, given | input, tenant=tenant())


def advanced(run: Run, keeper: Keeper | None = None) -> Run:
    """Take a run as far as it goes, as a worker would."""
    advance(run.pk, keeper or Keeper())
    run.refresh_from_db()
    return run


def settled(run: Run) -> Run:
    """Do what workers and sweep would do, until the run is over or waits for a person."""
    while True:
        run = advanced(run)
        if run.state in ("completed", "failed", "cancelled", "held"):
            return run
        operation = Operation.objects.get(run=run, step=run.step)
        assert operation.due_at is not None, "it would wait for ever"
        wait_until(operation.due_at)
        reconcile(operation.pk)


def wait_until(due: datetime) -> None:
    wait_for(lambda: database_now() >= due, "the operation is due")


def held_operation(destination: Any, workflow: str = "ticket_triage") -> Operation:
    """An operation that was applied, whose answer was lost, and that only a person can settle."""
    destination.client.arm("apply_then_drop")
    run = settled(started_run(workflow))
    return Operation.objects.get(run=run)


def open_hold_of(operation: Operation) -> Hold:
    return Hold.objects.get(operation=operation, state="open")


def code_of(subject: UUID) -> str:
    return subject.hex[-6:]


# --- people of the console ------------------------------------------------------------------------


def stranger(name: str = "stranger_1") -> Any:
    """Somebody with an account and no right to anything."""
    return person(name)


def reader(queue: ReviewQueue, name: str = "reader_1") -> Any:
    """Somebody who may see the tenant's runs and the queue, but neither payloads nor decide."""
    user = person(name)
    assign_perm("reconciliation.view_reviewqueue", user, queue)
    for each in Tenant.objects.all():
        assign_perm("workflows.view_tenant", user, each)
    return get_user_model().objects.get(pk=user.pk)


def administrator(name: str = "admin_1") -> Any:
    return person(name, is_staff=True, is_superuser=True)


# --- many rows, to count queries and to page ------------------------------------------------------


def held_step_run() -> Run:
    """A run that is held itself: its provider has no contract. `reviewer_1` owns its queue."""
    ready_provider("payments", contract_version=None)
    return advanced(started_run("refund"))


def many_runs(number: int, state: str = "held", **fields: Any) -> list[Run]:
    """Runs that no worker has taken, in `state`, each older than the next."""
    finished = state in ("completed", "failed", "cancelled")
    defaults: dict[str, Any] = {
        "workflow": "refund",
        "version": 1,
        "tenant": tenant(),
        "state": state,
        "step": "create_refund",
        "input": {},
        "finished_at": database_now() if finished else None,
    }
    return Run.objects.bulk_create(Run(**(defaults | fields)) for _ in range(number))


def many_held(number: int, provider: Provider) -> list[Hold]:
    """Held operations of `provider`, each due a minute after the one before it."""
    now = database_now()
    operations = Operation.objects.bulk_create(
        Operation(
            run=run,
            step=run.step,
            visit=1,
            effect="default",
            provider=provider,
            contract_version=provider.contract_version,
            action="refunds.create",
            target=f"order {place}",
            summary=f"Refund order {place}",
            parameters_redacted={},
            parameters_digest="",
            idempotency_key=str(run.pk),
            key_scope={},
            request_sealed=b"",
            state="held",
        )
        for place, run in enumerate(many_runs(number))
    )
    return Hold.objects.bulk_create(
        Hold(
            run=operation.run,
            operation=operation,
            provider=provider,
            queue=provider.default_queue,
            reason="unguarded",
            message="It was sent and no usable answer came.",
            due_at=now + timedelta(minutes=place + 1),
        )
        for place, operation in enumerate(operations)
    )
