"""The ledger's part: runs of writes to the rehearsal destination, taken as a worker takes them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection

from reconciliation.models import ContractVersion, Provider, ReviewQueue
from reconciliation.rehearsal.providers import ACTIONS
from reconciliation.services.setup import make_owner
from romulus_site.bench.children.engine import flush, started
from romulus_site.bench.children.walking import Order, serve, taken
from romulus_site.bench.flows import BENCH, many_writes, one_write, warm_up_writes
from workflows.core.states import RunState
from workflows.models import Run, Tenant
from workflows.services.executor import advance
from workflows.services.ownership import Keeper

TRUST = "The destination ships with Romulus, whose tests show what it claims."


class Writes:
    """A walk of writes; see `walking.Job`."""

    def __init__(self, order: Order, keeper: Keeper) -> None:
        self.keeper = keeper
        workflow = one_write if order.steps == 1 else many_writes
        assert order.steps == len(workflow.steps)
        set_up_provider()
        self.warm_ups = deque(started(warm_up_writes.name, order.in_flight))
        self.ordered = started(workflow.name, order.runs)
        self.runs = deque(self.ordered)
        flush()
        connection.close()

    def warm(self) -> None:
        advance(self.warm_ups.popleft(), self.keeper)
        flush()

    def work(self) -> None:
        for run in taken(self.runs):
            advance(run, self.keeper)

    def close(self) -> None:
        connection.close()

    def undone(self) -> int:
        return undone(self.ordered)


def undone(runs: Iterable[UUID]) -> int:
    ordered = list(runs)
    completed = Run.objects.filter(pk__in=ordered, state=RunState.COMPLETED)
    return len(ordered) - completed.count()


def set_up_provider() -> None:
    """The provider, with an owner, as a person would set it up."""
    if Provider.objects.filter(slug=BENCH).exists():
        return
    tenant, _ = Tenant.objects.get_or_create(slug=BENCH, defaults={"name": "Bench"})
    queue = ReviewQueue.objects.create(slug=BENCH, name="Bench", tenant=tenant)
    make_owner(User.objects.create(username=BENCH), queue)
    Provider.objects.create(
        slug=BENCH,
        name="Bench",
        adapter="rehearsal",
        account="acct_bench",
        base_url=os.environ["ROMULUS_BENCH_DESTINATION"],
        settings={"actions": ACTIONS["keyed"]},
        contract_version=ContractVersion.objects.filter(slug="rehearsal-keyed").latest("version"),
        replay_trust=TRUST,
        look_up_trust=TRUST,
        default_queue=queue,
    )


def main() -> None:
    keeper = Keeper()
    keeper.start()
    serve(lambda order: Writes(order, keeper))
    keeper.stop()
