"""`shipfake`, the producer of events of the field cases: it signs, and speaks to a real console."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.hooking import Answer, Hooks
from tests.acceptance.settling import SETTLED
from tests.acceptance.web import web
from tests.delivering import signed, source
from tests.factories import tenant
from tests.workers import environment_of
from workflows.core.sources import Scheme
from workflows.models import Tenant


@dataclass(frozen=True)
class Delivery:
    """Signed already: it can be sent from any thread."""

    slug: str
    body: bytes
    headers: dict[str, str]


@dataclass(frozen=True)
class Shipfake:
    hooks: Hooks

    def send(self, delivery: Delivery) -> Answer:
        return self.hooks.post(delivery.slug, delivery.body, delivery.headers)

    def settle(self, order: str, id: str) -> Answer:
        return self.send(settlement(order, id))


def settlement(order: str, id: str, slug: str = "shipfake") -> Delivery:
    """The delivery that says that the refund of `order` is settled."""
    body = json.dumps({"type": SETTLED, "data": {"order": order, "amount": 12500}}).encode()
    return Delivery(slug, body, signed(Scheme.STANDARD_WEBHOOKS, body, id=id))


def producer(slug: str = "shipfake", of: Tenant | None = None) -> None:
    source(slug=slug, tenant=of or tenant())


@contextmanager
def shipping(database_url: str, folder: Path) -> Iterator[Shipfake]:
    """Shipfake beside a running console that knows it."""
    producer()
    with web(environment_of(database_url), folder) as console:
        yield Shipfake(Hooks(console, folder / "web.log"))
