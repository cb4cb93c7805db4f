"""Duties of the sweep that are done seldom, and whose storage may hang.

The sweep comes by each second and must not be held up: runs would not be told of meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from workflows.models import Worker
from workflows.services.event_purge import purge_due_events
from workflows.services.orphans import collect_orphans
from workflows.services.ownership import this_process
from workflows.services.purge import purge_due

log = structlog.get_logger(__name__)

PURGE_SECONDS = 60
COLLECT_SECONDS = 3600
LEASES_UNTIL_GONE = 3  # a worker not seen for so many leases is no longer counted on


class Seldom:
    """A duty that is done each `seconds` at most, in a thread of its own, never twice at once.

    Its first turn is `seconds` after the first call, so that processes which are started again and
    again do not do it each time.
    """

    def __init__(self, name: str, work: Callable[[], object], seconds: float) -> None:
        self.name = name
        self.work = work
        self.seconds = seconds
        self._next: float | None = None
        self._thread: threading.Thread | None = None

    def __call__(self) -> int:
        now = time.monotonic()
        if self._next is None:
            self._next = now + self.seconds
        if now < self._next or self.is_at_work():
            return 0
        self._next = now + self.seconds
        # A daemon: it may be cut off anywhere, and the next one goes on.
        self._thread = threading.Thread(target=self._do, name=self.name, daemon=True)
        self._thread.start()
        return 1

    def is_at_work(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _do(self) -> None:
        try:
            self.work()
        except Exception:
            log.exception("duty.failed", duty=self.name)
        finally:
            connection.close()


def collect_as(worker: UUID) -> None:
    """Collect orphans, if this is the eldest of the live workers: the whole storage is listed, and
    once is enough."""
    gone = timedelta(seconds=settings.ROMULUS_LEASE_SECONDS * LEASES_UNTIL_GONE)
    alive = Worker.objects.filter(seen_at__gt=Now() - gone)
    if alive.order_by("pk").values_list("pk", flat=True).first() == worker:
        collect_orphans(timedelta(seconds=settings.ROMULUS_ORPHAN_SECONDS))


purge_seldom = Seldom("purge", purge_due, PURGE_SECONDS)
purge_events_seldom = Seldom("purge_events", purge_due_events, PURGE_SECONDS)
collect_seldom = Seldom("orphans", lambda: collect_as(this_process().worker), COLLECT_SECONDS)
