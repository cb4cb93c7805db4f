"""Fills the tables with finished runs, by the database itself: a history in minutes.

Columns and defaults come from the models, so that a column that is added later is filled, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import psycopg
from django.db import models
from django.db.models import NOT_PROVIDED
from psycopg import sql
from psycopg.types.json import Jsonb

from workflows.core.states import AttemptState, OutputForm, RunState
from workflows.models import Attempt, Run, Tenant
from workflows.models.ids import new_id

ATTEMPTS = 3
BATCH = 100_000
# One run in a tenth of a second, up to yesterday.
APART_MS = 100
YESTERDAY_MS = 86_400_000

# Keys that sort by time, as those of the engine do, and the same for run and attempts.
KEY = "(lpad(to_hex({ms}), 12, '0') || '7' || substr(md5({seed}), 14))::uuid"
RUN = KEY.format(ms="s.ms", seed="s.n::text")
ATTEMPT = KEY.format(ms="s.ms + {fence}", seed="s.n || '-' || {fence}")
MOMENT = "to_timestamp((s.ms + {ms}) / 1000.0)"

RUN_COLUMNS = {
    "id": RUN,
    "workflow": "'bench.long'",
    "version": "1",
    "tenant": "(SELECT id FROM workflows_tenant WHERE slug = 'bench')",
    "state": f"'{RunState.COMPLETED}'",
    "step": f"'step_{ATTEMPTS}'",
    "visit": "1",
    "input": """'{"order": "ORD-7001"}'::jsonb""",
    "fence": str(ATTEMPTS),
    "attempt": ATTEMPT.format(fence=ATTEMPTS),
    "number": "1",
    "tries": "1",
    "claimed_at": MOMENT.format(ms=ATTEMPTS),
    "timeout_at": MOMENT.format(ms=300_000),
    "ready_at": MOMENT.format(ms=0),
    "created_at": MOMENT.format(ms=0),
    "finished_at": MOMENT.format(ms=ATTEMPTS + 1),
}
ATTEMPT_COLUMNS = {
    "id": ATTEMPT.format(fence="a.fence"),
    "run": RUN,
    "step": "'step_' || a.fence",
    "visit": "1",
    "number": "1",
    "worker": "md5('worker')::uuid",
    "fence": "a.fence",
    "claimed_at": MOMENT.format(ms="a.fence"),
    "timeout_at": MOMENT.format(ms=300_000),
    "ended_at": MOMENT.format(ms="a.fence + 1"),
    "state": f"'{AttemptState.COMMITTED}'",
    "output": "'1'::jsonb",
    "output_form": f"'{OutputForm.PLAIN}'",
}
RUNS = """
    (SELECT n, %(newest)s - (%(number)s - n) * %(apart)s AS ms
     FROM generate_series(%(first)s::bigint, %(last)s::bigint) n) s
"""
WITH_ATTEMPTS = f" CROSS JOIN generate_series(1, {ATTEMPTS}) AS a (fence) ORDER BY s.n, a.fence"


def fill(connection: psycopg.Connection, number: int, say: Callable[[str], None]) -> None:
    """Add `number` finished runs of three attempts each, and tell the planner of them."""
    add_tenant(connection)
    without_checks(connection)
    newest = YESTERDAY_MS * (database_day(connection) - 1)
    for first in range(1, number + 1, BATCH):
        say(f"finished run {first} of {number}")
        batch = {
            "newest": newest,
            "number": number,
            "apart": APART_MS,
            "first": first,
            "last": min(first + BATCH - 1, number),
        }
        connection.execute(insertion(Run, RUN_COLUMNS, RUNS), batch)
        connection.execute(insertion(Attempt, ATTEMPT_COLUMNS, RUNS + WITH_ATTEMPTS), batch)
    say("vacuum, analyze, checkpoint")
    # Vacuumed too: else it would be done by itself, in the middle of what is measured next.
    connection.execute("VACUUM (ANALYZE) workflows_run")
    connection.execute("VACUUM (ANALYZE) workflows_attempt")
    checkpoint(connection)


def add_tenant(connection: psycopg.Connection) -> None:
    columns = {"id": f"'{new_id()}'::uuid", "slug": "'bench'", "name": "'Bench'"}
    statement = insertion(Tenant, columns, "(SELECT 1) s")
    connection.execute(statement + sql.SQL(" ON CONFLICT DO NOTHING"))


def without_checks(connection: psycopg.Connection) -> None:
    """Skip the checks of foreign keys, where that is allowed; they hold by construction."""
    try:
        connection.execute("SET session_replication_role = replica")
    except psycopg.errors.InsufficientPrivilege:
        return


def checkpoint(connection: psycopg.Connection) -> None:
    try:
        connection.execute("CHECKPOINT")
    except psycopg.errors.InsufficientPrivilege:
        return


def database_day(connection: psycopg.Connection) -> int:
    """Return the days since 1970."""
    row = connection.execute("SELECT extract(epoch FROM now())::bigint / 86400").fetchone()
    assert row is not None
    return int(row[0])


def insertion(model: type[models.Model], known: Mapping[str, str], source: str) -> sql.Composed:
    """Return the INSERT of rows with `known` expressions; other columns have their defaults."""
    columns: list[sql.Composable] = []
    expressions: list[sql.Composable] = []
    for field in model._meta.concrete_fields:
        if field.name in known:
            expressions.append(sql.SQL(known[field.name]))
        elif field.null or field.db_default is not NOT_PROVIDED:
            continue
        else:
            expressions.append(sql.Literal(plain(field)))
        columns.append(sql.Identifier(str(field.column)))
    return sql.SQL("INSERT INTO {} ({}) SELECT {} FROM ").format(
        sql.Identifier(model._meta.db_table),
        sql.SQL(", ").join(columns),
        sql.SQL(", ").join(expressions),
    ) + sql.SQL(source)


def plain(field: models.Field[Any, Any]) -> object:
    value = field.get_default()
    return Jsonb(value) if isinstance(field, models.JSONField) else value
