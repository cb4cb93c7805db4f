"""Starts runs, as a process of a customer's does: `start`, then the hint by the real broker."""

from __future__ import annotations

import time

from romulus_site.bench.talk import hear, say
from workflows.models import Tenant
from workflows.services.runs import start


def main() -> None:
    tenant, _ = Tenant.objects.get_or_create(slug="bench", defaults={"name": "Bench"})
    while (order := hear()) is not None:
        before = time.time()
        run = start(order["workflow"], order["input"], tenant=tenant)
        say({"run": str(run.pk), "before": before, "after": time.time()})
