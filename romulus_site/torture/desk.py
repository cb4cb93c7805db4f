"""What the clerk can be asked for. Each may be asked twice, and says when it was done."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from reconciliation.core.errors import AlreadyDecided, InvalidDecision, NotAllowed
from reconciliation.core.facts import Dispatch
from reconciliation.core.states import DecisionKind
from reconciliation.models import Hold, Operation, Provider
from reconciliation.services.answers import Answer, code_of
from reconciliation.services.asking import ask_for
from reconciliation.services.decisions import record_decision
from reconciliation.services.dispatch import set_dispatch
from romulus_site.torture import answers
from romulus_site.torture.scene import PERSON, SOURCE, TENANT
from workflows.core.errors import RunIsOver
from workflows.core.events import Incoming
from workflows.models import EventSource, Tenant
from workflows.services.clock import database_now
from workflows.services.inbox import receive
from workflows.services.purge import purge_due
from workflows.services.runs import Start, start_many
from workflows.services.runs import start as start_run
from workflows.services.stopping import cancel_run, pause_all, pause_run, resume_all, resume_run

REASON = "Part of a torture, which says when it is over."


def done(outcome: str) -> dict[str, Any]:
    """What was done, and a time at which it certainly was."""
    return {"outcome": outcome, "at": database_now().isoformat()}


def look() -> dict[str, Any]:
    """Be there, with a connection to the database."""
    return done("here")


def start(workflow: str, input: dict[str, Any], key: str) -> dict[str, Any]:
    tenant = Tenant.objects.get(slug=TENANT)
    run = start_run(workflow, input, tenant=tenant, start_key=key)
    return done("started") | {"run": str(run.pk)}


def start_several(workflow: str, input: dict[str, Any], key: str) -> dict[str, Any]:
    """As many at once are started; here one, twice named."""
    tenant = Tenant.objects.get(slug=TENANT)
    runs = start_many(workflow, [Start(input, key), Start(input, key)], tenant=tenant)
    return done("started") | {"run": str(runs[0].pk)}


def deliver(event_id: str, type: str, correlation: str, number: int) -> dict[str, Any]:
    """Take an event as its ingress does once the delivery is known to be genuine."""
    source = EventSource.objects.get(slug=SOURCE)
    incoming = Incoming(
        source=source.pk,
        tenant=source.tenant_id,
        event_id=event_id,
        type=type,
        correlation=correlation,
        body=json.dumps(answers.event_body(number, event_id, type, correlation)).encode(),
        content_type="application/json",
    )
    receipt = receive(incoming)
    return done(str(receipt.outcome)) | {"event": str(receipt.event)}


def cancel(run: str) -> dict[str, Any]:
    try:
        return done(str(cancel_run(UUID(run), by=PERSON, reason=REASON)))
    except RunIsOver:
        return done("over")


def pause(run: str) -> dict[str, Any]:
    try:
        pause_run(UUID(run), by=PERSON, reason=REASON)
    except RunIsOver:
        return done("over")
    return done("paused")


def resume(run: str) -> dict[str, Any]:
    try:
        resume_run(UUID(run), by=PERSON, reason=REASON)
    except RunIsOver:
        return done("over")
    return done("resumed")


def halt(workflow: str) -> dict[str, Any]:
    pause_all(by=PERSON, reason=REASON, workflow=workflow)
    return done("paused")


def unhalt(workflow: str) -> dict[str, Any]:
    resume_all(by=PERSON, reason=REASON, workflow=workflow)
    return done("resumed")


def switch(provider: str, state: str) -> dict[str, Any]:
    found = Provider.objects.get(slug=provider)
    set_dispatch(found, Dispatch(state), person(), REASON)
    return done(state)


def decide(hold: str, version: int, kind: str, token: str, resource: str) -> dict[str, Any]:
    found = Hold.objects.get(pk=hold)
    answer = Answer(
        kind=DecisionKind(kind),
        note=REASON,
        version=version,
        token=UUID(token),
        code=code_of(found.operation_id or found.run_id),
        resource=resource,
    )
    try:
        record_decision(found.pk, person(), answer)
    except (AlreadyDecided, NotAllowed, InvalidDecision) as error:
        return done("refused") | {"why": str(error)}
    return done("decided")


def ask(operation: str) -> dict[str, Any]:
    """Ask the provider what became of a held operation, as its owner does from its page."""
    found = Operation.objects.get(pk=operation)
    return done("asked" if ask_for(found, person()) else "not asked")


def purge() -> dict[str, Any]:
    return done("purged") | {"outputs": purge_due().outputs}


def person() -> User:
    return User.objects.get(username=PERSON)


DUTIES = {
    duty.__name__: duty
    for duty in (
        look,
        start,
        start_several,
        deliver,
        cancel,
        pause,
        resume,
        halt,
        unhalt,
        switch,
        decide,
        ask,
        purge,
    )
}
