"""What does not work through a pooler that gives each transaction another connection.

Such a pooler (PgBouncer in transaction mode) keeps nothing of a session: no prepared statement,
unless it carries them over itself (PgBouncer from 1.21 on), and no LISTEN. Workers say so at their
start, instead of failing at their first runs.
"""

from __future__ import annotations

import psycopg
from django.conf import settings
from django.db import connection
from psycopg.pq import ExecStatus

PROBE = "romulus_probe"
UNPREPARED = (
    "DATABASE_URL leads through a pooler that does not carry prepared statements over from one "
    "server connection to another. Set ROMULUS_PREPARE=0; or use PgBouncer 1.21 or newer with "
    "max_prepared_statements."
)
UNHEARD = (
    "The queues in the database are reached through a pooler, where nobody can LISTEN. Name the "
    "database's own address for them, such as BROKER_URL=pgmq://user:password@host:5432/name; or "
    "another broker."
)


def why_not() -> str:
    """Say why workers cannot work with these settings; empty: they can.

    Raises:
        OperationalError: Django's or psycopg's, when the database does not answer.
    """
    if settings.ROMULUS_PREPARE and not keeps_statements():
        return UNPREPARED
    if settings.CELERY_BROKER_URL == "pgmq://":
        address = settings.CELERY_BROKER_TRANSPORT_OPTIONS["conn_string"]
        with psycopg.connect(address, autocommit=True, prepare_threshold=None) as broker:
            return UNHEARD if is_pooled(broker) else ""
    return ""


def keeps_statements() -> bool:
    """Whether a statement that is prepared on a connection is there in its next transaction."""
    # Not this thread's own connection: its process may be one that was forked.
    own = connection.copy()
    own.ensure_connection()
    try:
        raw: psycopg.Connection[tuple[int]] = own.connection
        with raw.transaction():  # at one connection of the server
            return not is_pooled(raw) or carries_statements(raw)
    finally:
        own.close()


def is_pooled(raw: psycopg.Connection[tuple[int]]) -> bool:
    """Whether something stands between that has given us a process ID of its own making."""
    row = raw.execute("SELECT pg_backend_pid()").fetchone()
    return row is not None and row[0] != raw.info.backend_pid


def carries_statements(raw: psycopg.Connection[tuple[int]]) -> bool:
    """Whether the pooler keeps track of statements: then the server has them under its names."""
    made = raw.pgconn.prepare(PROBE.encode(), b"SELECT 1")
    if made.status != ExecStatus.COMMAND_OK:
        return False
    as_named = "SELECT FROM pg_prepared_statements WHERE name = %s"
    if raw.execute(as_named, [PROBE]).fetchone() is None:
        return True
    raw.execute(f"DEALLOCATE {PROBE}")
    return False
