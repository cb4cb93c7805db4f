"""What goes to the database, counted: Django's statements, and the hot ones that pass it by."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import psycopg

from workflows.sql.statement import Statement


@contextmanager
def statements() -> Iterator[list[str]]:
    """Gives the text of each statement that this thread sends while the block lasts."""
    sent: list[str] = []
    here = threading.get_ident()
    execute, fetch = psycopg.Cursor.execute, Statement.fetch

    def note(text: str) -> None:
        if threading.get_ident() == here:
            sent.append(text)

    def executing(cursor: Any, query: Any, *args: Any, **options: Any) -> Any:
        note(str(query))
        return execute(cursor, query, *args, **options)

    def fetching(statement: Statement, *args: Any) -> Any:
        note(statement.text.decode())
        return fetch(statement, *args)

    with (
        patch.object(psycopg.Cursor, "execute", executing),
        patch.object(Statement, "fetch", fetching),
    ):
        yield sent


def most_read(node: dict[str, Any], table: str) -> float:
    """The most rows of `table` that a part of this plan, which was carried out, has read."""
    here = 0.0
    if node.get("Relation Name") == table:
        rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        here = rows * node["Actual Loops"]
    return max([here, *(most_read(part, table) for part in node.get("Plans", []))])
