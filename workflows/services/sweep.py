"""The sweep: finds in the database what is due and was not told of, and tells of it again.

Run each second by every live worker process; any number at once change nothing but load
(`SKIP LOCKED`). No single process whose death stops it. Other apps add their own duties.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from operator import itemgetter
from uuid import UUID

import structlog
from django.conf import settings
from django.db import close_old_connections, connection

from workflows.failpoints import failpoint
from workflows.registry import registry
from workflows.services import hints
from workflows.services.children import see_ends
from workflows.services.claims import next_due, of_pairs
from workflows.services.ending import end_cancelled
from workflows.services.gone_workers import end_leases_of_the_gone
from workflows.services.ownership import Keeper
from workflows.services.pauses import going_on
from workflows.services.waits import match_missed
from workflows.sql import fetch

log = structlog.get_logger(__name__)

# Of one sweep. Whoever is told of a run goes on with what else is due, so a few messages are
# enough for any backlog; more would only wake the same workers again.
HINTS = 20
BATCH = 1000  # waits that end in one sweep

Duty = Callable[[], int]


def hint_due_runs() -> int:
    """Hint at runs that are ready or whose lease ran out; return how many."""
    due = due_runs()
    for run in due:
        if not hints.send("workflows.tasks.advance", run):
            break  # the broker is away: one try tells, and the next sweep tries again
    return len(due)


def due_runs(*, batch: int = HINTS, again: float | None = None) -> list[UUID]:
    """Return runs that this process has the code for and nobody was told of lately, in their order.

    Args:
        batch: at most so many ready ones, and as many with expired leases.
        again: seconds until one that was told of is told of again; one sweep by default.
    """
    again = settings.ROMULUS_SWEEP_SECONDS if again is None else again
    runs = next_due(batch, again=again)
    pairs = of_pairs(going_on(registry.pairs()))
    failpoint("before_hint")
    due = fetch("due_runs", pairs | {"runs": runs, "batch": batch, "again": again})
    failpoint("after_hint")
    return [row["id"] for row in sorted(due, key=itemgetter("ready_at"))]


def wake_due_runs() -> int:
    """Make those waiting runs ready whose time has come; return how many."""
    failpoint("before_wake")
    woken = [row["id"] for row in fetch("wake_due", {"batch": BATCH})]
    failpoint("after_wake")
    hints.runs_are_ready(woken)
    return len(woken)


duties: list[Duty] = [wake_due_runs, see_ends, end_cancelled, match_missed]


def register_duty(duty: Duty) -> None:
    """Let the sweep do `duty` too, each time."""
    if duty not in duties:
        duties.append(duty)


def sweep(keeper: Keeper | None = None) -> int:
    """Do every duty once; return how many things were due.

    A duty that fails is logged and tried again at the next turn: a sweep that ended for it would
    be a silent stop. A process whose threads are all at work does not hint at due runs: they take
    what is due next when they are done, and its messages would only pile up.
    """
    done_now = sum(done(duty) for duty in duties)
    if keeper is None or keeper.has_free_thread():
        done_now += done(end_leases_of_the_gone) + done(hint_due_runs)
    return done_now


def done(duty: Duty) -> int:
    try:
        return duty()
    except Exception:
        log.exception("sweep.failed")
        close_old_connections()
        return 0


class Sweeper(threading.Thread):
    """Sweeps until stopped. A database that is away is tried again at the next turn."""

    def __init__(self, keeper: Keeper) -> None:
        super().__init__(name="sweep", daemon=True)
        self._keeper = keeper
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(settings.ROMULUS_SWEEP_SECONDS):
            sweep(self._keeper)
            self._keeper.has_swept()
        connection.close()

    def stop(self) -> None:
        self._stopped.set()
        self.join(timeout=10)
