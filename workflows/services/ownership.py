"""A worker process's identity, and the leases it renews while it lives.

One thread per process renews all its leases with one statement per interval. A process that could
not renew in time may not know whether its runs were taken over: it claims nothing new until a
renewal succeeds, and every write it makes carries its fence in any case.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from uuid import UUID

import psycopg
import structlog
from django.conf import settings
from django.db import close_old_connections, connection

from workflows.failpoints import failpoint
from workflows.models import Worker
from workflows.registry import registry
from workflows.services.hints import broker_away
from workflows.sql import fetch

log = structlog.get_logger(__name__)

# A lease survives two missed renewals; the third is its end.
RENEWALS_PER_LEASE = 3
# After one that failed it is tried again so soon.
AGAIN_SECONDS = 0.5
# How often the keeper looks whether its session has ended: to others that is how a process dies.
LOOK_SECONDS = 0.2


class Keeper:
    """Keeps one worker process known, and its leases alive."""

    def __init__(self) -> None:
        self.lease: float = settings.ROMULUS_LEASE_SECONDS
        failpoint("before_enlist")
        self.worker: UUID = Worker.objects.create(
            host=socket.gethostname(),
            pid=os.getpid(),
            workflows=[list(pair) for pair in registry.pairs()],
        ).pk
        failpoint("after_enlist")
        self._proven_until = time.monotonic() + self.lease
        # The attempts under way, and when each is over by its step's timeout (monotonic seconds).
        # Adding to a dict, dropping from it and copying it are atomic.
        self._at_work: dict[UUID, float] = {}
        self.threads = 0  # how many steps the process works on at once; 0: not known
        self._swept_at: float | None = None
        self._closing = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="leases", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def may_claim(self) -> bool:
        """Whether this process may take up new work: it can prove its leases and is not ending."""
        return not self._closing.is_set() and time.monotonic() < self._proven_until

    def has_free_thread(self) -> bool:
        """Whether a message that came now would find somebody to take it."""
        return self.may_claim() and (not self.threads or len(self._at_work) < self.threads)

    def has_swept(self) -> None:
        self._swept_at = time.monotonic()

    def begin(self, attempt: UUID, timeout: float) -> None:
        """Renew the lease of `attempt` from now until `end`, and no longer.

        So what a process gives up, or has got without being told of it, is left to its lease.

        Args:
            timeout: seconds that its step may take.
        """
        self._at_work[attempt] = time.monotonic() + timeout

    def end(self, attempt: UUID) -> None:
        self._at_work.pop(attempt, None)

    def close(self) -> None:
        """Take up nothing new; leases are still renewed, so that steps at work can finish."""
        self._closing.set()

    def stop(self) -> None:
        """End the renewing thread; call after the last step has ended."""
        self._closing.set()
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout=self.lease)

    def renew(self) -> None:
        """Renew all leases of this process; the proof counts from before the statement is sent."""
        asked_at = time.monotonic()
        attempts = list(self._at_work)
        failpoint("before_renew")
        parameters = {"worker": self.worker, "lease": self.lease, "attempts": attempts}
        renewed = {row["attempt"] for row in fetch("renew_leases", parameters)}
        failpoint("after_renew")
        if asked_at > self._proven_until:
            # It was frozen, or the database was away: others may have taken over meanwhile.
            log.warning(
                "lease.lapsed",
                worker=str(self.worker),
                seconds=round(asked_at - self._proven_until, 1),
                lost=[str(attempt) for attempt in attempts if attempt not in renewed],
            )
        self._proven_until = asked_at + self.lease
        swept = None if self._swept_at is None else asked_at - self._swept_at
        fetch(
            "seen",
            {
                "worker": self.worker,
                "broker_away": broker_away(),
                "swept": swept,
                "session": connection.connection.info.backend_pid,
            },
        )
        failpoint("after_seen")

    def is_hung(self) -> bool:
        """Whether every thread is at a step that should long be over: nothing frees a thread."""
        hung = [over for over in self._at_work.values() if over + self.lease < time.monotonic()]
        return bool(self.threads) and len(hung) >= self.threads

    def _keep(self) -> None:
        interval = self.lease / RENEWALS_PER_LEASE
        # At once: nobody misses the session of a worker that has not told of one.
        due, rest = time.monotonic(), 0.0
        while not self._stopped.wait(rest):
            rest = min(LOOK_SECONDS, interval)
            if session_has_ended():
                connection.close()
            elif time.monotonic() < due:
                continue
            due = time.monotonic() + (interval if self._renewed() else min(AGAIN_SECONDS, interval))
        connection.close()

    def _renewed(self) -> bool:
        """Renew; whether it could."""
        if self.is_hung():
            # Their runs went to other workers when the leases ran out. This process can do
            # nothing any more; whoever supervises it starts a fresh one.
            log.critical("worker.hung", worker=str(self.worker), steps=len(self._at_work))
            os._exit(os.EX_SOFTWARE)
        try:
            self.renew()
        except Exception as error:  # noqa: BLE001 (a thread that ends would end all leases)
            name = type(error).__name__
            log.warning("lease.not_renewed", worker=str(self.worker), error=name)
            close_old_connections()
            return False
        return True


def session_has_ended() -> bool:
    """Whether this thread's session is over, without asking the server: it has told, or is gone."""
    raw = connection.connection
    if raw is None or raw.closed:
        return False  # the next statement opens one
    heard = select.poll()
    heard.register(raw.pgconn.socket, select.POLLIN)
    if not heard.poll(0):
        return False
    try:
        raw.pgconn.consume_input()  # what has come may be a mere notice
    except psycopg.OperationalError:
        return True
    return False


_keeper: Keeper | None = None
_keeper_lock = threading.Lock()


def this_process() -> Keeper:
    """Return this process's keeper, made and started at its first use.

    Bound to the process ID: a child that was forked after that gets an identity of its own.
    """
    global _keeper, _keeper_pid
    with _keeper_lock:
        if _keeper is None or _keeper_pid != os.getpid():
            _keeper, _keeper_pid = Keeper(), os.getpid()
            _keeper.start()
        return _keeper


def of_this_process() -> Keeper | None:
    """Return this process's keeper, if it has one by now."""
    return _keeper if _keeper_pid == os.getpid() else None


_keeper_pid = 0
