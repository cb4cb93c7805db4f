"""The effects: one row for each resource that was created, and the look-ups over them."""

from __future__ import annotations

import json
import sqlite3
import time
from typing import Any

from reconciliation.rehearsal.journal import Entry
from reconciliation.rehearsal.personalities import Call
from reconciliation.rehearsal.store import Store
from reconciliation.rehearsal.wire import instant

# One page of a look-up; `has_more` says that there are others.
LIST_LIMIT = 100


def add(
    connection: sqlite3.Connection,
    entry: Entry,
    call: Call,
    resource: dict[str, Any],
    recovers_at: float | None,
) -> int:
    """Record that `call` created `resource`; returns the effect's id."""
    request = call.request
    cursor = connection.execute(
        "INSERT INTO effects (at, request, personality, account, kind, resource_id, operation,"
        " marker, attempt, idempotency_key, resource, recovers_at, recovered_status)"
        " VALUES (:at, :request, :personality, :account, :kind, :resource_id, :operation, :marker,"
        " :attempt, :idempotency_key, :resource, :recovers_at, :recovered_status)",
        {
            "at": time.time(),
            "request": entry.id,
            "personality": call.collection.personality,
            "account": call.account,
            "kind": call.collection.kind,
            "resource_id": resource["id"],
            "operation": next(iter(request.operations), None),
            "marker": request.marker,
            "attempt": request.attempt,
            "idempotency_key": request.key,
            "resource": json.dumps(resource),
            "recovers_at": recovers_at,
            "recovered_status": call.collection.status,
        },
    )
    return cursor.lastrowid or 0


def found(
    store: Store, call: Call, *, younger_than: float, filtered: bool = True
) -> tuple[list[dict[str, Any]], bool]:
    """Return the caller's resources that the read asks for, oldest first, and whether more exist.

    What was created within the last `younger_than` seconds is not there yet. With 0 the clock is
    not asked, so that one set back hides nothing.
    """
    with store.reading() as connection:
        rows = connection.execute(
            "SELECT * FROM effects WHERE personality = :personality AND account = :account"
            " AND kind = :kind AND (:until IS NULL OR at <= :until)"
            " AND (:marker IS NULL OR marker = :marker)"
            " AND (:resource_id IS NULL OR resource_id = :resource_id)"
            " AND (:after IS NULL OR id > (SELECT id FROM effects WHERE resource_id = :after))"
            " ORDER BY id LIMIT :limit",
            {
                "personality": call.collection.personality,
                "account": call.account,
                "kind": call.collection.kind,
                "until": time.time() - younger_than if younger_than else None,
                "marker": call.marker if filtered else None,
                "resource_id": call.resource_id if filtered else None,
                "after": call.after,
                "limit": LIST_LIMIT + 1,
            },
        ).fetchall()
    return [_as_it_is_now(row) for row in rows[:LIST_LIMIT]], len(rows) > LIST_LIMIT


def everything(
    store: Store, *, operation: str | None, personality: str | None, account: str | None
) -> list[dict[str, Any]]:
    """Return every effect that matches, oldest first, whoever may see it."""
    with store.reading() as connection:
        rows = connection.execute(
            "SELECT * FROM effects WHERE (:operation IS NULL OR operation = :operation"
            " OR marker = :operation) AND (:personality IS NULL OR personality = :personality)"
            " AND (:account IS NULL OR account = :account) ORDER BY id",
            {"operation": operation, "personality": personality, "account": account},
        ).fetchall()
    return [_shown(row) for row in rows]


def _as_it_is_now(row: sqlite3.Row) -> dict[str, Any]:
    resource: dict[str, Any] = json.loads(row["resource"])
    if row["recovers_at"] is not None and row["recovers_at"] <= time.time():
        resource["status"] = row["recovered_status"]
    return resource


def _shown(row: sqlite3.Row) -> dict[str, Any]:
    shown = {**dict(row), "at": instant(row["at"]), "resource": _as_it_is_now(row)}
    del shown["recovers_at"], shown["recovered_status"]
    return shown
