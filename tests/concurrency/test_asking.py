"""Two people press "Ask the provider again" at the same moment: the provider is asked once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from django.db import connection

from reconciliation.models import AuditEntry, Operation
from reconciliation.services.asking import ask_for
from tests.destination import RunningDestination
from tests.factories import person, ready_provider, settled, started_run


def test_asking_twice_at_once_asks_once(committed_db: str, destination: RunningDestination) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("apply_then_drop")
    destination.client.arm("lookup_unavailable", times=None)
    operation = Operation.objects.get(run=settled(started_run("replacement_worker")))
    owner = person()
    before = len(destination.client.journal(operation=str(operation.pk)))
    together = Barrier(2)

    def press(_: int) -> bool:
        together.wait()
        try:
            return ask_for(operation, owner)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        asked = sorted(pool.map(press, range(2)))
    assert asked == [False, True]
    assert AuditEntry.objects.filter(verb="asked").count() == 1
    assert len(destination.client.journal(operation=str(operation.pk))) == before + 1
