"""The few hot statements, by name, from queries.sql."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from django.db import connection

from workflows.sql.statement import Statement

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


def fetch(name: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """Run the named statement on this thread's connection and return its rows.

    Outside a transaction it commits by itself, inside one it belongs to it.

    Raises:
        OperationalError, InterfaceError: Django's, when the database is away.
    """
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    with connection.wrap_database_errors:
        return STATEMENTS[name].fetch(connection.connection, parameters)
