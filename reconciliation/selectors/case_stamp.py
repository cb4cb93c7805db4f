"""Whether anything has become of any case: what polls ask first that say how many cases there are.

What is done to a case, or to what steers it, is an entry of the audit record, made in the same
transaction, and entries have one order, that of their commits. So the number of the last one tells
of all of it, and nothing is counted, however many cases are open. An entry about what the reader
may not see costs one look more. What time alone changes is told by when it last did.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User

from reconciliation import access
from reconciliation.pages import CLOSING
from workflows.sql import fetch_of
from workflows.sql.statement import Statement


def last_of(moment: str, *, ahead: str = "", whose: str = "") -> str:
    """The SQL for the last `moment` of open holds that has come; the end of an index."""
    # Constants of our own.
    return (
        f"(SELECT max({moment}) FROM reconciliation_hold"  # noqa: S608
        f" WHERE state = 'open' AND {moment} <= statement_timestamp(){ahead}{whose})"
    )


# To be asked together with what is counted, so that both are of one moment.
CHANGED = ", ".join(
    (
        "concat_ws(' ', (SELECT max(seq) FROM reconciliation_auditentry)",
        last_of("due_at"),
        last_of("window_ends_at"),
        last_of("window_ends_at", ahead=f" + interval '{CLOSING.total_seconds():.0f} s'"),
        last_of("snoozed_until", whose=" AND assignee_id = %(user)s") + ")",
    )
)
ASKED = Statement("cases_changed", f"SELECT {CHANGED} AS changed, statement_timestamp() AS now")


def cases_seen(user: User) -> tuple[str, datetime]:
    """Something short that changes with the cases and with what `user` may see of them; and the
    database's time. One query, and that for the rights."""
    asked = access.asked_of(user)
    (row,) = fetch_of(ASKED, asked)
    return seen_of(asked, row["changed"]), row["now"]


def seen_of(asked: Mapping[str, Any], changed: str) -> str:
    """`asked` is what `access.asked_of` says, `changed` what `CHANGED` is."""
    return hashlib.sha256(repr((asked, changed)).encode()).hexdigest()[:16]
