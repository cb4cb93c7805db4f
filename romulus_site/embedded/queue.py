"""The broker's queues in PostgreSQL: PGMQ as plain SQL, from the package that speaks to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psycopg

# The queues of settings.py. Made here, because two workers that first declare one together fail.
QUEUES = ("advance", "reconcile")
# Any number that nothing else in the database locks.
LOCK = 7_650_001
# The schema has no version of its own; a comment on it keeps the one that was installed.
OURS = "Installed by Romulus: PGMQ"
STATE = """
    SELECT to_regnamespace('pgmq') IS NOT NULL,
           coalesce(obj_description(to_regnamespace('pgmq')::oid, 'pg_namespace'), '')
"""


def ensure_pgmq(dsn: str, queues: Sequence[str] = QUEUES) -> None:
    """Bring the PGMQ schema in the database of `dsn` to the installed version, with its queues.

    Idempotent. An older version that this function installed is replaced, with the messages in it:
    they are hints, which the sweep publishes again. One that somebody else installed is left as it
    is. Run it while no worker runs.
    """
    import psycopg

    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        install_schema(connection)
        for queue in queues:
            connection.execute("SELECT pgmq.create(%s)", [queue])
            connection.execute("SELECT pgmq.enable_notify_insert(%s, 0)", [queue])


def install_schema(connection: psycopg.Connection) -> None:
    from pgmq import install
    from psycopg import sql

    mark = f"{OURS} {install.get_embedded_sql_version()}"
    exists, comment = connection.execute(STATE).fetchone() or (False, "")
    if exists and (comment == mark or not comment.startswith(OURS)):
        return
    connection.execute("DROP SCHEMA IF EXISTS pgmq CASCADE")
    connection.execute(install.get_embedded_install_sql())
    connection.execute(sql.SQL("COMMENT ON SCHEMA pgmq IS {}").format(mark))
