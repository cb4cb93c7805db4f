"""The few hot statements, by name, from queries.sql."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from django.db import connection

NAME = re.compile(r"^-- (\w+) --$", re.MULTILINE)
COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)


def load(path: Path) -> dict[str, str]:
    """Return the statements of a file of `-- name --` headed parts."""
    parts = NAME.split(path.read_text())
    # The comments are for readers of the file: the server is spared them at each call.
    statements = (COMMENT.sub("", part).strip() for part in parts[2::2])
    return dict(zip(parts[1::2], statements, strict=True))


QUERIES = load(Path(__file__).with_name("queries.sql"))


def fetch(name: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """Run the named statement on this thread's connection and return its rows."""
    with connection.cursor() as cursor:
        cursor.execute(QUERIES[name], parameters)
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
