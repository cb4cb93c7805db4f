"""The sweep: finds in the database what is due and was not told of, and tells of it again.

Run each second by every live worker process; any number at once change nothing but load
(`SKIP LOCKED`). No single process whose death stops it. Other apps add their own duties.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from uuid import UUID

import structlog
from django.conf import settings
from django.db import close_old_connections, connection

from workflows.registry import registry
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
    due = due_runs()
    for run in due:
        hints.send("workflows.tasks.advance", run)
    return len(due)


def due_runs(*, batch: int = BATCH, again: float = AGAIN_SECONDS) -> list[UUID]:
    """Return the runs that this process has the code for and nobody was told of lately.

    Args:
        batch: at most so many ready ones, and as many with expired leases.
        again: seconds until one that was told of is told of again.
    """
    pairs = registry.pairs()
    rows = fetch(
        "due_runs",
        {
            "batch": batch,
            "again": again,
            "names": [name for name, _ in pairs],
            "versions": [version for _, version in pairs],
        },
    )
    return [row["id"] for row in rows]


duties: list[Duty] = [hint_due_runs]


def register_duty(duty: Duty) -> None:
    """Let the sweep do `duty` too, each time."""
    if duty not in duties:
        duties.append(duty)


def sweep() -> int:
    """Do every duty once; return how many things were due.

    One that breaks is logged and keeps no other from being done: a sweep that ends would be a
    silent stop.
    """
    return sum(done(duty) for duty in duties)


def done(duty: Duty) -> int:
    try:
        return duty()
    except Exception:
        log.exception("sweep.failed")
        close_old_connections()
        return 0


class Sweeper(threading.Thread):
    """Sweeps until stopped. A database that is away is tried again at the next turn."""

    def __init__(self) -> None:
        super().__init__(name="sweep", daemon=True)
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(settings.ROMULUS_SWEEP_SECONDS):
            sweep()
        connection.close()

    def stop(self) -> None:
        self._stopped.set()
        self.join(timeout=10)
