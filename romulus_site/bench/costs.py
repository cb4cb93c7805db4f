"""What a walk costs, read from outside the processes that walk.

- WAL: the difference of `pg_current_wal_lsn()`. Full-page images come after a checkpoint, for each
  page once: they are told apart by reading the WAL itself (`pg_walinspect`, where it may be
  installed), or a checkpoint in the middle would spoil the figure.
- Commits: `xact_commit` of `pg_stat_database`, read after the walkers' connections have ended,
  which makes PostgreSQL count what they did. The bench reads it from another database.
- Database CPU: of the backends of that database, from `/proc` (nanoseconds from `schedstat`, else
  clock ticks from `stat`); unknown where the server runs elsewhere.
- Worker CPU: the process's own `process_time`, by the walker.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from romulus_site.bench.database import Server
from romulus_site.polling import wait_until

PROC = Path("/proc")
GONE_SECONDS = 5.0

Costs = dict[str, float | None]
"""By name; None is unknown. Times in milliseconds, WAL in bytes."""

BACKENDS = """
    SELECT pid FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'
"""
IMAGES = "SELECT coalesce(sum(fpi_size), 0) FROM pg_get_wal_stats(%s, %s)"


@dataclass(frozen=True)
class Reading:
    """The counters at one moment."""

    lsn: str
    cpu: dict[int, float]  # seconds, by backend; without those that cannot be read
    backends: frozenset[int]


class Gauge:
    """Reads the counters of one database, over a connection to another one."""

    def __init__(self, connection: psycopg.Connection, watched: str) -> None:
        self._connection = connection
        self._watched = watched
        self._sees_images = can_read_wal(connection)

    def read(self) -> Reading:
        backends = self._backends()
        cpu = {pid: seconds for pid in backends if (seconds := cpu_seconds(pid)) is not None}
        return Reading(str(self._value("SELECT pg_current_wal_lsn()")), cpu, backends)

    def commits(self) -> int:
        commits = self._value(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = %s", self._watched
        )
        return int(str(commits))

    def wal(self, before: Reading, after: Reading) -> Costs:
        total = float(str(self._value("SELECT %s::pg_lsn - %s::pg_lsn", after.lsn, before.lsn)))
        images = self._images(before, after) if total else 0.0
        return {
            "wal_bytes": total,
            "wal_bytes_without_images": None if images is None else total - images,
        }

    def wait_until_gone(self, backends: frozenset[int], number: int) -> None:
        """Wait until so many of `backends` have ended, and so are counted."""
        wait_until(lambda: len(backends - self._backends()) >= number, GONE_SECONDS)

    def _backends(self) -> frozenset[int]:
        return frozenset(row[0] for row in self._connection.execute(BACKENDS, [self._watched]))

    def _images(self, before: Reading, after: Reading) -> float | None:
        if not self._sees_images:
            return None
        try:
            return float(str(self._value(IMAGES, before.lsn, after.lsn)))
        except psycopg.Error:
            return None  # that part of the WAL is gone already

    def _value(self, statement: str, *parameters: str) -> object:
        row = self._connection.execute(statement.encode(), parameters).fetchone()
        assert row is not None
        return row[0]


@contextmanager
def gauge_of(server: Server, database: str) -> Iterator[Gauge]:
    """Give the gauge of `database`; its own connection is to a database of its own."""
    with server.database() as own, server.connect(own) as connection:
        yield Gauge(connection, database)


def can_read_wal(connection: psycopg.Connection) -> bool:
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_walinspect")
    except psycopg.Error:
        return False
    return True


def cpu_seconds(pid: int) -> float | None:
    """Return the processor time of the PostgreSQL process `pid`; None if it is not one here."""
    try:
        if not (PROC / str(pid) / "comm").read_text().startswith("postgres"):
            return None
        nanoseconds = int((PROC / str(pid) / "schedstat").read_text().split()[0])
        return nanoseconds / 1e9 if nanoseconds else ticks_seconds(pid)
    except FileNotFoundError:
        return ticks_seconds(pid)
    except (OSError, ValueError):
        return None


def ticks_seconds(pid: int) -> float | None:
    """Return the same from the clock ticks, of which there are mostly 100 a second."""
    try:
        after_name = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def cpu_between(before: Reading, after: Reading) -> float | None:
    """Return the seconds of the backends that were there at both moments; None if unknown."""
    if not before.backends or before.backends - before.cpu.keys():
        return None
    both = before.cpu.keys() & after.cpu.keys()
    return sum(after.cpu[pid] - before.cpu[pid] for pid in both)


def each(costs: Costs, number: float) -> Costs:
    """Return the costs of one of `number`."""
    return {name: None if cost is None else cost / number for name, cost in costs.items()}


def beyond(costs: Costs, others: Costs) -> Costs:
    """Return how much more `costs` are than `others`."""
    return {
        name: None if cost is None or (other := others[name]) is None else cost - other
        for name, cost in costs.items()
    }
