"""Changing the ledger behind its back, as whoever owns the database could."""

from __future__ import annotations

from django.db import connection


def tamper(table: str, assignment: str, where: str) -> None:
    """Change a row without the table's triggers."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        cursor.execute(f"UPDATE {table} SET {assignment} WHERE {where}")  # noqa: S608
        cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
