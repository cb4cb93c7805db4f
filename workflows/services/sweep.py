"""The sweep: finds in the database what is due and was not told of, and tells of it again.

Run each second by every live worker process; any number at once change nothing but load
(`SKIP LOCKED`). No single process whose death stops it. Other apps add their own duties.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog
from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection

from workflows.services import hints
from workflows.sql import fetch

log = structlog.get_logger(__name__)

BATCH = 100
# A run that was told of and still not claimed is waiting in a backlog: say it again, but not each
# second, or a long backlog would drown in its own hints.
AGAIN_SECONDS = 10

Duty = Callable[[], int]


def hint_due_runs() -> int:
    """Hint at runs that are ready or whose lease ran out; return how many."""
    rows = fetch("due_runs", {"batch": BATCH, "again": AGAIN_SECONDS})
    for row in rows:
        hints.send("workflows.tasks.advance", row["id"])
    return len(rows)


duties: list[Duty] = [hint_due_runs]


def register_duty(duty: Duty) -> None:
    """Let the sweep do `duty` too, each time."""
    if duty not in duties:
        duties.append(duty)


def sweep() -> int:
    """Do every duty once; return how many things were due."""
    return sum(duty() for duty in duties)


class Sweeper(threading.Thread):
    """Sweeps until stopped. A database that is away is tried again at the next turn."""

    def __init__(self) -> None:
        super().__init__(name="sweep", daemon=True)
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(settings.ROMULUS_SWEEP_SECONDS):
            try:
                sweep()
            except DatabaseError:
                log.exception("sweep.failed")
                close_old_connections()
        connection.close()

    def stop(self) -> None:
        self._stopped.set()
        self.join(timeout=10)
