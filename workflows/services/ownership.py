"""A worker process's identity, and the leases it renews while it lives.

One thread per process renews all its leases with one statement per interval. A process that could
not renew in time may not know whether its runs were taken over: it claims nothing new until a
renewal succeeds, and every write it makes carries its fence in any case.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import structlog
from django.conf import settings
from django.db import close_old_connections, connection

from workflows.models import Worker
from workflows.registry import registry
from workflows.sql import fetch

log = structlog.get_logger(__name__)

# A lease survives two missed renewals; the third is its end.
RENEWALS_PER_LEASE = 3


class Keeper:
    """Keeps one worker process known, and its leases alive."""

    def __init__(self) -> None:
        self.lease: float = settings.ROMULUS_LEASE_SECONDS
        self.worker: UUID = Worker.objects.create(
            host=socket.gethostname(),
            pid=os.getpid(),
            workflows=[list(pair) for pair in registry.pairs()],
        ).pk
        self._proven_until = time.monotonic() + self.lease
        self._at_work: set[UUID] = set()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="leases", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def may_claim(self) -> bool:
        """Whether this process may take up new work: it can prove its leases and is not ending."""
        return not self._closing.is_set() and time.monotonic() < self._proven_until

    @contextmanager
    def at_work(self, attempt: UUID) -> Iterator[None]:
        """Renew the lease of `attempt` while its thread is in here, and no longer.

        So what a process gives up, or has got without being told of it, is left to its lease.
        """
        with self._lock:
            self._at_work.add(attempt)
        try:
            yield
        finally:
            with self._lock:
                self._at_work.discard(attempt)

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
        with self._lock:
            attempts = list(self._at_work)
        fetch("renew_leases", {"worker": self.worker, "lease": self.lease, "attempts": attempts})
        fetch("seen", {"worker": self.worker})
        self._proven_until = asked_at + self.lease

    def _keep(self) -> None:
        while not self._stopped.wait(self.lease / RENEWALS_PER_LEASE):
            try:
                self.renew()
            except Exception as error:  # noqa: BLE001 (a thread that ends would end all leases)
                name = type(error).__name__
                log.warning("lease.not_renewed", worker=str(self.worker), error=name)
                close_old_connections()
        connection.close()


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


_keeper_pid = 0
