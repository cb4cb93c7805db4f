"""Starts runs, as a process of a customer's does: `start`, then the hint by the real broker.

An order that names no workflow sends a task of Celery alone instead.
"""

from __future__ import annotations

import time
import uuid

from celery import current_app

from romulus_site.bench.alone import TASK
from romulus_site.bench.talk import hear, say
from workflows.models import Tenant
from workflows.services.runs import start


def main() -> None:
    tenant, _ = Tenant.objects.get_or_create(slug="bench", defaults={"name": "Bench"})
    while (order := hear()) is not None:
        before = time.time()
        name = str(start(order["workflow"], order["input"], tenant=tenant).pk) if order else sent()
        say({"run": name, "before": before, "after": time.time()})


def sent() -> str:
    name = str(uuid.uuid4())
    current_app.send_task(TASK, args=[name])
    return name
