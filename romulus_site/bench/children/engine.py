"""The engine's part: `advance`, as a worker's thread calls it, for runs that are started before."""

from __future__ import annotations

from collections import deque
from uuid import UUID

from django.db import connection

from romulus_site.bench.children.walking import FLUSH, WARM_UPS, Order, serve, taken
from romulus_site.bench.flows import long_run, short_run, warm_up
from workflows.core.states import RunState
from workflows.models import Run, Tenant
from workflows.services.executor import advance
from workflows.services.ownership import Keeper
from workflows.services.runs import Start, start_many


class Engine:
    """A walk of the engine; see `walking.Job`."""

    def __init__(self, order: Order, keeper: Keeper) -> None:
        self.keeper = keeper
        workflow = short_run if order.steps == len(short_run.steps) else long_run
        assert order.steps == len(workflow.steps)
        self.warm_ups = deque(started(warm_up.name, order.in_flight * WARM_UPS))
        self.ordered = started(workflow.name, order.runs)
        self.runs = deque(self.ordered)
        flush()
        connection.close()

    def warm(self) -> None:
        for _ in range(WARM_UPS):
            advance(self.warm_ups.popleft(), self.keeper)
        flush()

    def work(self) -> None:
        for run in taken(self.runs):
            advance(run, self.keeper)

    def close(self) -> None:
        connection.close()

    def undone(self) -> int:
        completed = Run.objects.filter(pk__in=self.ordered, state=RunState.COMPLETED)
        return len(self.ordered) - completed.count()


def started(workflow: str, number: int) -> list[UUID]:
    tenant, _ = Tenant.objects.get_or_create(slug="bench", defaults={"name": "Bench"})
    return [run.pk for run in start_many(workflow, [Start()] * number, tenant=tenant)]


def flush() -> None:
    with connection.cursor() as cursor:
        cursor.execute(FLUSH)


def main() -> None:
    keeper = Keeper()
    keeper.start()
    serve(lambda order: Engine(order, keeper))
    keeper.stop()
