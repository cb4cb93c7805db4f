"""Stores events, as the ingress does: `receive`, then the hint by the real broker.

Each finds a run that waits for it: one that is started before, and has come to its wait.
"""

from __future__ import annotations

import time
from uuid import UUID

from romulus_site.bench.flows import EVENT_TYPE, expecting_run
from romulus_site.bench.ingress import SECRET, SOURCE
from romulus_site.bench.talk import hear, say
from romulus_site.polling import wait_until
from workflows.core.events import Incoming
from workflows.core.sources import Scheme
from workflows.core.states import WaitState
from workflows.models import EventSource, Tenant, Wait
from workflows.models.ids import new_id
from workflows.services.inbox import receive
from workflows.services.runs import start
from workflows.services.sources import add_secret, save_source

WAIT_SECONDS = 30.0


def main() -> None:
    source = source_of_the_bench()
    say({"source": str(source.pk)})
    while (order := hear()) is not None:
        if order["what"] == "start":
            say({"run": str(waiting_run(source, order["correlation"]))})
        else:
            say(sent(source, order["correlation"]))


def source_of_the_bench() -> EventSource:
    known = EventSource.objects.filter(slug=SOURCE).first()
    if known is not None:
        return known
    tenant, _ = Tenant.objects.get_or_create(slug="bench", defaults={"name": "Bench"})
    made = EventSource(
        slug=SOURCE,
        name="Bench",
        tenant=tenant,
        scheme=Scheme.STANDARD_WEBHOOKS,
        correlation_path="data.order",
    )
    save_source(made, by="command:bench", changed=[])
    add_secret(made, "first", by="command:bench", value=SECRET)
    return made


def waiting_run(source: EventSource, correlation: str) -> UUID:
    run = start(expecting_run.name, {"correlation": correlation}, tenant=source.tenant)
    is_open = Wait.objects.filter(run=run, state=WaitState.WAITING).exists
    assert wait_until(is_open, WAIT_SECONDS), "no worker has taken it to its wait"
    return run.pk


def sent(source: EventSource, correlation: str) -> dict[str, float]:
    event_id = new_id().hex
    before = time.time()
    receive(
        Incoming(
            source=source.pk,
            tenant=source.tenant_id,
            event_id=event_id,
            type=EVENT_TYPE,
            correlation=correlation,
            body=b'{"data": {"order": 1}}',
        )
    )
    return {"before": before, "after": time.time()}
