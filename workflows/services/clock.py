"""The clock of record: the database's. No two machines' clocks are ever compared."""

from __future__ import annotations

from datetime import datetime

from workflows.sql import fetch_of
from workflows.sql.statement import Statement

NOW = Statement("now", "SELECT statement_timestamp() AS now")


def database_now() -> datetime:
    (row,) = fetch_of(NOW, {})
    now: datetime = row["now"]
    return now
