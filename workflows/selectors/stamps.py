"""Whether anything that a page shows has changed, for the price of one question.

A stamp is made of the rows that a page is made of: for each table how many there are, the sum of
the transactions that wrote them as they are (PostgreSQL's own `xmin`), and where they lie. A row
that is written again counts with a later transaction than any other, so that a sum can return only
where a row is gone, and then the number is another. Whoever changes what a page reads adds it to
its stamp: the tests compare the tables of the two.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from functools import cache
from typing import Any

from django.db import connection

from workflows.sql import fetch_of
from workflows.sql.statement import Statement

# What a stamp does not tell apart by its time is looked at anew at least so often.
REDRAWN_EVERY = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a page is made of at `now`, the database's time.

    Attributes:
        rows: changes whenever one of its rows does; empty where the page moves by itself.
        told: changes with the zone in which its reader is told times, and with the day there.
    """

    now: datetime
    rows: str
    told: str = ""

    def read_in(self, zone: tzinfo) -> Stamp:
        """The same for somebody who is told times in `zone`."""
        day = f"{zone} {self.now.astimezone(zone):%Y-%m-%d}"
        return replace(self, told=hashlib.sha256(day.encode()).hexdigest()[:8])


def version_of(table: str, where: str) -> str:
    """The SQL for the version of those rows of `table`."""
    # Both are constants of our own.
    return (
        "(SELECT concat_ws('.', count(*), sum(it.xmin::text::bigint),"  # noqa: S608
        f" sum(hashtext(it.ctid::text))) FROM {table} it WHERE {where})"
    )


# Who reads it, and what they may see.
READER = (
    version_of("auth_user", "it.id = %(user)s"),
    version_of("auth_user_groups", "it.user_id = %(user)s"),
    version_of("auth_user_user_permissions", "it.user_id = %(user)s"),
    version_of("auth_group_permissions", "it.group_id IN (SELECT id FROM team)"),
    version_of("guardian_userobjectpermission", "it.user_id = %(user)s"),
    version_of("guardian_groupobjectpermission", "it.group_id IN (SELECT id FROM team)"),
)
TEAM = "team AS (SELECT group_id AS id FROM auth_user_groups WHERE user_id = %(user)s)"


def stamp(sql: str, params: dict[str, Any]) -> Stamp:
    """`sql` gives the time as `now` and what the `rows` are."""
    (row,) = fetch_of(planned_once(sql), params)
    return Stamp(row["now"], row["rows"] or "")


def stamp_of_list(sql: str, params: dict[str, Any]) -> Stamp:
    """The same, planned for these very values: what is rare is found otherwise than what is not."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        now, rows = cursor.fetchone() or (None, "")
    assert now is not None, "it gives one row always"
    return Stamp(now, rows or "")


@cache
def planned_once(sql: str) -> Statement:
    """Prepared once per connection: to plan a stamp takes the database five times its reading."""
    return Statement(f"stamp_{hashlib.sha256(sql.encode()).hexdigest()[:16]}", sql)
