"""Sources as tests set them up, and deliveries to them as a sender makes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import httpx
from django.test import Client

from tests.factories import tenant
from tests.signing import HMAC_SETTINGS, SIGNERS, TOPIC, secret_of, sns_signer
from workflows.core.sources import Scheme
from workflows.models import EventSource, RefusalCount
from workflows.services.clock import database_now
from workflows.services.sources import add_secret, save_source

SETTINGS: dict[Scheme, dict[str, Any]] = {
    Scheme.HMAC: HMAC_SETTINGS,
    Scheme.AWS_SNS: {"topics": [TOPIC]},
}
PATHS = {
    Scheme.STANDARD_WEBHOOKS: {"correlation_path": "data.order"},
    Scheme.AWS_SNS: {"type_path": "Message.type", "correlation_path": "Message.data.order"},
    Scheme.BEARER: {"correlation_path": "data.order"},
    Scheme.INTERNAL: {"correlation_path": "data.order"},
}
ALL_PATHS = {"id_path": "id", "type_path": "type", "correlation_path": "data.order"}


def source(
    scheme: Scheme = Scheme.STANDARD_WEBHOOKS, slug: str = "shop", **fields: Any
) -> EventSource:
    """A source whose secret is the scheme's of `tests.signing`."""
    settings = SETTINGS.get(scheme, {})
    if scheme is Scheme.AWS_SNS:
        settings = settings | {"certificates": [sns_signer().pem]}
    content = ["text/plain"] if scheme is Scheme.AWS_SNS else ["application/json"]
    defaults: dict[str, Any] = {
        "name": slug.capitalize(),
        "tenant": tenant(),
        "settings": settings,
        "content_types": content,
    }
    made = EventSource(
        slug=slug, scheme=scheme, **(defaults | PATHS.get(scheme, ALL_PATHS) | fields)
    )
    save_source(made, by="command:tests", changed=[])
    if scheme is not Scheme.AWS_SNS:
        add_secret(made, "first", by="command:tests", value=secret_of(scheme))
    return made


def paid(id: str = "e-1", order: Any = "ORD-1", **data: Any) -> bytes:
    """The body of an event that every source of these understands."""
    return json.dumps({"id": id, "type": "order.paid", "data": {"order": order} | data}).encode()


def signed(
    scheme: Scheme, body: bytes, at: datetime | None = None, *, secret: str = "", id: str = ""
) -> dict[str, str]:
    """The headers of a delivery, signed by the scheme's own library `at` the database's now."""
    when = at or database_now()
    headers = SIGNERS[scheme](secret or secret_of(scheme), body, when)
    if id and scheme is Scheme.STANDARD_WEBHOOKS:
        from tests.signing import standard

        headers = standard(secret or secret_of(scheme), body, when, id)
    return {"content-type": "application/json"} | headers


def deliver(
    client: Client,
    body: bytes,
    headers: dict[str, str] | None = None,
    *,
    slug: str = "shop",
    scheme: Scheme = Scheme.STANDARD_WEBHOOKS,
    **changes: str,
) -> Any:
    """POST as a sender does; `headers` default to those of a genuine delivery."""
    given = dict(signed(scheme, body) if headers is None else headers)
    given |= {name.replace("_", "-"): value for name, value in changes.items()}
    # Django's client names no content type for an empty body by itself.
    extra = {"CONTENT_TYPE": given.pop("content-type", "")}
    return client.generic("POST", f"/hooks/{slug}/", body, headers=given, **extra)


def refusals(slug: str = "shop") -> dict[str, tuple[int, str]]:
    """What was counted of a source's refused deliveries: how many, and the last note."""
    rows = RefusalCount.objects.filter(source__slug=slug)
    return {row.reason: (row.number, row.note) for row in rows}


LONG = timedelta(hours=1)


@contextmanager
def sender(port: int) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://localhost:{port}", timeout=30, trust_env=False) as client:
        yield client
