"""The open holds that a person may see, listed and counted."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from django.db.models import QuerySet

from reconciliation.access.in_sql import OPEN_HOLDS, asked_of
from reconciliation.access.seeing import visible_holds
from reconciliation.core.states import HoldState
from reconciliation.models import Hold
from workflows.sql import fetch_of
from workflows.sql.statement import Statement

if TYPE_CHECKING:
    from django.contrib.auth.models import User

# Each page that is open counts them twice a minute.
COUNTED = Statement(
    "open_holds_counted",
    f"SELECT count(*) AS number, statement_timestamp() AS now FROM {OPEN_HOLDS}",  # noqa: S608
)


def count_open_holds(user: User) -> tuple[int, datetime]:
    """How many open holds a person may see, and the database's time. One query."""
    (row,) = fetch_of(COUNTED, asked_of(user))
    return row["number"], row["now"]


def open_holds(user: User) -> QuerySet[Hold]:
    return visible_holds(user).filter(state=HoldState.OPEN)
