"""Sources, deliveries and workflows that wait, for tests of waits and events."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import count
from typing import Any

from django.db.models.functions import Now
from pydantic import BaseModel

from tests.factories import tenant
from workflows.core.definitions import END, Workflow
from workflows.core.events import Incoming, Receipt
from workflows.models import Event, EventSource, Run, Tenant, Wait
from workflows.registry import registry
from workflows.services.executor import advance
from workflows.services.inbox import receive
from workflows.services.ownership import Keeper
from workflows.services.run_view import RunView
from workflows.services.runs import start
from workflows.services.sweep import wake_due_runs

TYPE = "charge.refunded"
_numbers = count(1)


def within(run: RunView) -> timedelta:
    return timedelta(seconds=run.input.get("seconds", 3600))


def told(run: RunView) -> Any:
    """What the wait gave, as a test reads it."""
    got = run.output("refunded")
    if isinstance(got, list):
        return [event.event_id for event in got]
    if got is None:
        return None
    typed = isinstance(got.payload, BaseModel)
    return [got.event_id, got.payload.model_dump(mode="json") if typed else got.payload]


def expecting(name: str, **options: Any) -> Workflow:
    """A workflow that waits for the event which its input names, and tells what it got."""
    flow = Workflow(f"tests.{name}")

    @flow.wait(**({"event": TYPE, "within": within} | options))
    def refunded(run: RunView) -> str:
        given: str = run.input["correlation"]
        return given

    flow.step(then=END)(told)
    return flow


FAILING = expecting("failing_at_deadline")
HOLDING = expecting("held_at_deadline", event=[TYPE, "charge.failed"], on_deadline="hold")
GOING_ON = expecting("going_on_at_deadline", on_deadline="continue")
ELSEWHERE = expecting("elsewhere_at_deadline", on_deadline="remind")
COUNTING = expecting("counting", on_deadline="continue", count=3)
SHARING = expecting("sharing", within=None, shared=True)


@ELSEWHERE.step()
def remind(run: RunView) -> str:
    return "reminded"


def source(slug: str = "payments", of: Tenant | None = None) -> EventSource:
    made, _ = EventSource.objects.get_or_create(
        slug=slug, defaults={"name": slug, "tenant": of or tenant(), "scheme": "internal"}
    )
    return made


def incoming(
    correlation: str = "48213",
    *,
    type: str = TYPE,
    event_id: str | None = None,
    of: EventSource | None = None,
    payload: Any = None,
    problem: str = "",
) -> Incoming:
    of = of or source()
    return Incoming(
        source=of.pk,
        tenant=of.tenant_id,
        event_id=event_id or f"evt_no_{next(_numbers)}",
        type=type,
        correlation=correlation,
        body=json.dumps({"amount": 125} if payload is None else payload).encode(),
        problem=problem,
    )


def delivered(correlation: str = "48213", **fields: Any) -> Receipt:
    return receive(incoming(correlation, **fields))


def event_of(receipt: Receipt) -> Event:
    return Event.objects.get(pk=receipt.event)


def begun(flow: Workflow = FAILING, correlation: str = "48213", **input: Any) -> Run:
    """A run that no worker has taken."""
    registry.add(flow)
    given = {"correlation": correlation} | input
    return start(flow.name, given, tenant=tenant())


def waiting(flow: Workflow = FAILING, correlation: str = "48213", **input: Any) -> Run:
    """A run that a worker has taken as far as it goes: to its wait, unless the event is there."""
    return driven(begun(flow, correlation, **input))


def driven(run: Run, keeper: Keeper | None = None) -> Run:
    advance(run.pk, keeper or Keeper())
    run.refresh_from_db()
    return run


def wait_of(run: Run) -> Wait:
    wait = Wait.objects.filter(run=run).order_by("-id").first()
    assert wait is not None
    return wait


def let_deadline_come(run: Run) -> Wait:
    """The deadline of the open wait of `run` is past; nobody has carried it out."""
    past = Now() - timedelta(seconds=1)
    Wait.objects.filter(run=run, state="waiting").update(deadline=past)
    Run.objects.filter(pk=run.pk).update(wake_at=past)
    return wait_of(run)


def swept(run: Run) -> Run:
    """What sweep and worker do when a deadline has come."""
    wake_due_runs()
    return driven(run)
