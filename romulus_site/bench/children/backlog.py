"""Makes a backlog in one call, and times what has to find its way in it."""

from __future__ import annotations

import time
from collections.abc import Callable

from romulus_site.bench.flows import short_run
from romulus_site.bench.talk import hear, say
from workflows.models import Tenant
from workflows.services.claims import claim_next
from workflows.services.ownership import Keeper
from workflows.services.runs import Start, start_many
from workflows.services.sweep import sweep


def main() -> None:
    keeper = Keeper()
    keeper.start()
    tenant, _ = Tenant.objects.get_or_create(slug="bench", defaults={"name": "Bench"})

    def start_all(number: int) -> None:
        started = start_many(short_run.name, [Start()] * number, tenant=tenant)
        assert len(started) == number

    def claim() -> None:
        assert claim_next(keeper.worker) is not None

    while (order := hear()) is not None:
        if order["runs"]:
            say({"start": seconds(lambda: start_all(order["runs"]))})
        else:
            say({"sweep": seconds(sweep), "claim": seconds(claim)})
    keeper.stop()


def seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began
