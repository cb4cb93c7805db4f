"""Sending an event by hand, or from a program on this machine, for an internal source.

It goes through the same inbox as what comes from outside: stored, deduplicated by its ID, matched.
Over HTTP the same is `POST /hooks/<source>/` with the source's bearer token.
"""

from __future__ import annotations

import json
from uuid import uuid4

from django.db import transaction

from workflows.core.errors import UsageError
from workflows.core.events import Incoming, Receipt
from workflows.core.extraction import read_body, read_event
from workflows.core.json_text import NotJson, parse
from workflows.core.proposals import APPROVAL_EVENT
from workflows.core.sources import Scheme
from workflows.failpoints import failpoint
from workflows.models import EventSource
from workflows.services import audit
from workflows.services.inbox import receive
from workflows.services.known_sources import rules_now
from workflows.services.stopping import check_words


def send_event(
    source: EventSource,
    *,
    type: str,
    correlation: str,
    data: str = "null",
    event_id: str = "",
    by: str,
) -> Receipt:
    """Store an event of an internal source and give it to whoever waits for it.

    Args:
        data: JSON, as text: it is sent as it is written, so that no number is rounded.
        event_id: sending it twice with the same one sends it once; a new one when empty.
        by: who sends it, for the record.

    Raises:
        UsageError: the source is not internal or is switched off, or its rules do not find in the
            event what was given; says what. Nothing is stored then.
    """
    check_words(by, "")
    if type == APPROVAL_EVENT:
        # Whoever sends it would answer for another system, and perhaps what they proposed.
        raise UsageError("type: An approval is answered on its own page, not by an event by hand.")
    check_source(source)
    named = {"id": event_id or str(uuid4()), "type": type, "correlation": correlation}
    body = body_with(named, data)
    check_found(source, named, body)
    incoming = Incoming(
        source=source.pk,
        tenant=source.tenant_id,
        event_id=named["id"],
        type=type,
        correlation=correlation,
        body=body,
    )
    failpoint("before_sent")
    with transaction.atomic():
        receipt = receive(incoming)
        audit.record(by, "event sent", f"event:{receipt.event}", outcome=str(receipt.outcome))
    failpoint("after_sent")
    return receipt


def check_source(source: EventSource) -> None:
    if source.scheme != Scheme.INTERNAL:
        raise UsageError(
            f"source {source.slug} is not internal: only whoever has its secret sends its events"
        )
    if not source.enabled:
        raise UsageError(f"source {source.slug} is switched off")


def body_with(named: dict[str, str], data: str) -> bytes:
    try:
        parse(data.encode(errors="replace"))
    except NotJson as problem:
        raise UsageError(f"data: {problem}") from problem
    head = json.dumps(named, ensure_ascii=False).removesuffix("}")
    return f'{head}, "data": {data}}}'.encode(errors="replace")


def check_found(source: EventSource, named: dict[str, str], body: bytes) -> None:
    """What the source's rules find has to be what was given: no event is stored as another one."""
    if len(body) > source.max_bytes:
        raise UsageError(
            f"data: the event has {len(body):,} bytes, of {source.max_bytes:,} at most"
        )
    found = read_event(rules_now(source), {}, read_body(body, Scheme.INTERNAL))
    if found.problem:
        raise UsageError(f"the event is not as source {source.slug} wants it: {found.problem}")
    if (found.event_id, found.type, found.correlation) != tuple(named.values()):
        raise UsageError(
            f"source {source.slug} reads ID, type or correlation from elsewhere: send the whole "
            "body to its address"
        )
