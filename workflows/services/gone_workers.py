"""A worker that was killed is found by the end of its session, long before its leases run out.

The system closes the sockets of a process that ends, and the database its sessions. So the leases
of a worker whose keeper's session is over run out at once, and the sweep gives its runs to others.

That is no proof of death: an administrator can end a session too, or a network. A living worker
notices at once, and its next session is known before anybody has asked for a second time; if not,
nothing is lost but a try, since it is the fence that says who holds a run. After a restart of the
server the leases decide, and so they do behind a pooler, whose sessions are not the worker's.
"""

from __future__ import annotations

import time
from uuid import UUID

import structlog
from django.conf import settings

from workflows.failpoints import failpoint
from workflows.sql import fetch

log = structlog.get_logger(__name__)

# So long must a session be over: longer than a living worker takes for the next one.
GONE_SECONDS = 1.0
BATCH = 1000  # leases that end in one sweep


class GoneWorkers:
    """A duty of the sweep: end the leases of workers that are gone."""

    def __init__(self) -> None:
        self._gone_since: dict[tuple[UUID, int], float] = {}  # by worker and session

    def __call__(self) -> int:
        """Return how many leases have ended."""
        found = fetch("gone_workers", {"lease": settings.ROMULUS_LEASE_SECONDS})
        now = time.monotonic()
        self._gone_since = {
            session: self._gone_since.get(session, now)
            for session in ((row["id"], row["session"]) for row in found)
        }
        gone = [
            worker for (worker, _), since in self._gone_since.items() if now - since >= GONE_SECONDS
        ]
        return end_leases(gone) if gone else 0


def end_leases(workers: list[UUID]) -> int:
    failpoint("before_gone")
    ended = fetch("end_leases", {"workers": workers, "batch": BATCH})
    failpoint("after_gone")
    if ended:
        log.warning("worker.gone", workers=[str(each) for each in workers], runs=len(ended))
    return len(ended)


end_leases_of_the_gone = GoneWorkers()
