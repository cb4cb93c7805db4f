"""The journal: every request for a personality, from its arrival to what was answered."""

from __future__ import annotations

import base64
import sqlite3
import time
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlencode

from reconciliation.rehearsal import arming
from reconciliation.rehearsal.plans import NO_FAULT, Plan
from reconciliation.rehearsal.store import Store
from reconciliation.rehearsal.wire import Delivery, Request, instant

Done = Literal["effect", "replay", "read", "nothing"]


class Forgotten(Exception):
    """A reset came while the request was on its way: nothing of it may reach what came after."""


@dataclass(frozen=True)
class Entry:
    """The journal's row of one request, and the faults that the request meets."""

    id: int
    at: float
    plan: Plan


def arrive(store: Store, request: Request, asked: Plan | None) -> Entry:
    """Write the request down, with the faults that it meets, in one transaction.

    `asked` are the faults of its header; without, the first armed fault that matches is used up.
    When this returns, the arrival survives whatever happens to the request.
    """
    at = time.time()
    with store.transaction() as connection:
        plan = arming.use(connection, request) if asked is None else asked
        cursor = connection.execute(
            "INSERT INTO journal (at, request_id, method, path, query, personality, account,"
            " operation, attempt, idempotency_key, body, fault)"
            " VALUES (:at, :request_id, :method, :path, :query, :personality, :account,"
            " :operation, :attempt, :idempotency_key, :body, :fault)",
            {
                "at": at,
                "request_id": request.id,
                "method": request.method,
                "path": request.path,
                "query": urlencode(request.query, doseq=True),
                "personality": request.personality,
                "account": request.account,
                "operation": next(iter(request.operations), None),
                "attempt": request.attempt,
                "idempotency_key": request.key,
                "body": request.body,
                "fault": str(plan) if plan != NO_FAULT else None,
            },
        )
    return Entry(cursor.lastrowid or 0, at, plan)


def conclude(
    connection: sqlite3.Connection,
    entry: Entry,
    done: Done,
    delivery: Delivery,
    effect: int | None = None,
) -> None:
    """Write down what was done and what is about to be answered, before it is answered.

    Raises `Forgotten`, which undoes the transaction, when a reset came in between.
    """
    changed = connection.execute(
        "UPDATE journal SET done = ?, answered = ?, status = ?, effect = ? WHERE id = ?",
        (
            done,
            delivery.answered,
            delivery.answer.status if delivery.answer else None,
            effect,
            entry.id,
        ),
    ).rowcount
    if not changed:
        raise Forgotten


def entries(store: Store, *, operation: str | None, after: int, limit: int) -> dict[str, Any]:
    """Return one page, oldest first; `next_after` leads to the next page, null at the end."""
    with store.reading() as connection:
        rows = connection.execute(
            "SELECT * FROM journal WHERE id > :after AND (:operation IS NULL OR"
            " operation = :operation) ORDER BY id LIMIT :limit",
            {"after": after, "operation": operation, "limit": limit + 1},
        ).fetchall()
    page = rows[:limit]
    return {
        "data": [_shown(row) for row in page],
        "next_after": page[-1]["id"] if len(rows) > limit else None,
    }


def _shown(row: sqlite3.Row) -> dict[str, Any]:
    """The row as JSON: the body as text, or in base64 where its bytes are not UTF-8."""
    shown = {**dict(row), "at": instant(row["at"]), "body_base64": None}
    try:
        shown["body"] = row["body"].decode("utf-8")
    except UnicodeDecodeError:
        shown["body"] = None
        shown["body_base64"] = base64.b64encode(row["body"]).decode("ascii")
    return shown
