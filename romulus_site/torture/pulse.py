"""Whether the database and this machine keep pace: a commit, again and again, and how long it took.

Leases are short here, and a machine that stands still for as long as one takes runs away from
workers that nobody has struck. What is measured is an excuse; what is only assumed is none.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

import psycopg

from romulus_site.torture.strikes import AFTERMATH, Strike

INTERVAL_SECONDS = 0.1
# A renewal is due each third of a lease, so a pulse that takes this much of one is a stall.
STALL = 1 / 3
BEAT = "CREATE TABLE IF NOT EXISTS torture_pulse (beats bigint); INSERT INTO torture_pulse SELECT 1"


class Pulse(threading.Thread):
    """Beats until stopped; keeps each stall as a strike that nobody has planned."""

    def __init__(self, dsn: str, now: Callable[[], datetime], lease: float) -> None:
        super().__init__(name="pulse", daemon=True)
        self._dsn, self._now, self._stall = dsn, now, lease * STALL
        self._stopped = threading.Event()
        self._connection: psycopg.Connection | None = None
        self.stalls: list[Strike] = []

    def run(self) -> None:
        while not self._stopped.is_set():
            began = time.monotonic()
            # Also the rest between two beats: what sleeps longer than it asked for is starved.
            self._stopped.wait(INTERVAL_SECONDS)
            self._beat()
            took = time.monotonic() - began
            if took > self._stall:
                at = self._now() - timedelta(seconds=took)
                self.stalls.append(Strike("database", f"slow, {took:.1f} s", at, self._now()))

    def stop(self) -> None:
        self._stopped.set()
        self.join(timeout=10)
        if self._connection is not None:
            self._connection.close()

    def _beat(self) -> None:
        """Commit something. A database that was taken away is a blow, and that is on record."""
        with suppress(psycopg.Error):
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(self._dsn, autocommit=True)
            self._connection.execute(BEAT)


def unplanned(stalls: list[Strike], strikes: list[Strike]) -> list[float]:
    """Return how long the machine stood still by itself, each time, in seconds."""
    away = [each for each in strikes if each.target == "database"]
    return [
        (stall.until - stall.at).total_seconds()
        for stall in stalls
        if stall.until is not None
        and not any(each.meets(stall.at, stall.until, AFTERMATH) for each in away)
    ]
