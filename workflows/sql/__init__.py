"""The few hot statements, by name, from queries.sql."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections

from workflows.sql.pipeline import Asked, run_together
from workflows.sql.statement import Row, Statement

NAME = re.compile(r"^-- (\w+) --$", re.MULTILINE)
COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)


def load(path: Path) -> dict[str, str]:
    """Return the statements of a file of `-- name --` headed parts."""
    parts = NAME.split(path.read_text())
    # The comments are for readers of the file: the server is spared them.
    statements = (COMMENT.sub("", part).strip() for part in parts[2::2])
    return dict(zip(parts[1::2], statements, strict=True))


QUERIES = load(Path(__file__).with_name("queries.sql"))
STATEMENTS = {name: Statement(name, text) for name, text in QUERIES.items()}
LIMIT = "batch"


@cache
def limited(name: str, rows: int) -> Statement:
    """Return the named statement with its limit written into it.

    A statement is planned once, and whoever plans it has to know that it wants few rows of many.
    """
    return Statement(f"{name}_{rows:d}", QUERIES[name].replace(f"%({LIMIT})s", f"{rows:d}"))


def fetch(name: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """Run the named statement on this thread's connection and return its rows.

    Outside a transaction it commits by itself, inside one it belongs to it.

    Raises:
        OperationalError, InterfaceError: Django's, when the database is away.
    """
    statement = STATEMENTS[name]
    if LIMIT in statement.parameters:
        statement = limited(name, parameters[LIMIT])
    return fetch_of(statement, parameters)


def fetch_of(statement: Statement, parameters: dict[str, Any]) -> list[Row]:
    """The same for a statement that is not in the file."""
    # Looked up once: `connection` would look for itself at each of these.
    own = connections[DEFAULT_DB_ALIAS]
    own.close_if_health_check_failed()
    if own.connection is None:
        own.ensure_connection()
    try:
        return statement.fetch(own.connection, parameters)
    except psycopg.Error:
        with own.wrap_database_errors:
            raise


def fetch_together(*asked: tuple[str, dict[str, Any]]) -> list[list[Row]]:
    """Run the named statements one after the other in one round trip; return the rows of each.

    Inside a transaction only. Each sees what others have committed before it begins, also while
    one before it has waited for a lock.

    Raises:
        OperationalError, InterfaceError: as `fetch`; nothing after the one that failed was run.
    """
    own = connections[DEFAULT_DB_ALIAS]
    assert own.in_atomic_block, "apart from a transaction they would be one by themselves"
    if own.connection is None:
        own.ensure_connection()
    statements = [Asked(STATEMENTS[name], given) for name, given in asked]
    with own.wrap_database_errors:
        return run_together(own.connection, statements)
