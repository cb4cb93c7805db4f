"""The durable store: one SQLite file in a folder that one destination holds at a time.

A transaction that has ended survives SIGKILL and power loss (WAL with synchronous=FULL). One
connection behind one lock: the statements take microseconds, the flush to disk is what counts, and
a second connection could not flush meanwhile either.
"""

from __future__ import annotations

import fcntl
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Raised with every change of the schema; an older file is refused, not guessed at.
SCHEMA_VERSION = 1

SCHEMA = f"""
-- Every request for a personality, written when it arrives. `done` is null until it has been
-- handled: a request that was still executing when the process was killed keeps it null.
CREATE TABLE journal (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, request_id TEXT NOT NULL,
    method TEXT NOT NULL, path TEXT NOT NULL, query TEXT NOT NULL, personality TEXT, account TEXT,
    operation TEXT, attempt TEXT, idempotency_key TEXT, body BLOB NOT NULL, fault TEXT,
    done TEXT CHECK (done IN ('effect', 'replay', 'read', 'nothing')),
    answered TEXT CHECK (answered IN ('whole', 'truncated', 'none')), status INTEGER,
    effect INTEGER
);
CREATE INDEX journal_of_an_operation ON journal (operation, id);

-- One row is one effect: a resource was created. Nothing changes or deletes a row but a reset.
-- `operation` is what the sender called it, `marker` what a look-up can find it by.
CREATE TABLE effects (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, request INTEGER NOT NULL,
    personality TEXT NOT NULL, account TEXT NOT NULL, kind TEXT NOT NULL, resource_id TEXT NOT NULL
    UNIQUE, operation TEXT, marker TEXT, attempt TEXT, idempotency_key TEXT, resource TEXT NOT NULL,
    recovers_at REAL, recovered_status TEXT NOT NULL
);
CREATE INDEX effects_of_a_marker ON effects (marker);
CREATE INDEX effects_of_an_operation ON effects (operation);
CREATE INDEX effects_of_an_account ON effects (personality, account, kind, id);

-- What was answered under a key, written with the effect. A key still executing is not here.
CREATE TABLE keys (
    account TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL, at REAL NOT NULL,
    status INTEGER NOT NULL, body BLOB NOT NULL, request_id TEXT NOT NULL,
    PRIMARY KEY (account, key)
);

-- Armed faults, used in the order of arming; `times` null means until cleared.
CREATE TABLE armed (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, plan TEXT NOT NULL, match TEXT NOT NULL,
    times INTEGER, applied INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX armed_and_left ON armed (id) WHERE times IS NULL OR applied < times;

CREATE TABLE settings (
    personality TEXT NOT NULL, name TEXT NOT NULL, value REAL NOT NULL,
    PRIMARY KEY (personality, name)
);
PRAGMA user_version = {SCHEMA_VERSION};
"""

RESET = (
    "DELETE FROM journal",
    "DELETE FROM effects",
    "DELETE FROM keys",
    "DELETE FROM armed",
    "DELETE FROM settings",
)


class StoreRefused(Exception):
    """The folder cannot be used; the message says why."""


class Store:
    """The open store; `transaction` and `reading` are the only ways in."""

    def __init__(self, folder: Path) -> None:
        """Open or create the store in `folder`. Raises `StoreRefused` or `OSError`."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._held = (folder / "destination.lock").open("w")
        try:
            # Keys in flight live in memory, so a second process would not see them.
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._held.close()
            message = f"another destination is using {folder}"
            raise StoreRefused(message) from None
        self._lock = threading.RLock()
        self._connection = _opened(folder / "destination.sqlite3")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction, alone; durable when the block has ended, nothing of it if it raises."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for statements that change nothing."""
        with self._lock:
            yield self._connection

    def reset(self) -> None:
        """Forget everything. Row ids go on, so that an id never means two things."""
        with self.transaction() as connection:
            for statement in RESET:
                connection.execute(statement)

    def close(self) -> None:
        """Close the file and let go of the folder."""
        with self._lock:
            self._connection.close()
            self._held.close()


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
    elif version != SCHEMA_VERSION:
        connection.close()
        message = f"{path} was made by another version of the destination: delete it"
        raise StoreRefused(message)
    return connection
