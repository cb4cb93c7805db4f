"""What an administrator has prepared: armed faults and the settings of the personalities."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import time
from functools import lru_cache
from typing import Any

from reconciliation.rehearsal import plans
from reconciliation.rehearsal.plans import NO_FAULT, Match, Plan
from reconciliation.rehearsal.store import Store
from reconciliation.rehearsal.stripe import RETENTION_SECONDS
from reconciliation.rehearsal.wire import PERSONALITIES, Request, instant

# Stripe v1's published minimum, so that a contract with the same number holds here.
DEFAULTS = {
    "retention_seconds": 86_400.0,
    "visibility_lag_seconds": 0.0,
    # How far ahead the clock is by which keys grow old.
    "clock_ahead_seconds": 0.0,
}


def arm(store: Store, plan: Plan, match: Match, times: int | None) -> dict[str, Any]:
    """Arm `plan` for the next `times` requests that match (`None`: until cleared)."""
    with store.transaction() as connection:
        cursor = connection.execute(
            "INSERT INTO armed (at, plan, match, times) VALUES (?, ?, ?, ?)",
            (time.time(), str(plan), json.dumps(dataclasses.asdict(match)), times),
        )
        row = connection.execute("SELECT * FROM armed WHERE id = ?", (cursor.lastrowid,)).fetchone()
    return _shown(row)


def use(connection: sqlite3.Connection, request: Request) -> Plan:
    """Use up and return the first armed plan that `request` meets, or no fault."""
    rows = connection.execute(
        "SELECT * FROM armed WHERE times IS NULL OR applied < times ORDER BY id"
    )
    for row in rows:
        plan, match = _prepared(row["plan"], row["match"])
        if match.accepts(request, plan):
            connection.execute("UPDATE armed SET applied = applied + 1 WHERE id = ?", (row["id"],))
            return plan
    return NO_FAULT


@lru_cache(maxsize=10_000)
def _prepared(plan: str, match: str) -> tuple[Plan, Match]:
    return plans.parse(plan), Match(**json.loads(match))


def armed(store: Store) -> list[dict[str, Any]]:
    """Return every armed fault, used up or not, in the order of arming."""
    with store.reading() as connection:
        return [_shown(row) for row in connection.execute("SELECT * FROM armed ORDER BY id")]


def clear(store: Store) -> int:
    """Disarm everything; returns how many were known."""
    with store.transaction() as connection:
        return connection.execute("DELETE FROM armed").rowcount


def setting(store: Store, personality: str, name: str) -> float:
    """Return a setting of a personality."""
    with store.reading() as connection:
        row = connection.execute(
            "SELECT value FROM settings WHERE personality = ? AND name = ?", (personality, name)
        ).fetchone()
    if row is None and name == "retention_seconds":
        return RETENTION_SECONDS.get(personality, DEFAULTS[name])
    return float(row["value"]) if row else DEFAULTS[name]


def settings(store: Store) -> dict[str, dict[str, float]]:
    """Return every setting of every personality."""
    return {
        personality: {name: setting(store, personality, name) for name in DEFAULTS}
        for personality in PERSONALITIES
    }


def change_settings(store: Store, personality: str, values: dict[str, float]) -> None:
    """Set `values`, in force from the next request on."""
    with store.transaction() as connection:
        connection.executemany(
            "INSERT OR REPLACE INTO settings (personality, name, value) VALUES (?, ?, ?)",
            [(personality, name, value) for name, value in values.items()],
        )


def _shown(row: sqlite3.Row) -> dict[str, Any]:
    match = {name: value for name, value in json.loads(row["match"]).items() if value}
    return {
        "id": row["id"],
        "fault": row["plan"],
        "match": match,
        "times": row["times"],
        "applied": row["applied"],
        "armed_at": instant(row["at"]),
    }
