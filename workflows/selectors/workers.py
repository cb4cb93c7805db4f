"""Who works: the worker processes that were seen lately, and their names."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.db.models.functions import Now

from workflows.models import Worker
from workflows.services.migrations import NOBODY


def live_workers(now: datetime | Now | None = None) -> QuerySet[Worker]:
    """The worker processes that were seen within one lease before `now`, the database's time, and
    were not found gone since; the latest first."""
    lately = (now or Now()) - timedelta(seconds=settings.ROMULUS_LEASE_SECONDS)
    return Worker.objects.filter(seen_at__gt=lately, gone_at=None).order_by("-seen_at")


def live_worker_pids() -> set[int]:
    return set(live_workers().values_list("pid", flat=True))


def worker_names(workers: Iterable[UUID | None]) -> dict[UUID, str]:
    """What people call each of `workers`: one query, none for no worker."""
    wanted = {worker for worker in workers if worker is not None}
    if not wanted:
        return {}
    return named(wanted, Worker.objects.filter(pk__in=wanted))


def named(wanted: Iterable[UUID], rows: Iterable[Worker]) -> dict[UUID, str]:
    """What people call each of the `wanted`, whose `rows` were read."""
    known = {row.pk: str(row) for row in rows}
    return {pk: known.get(pk) or name_of(pk) for pk in wanted}


def name_of(worker: UUID) -> str:
    """What a worker is called that is not known: nobody, or one of long ago."""
    return "Romulus" if worker == NOBODY else f"worker {worker.hex[-6:]}"
