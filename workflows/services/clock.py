"""The clock of record: the database's. No two machines' clocks are ever compared."""

from __future__ import annotations

from datetime import datetime

from django.db import connection


def database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        row = cursor.fetchone()
    now: datetime = row[0]
    return now
