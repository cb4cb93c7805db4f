"""Workers on many machines reserve turns at one provider at the same moment: each gets its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import pairwise
from threading import Barrier

from django.db import connection

from reconciliation.models import LookUpPace
from reconciliation.services.pacing import reserve
from tests.factories import ready_provider

WORKERS, EACH = 4, 5
APART = timedelta(seconds=100)


def test_no_two_workers_get_the_same_turn(committed_db: str) -> None:
    provider = ready_provider("machines")
    together = Barrier(WORKERS)

    def worker(_: int) -> list[datetime]:
        together.wait()
        try:
            return [reserve(provider.pk, APART) for _ in range(EACH)]
        finally:
            connection.close()

    with ThreadPoolExecutor(WORKERS) as pool:
        turns = sorted(turn for turns in pool.map(worker, range(WORKERS)) for turn in turns)
    assert [later - earlier for earlier, later in pairwise(turns)] == [APART] * (WORKERS * EACH - 1)
    assert LookUpPace.objects.get().next_at == turns[-1] + APART
