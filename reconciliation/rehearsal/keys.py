"""Idempotency keys: what was answered under each, and which are executing now.

Two requests under one key make one effect: the second finds the key held in memory (409) until the
first has ended, and from then on finds the answer that was stored in the effect's transaction. A
kill ends the process and with it what was held, so a key whose request had no effect yet is free.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from reconciliation.rehearsal.journal import Entry
from reconciliation.rehearsal.personalities import Call
from reconciliation.rehearsal.store import Store
from reconciliation.rehearsal.wire import Answer


@dataclass(frozen=True)
class StoredKey:
    """What the destination remembers of a key."""

    fingerprint: str
    answer: Answer


class KeysInFlight:
    """The keys that requests are executing under at this moment, in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: set[tuple[str, str]] = set()

    @contextmanager
    def hold(self, account: str, key: str) -> Iterator[bool]:
        """Hold the key for the block; gives False when another request holds it already."""
        name = (account, key)
        with self._lock:
            free = name not in self._held
            self._held.add(name)
        try:
            yield free
        finally:
            if free:
                with self._lock:
                    self._held.discard(name)


def fingerprint(call: Call) -> str:
    """Return what must be equal for a request to be the same: endpoint and parameters.

    Parameters are compared as JSON, not as bytes: order and white space do not make another
    request.
    """
    parts = [call.request.method, call.request.path, call.request.document]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def stored(store: Store, account: str, key: str, retention_seconds: float) -> StoredKey | None:
    """Return what was answered under the key, or `None`: never used, or used too long ago."""
    with store.reading() as connection:
        row = connection.execute(
            "SELECT * FROM keys WHERE account = ? AND key = ? AND at > ?",
            (account, key, time.time() - retention_seconds),
        ).fetchone()
    if row is None:
        return None
    headers = (("Idempotent-Replayed", "true"), ("Original-Request", row["request_id"]))
    return StoredKey(row["fingerprint"], Answer(row["status"], row["body"], headers))


def keep(
    connection: sqlite3.Connection, entry: Entry, call: Call, answer: Answer, ahead: float
) -> None:
    """Keep the answer under the call's key, in place of one that has been forgotten.

    `ahead`: by how many seconds the destination's clock was set forward.
    """
    connection.execute(
        "INSERT OR REPLACE INTO keys (account, key, fingerprint, at, status, body, request_id)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            call.account,
            call.request.key,
            fingerprint(call),
            entry.at + ahead,
            answer.status,
            answer.body,
            call.request.id,
        ),
    )


def forget(store: Store, account: str, key: str) -> None:
    """Forget the key, as pruning does."""
    with store.transaction() as connection:
        connection.execute("DELETE FROM keys WHERE account = ? AND key = ?", (account, key))
