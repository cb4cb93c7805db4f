"""PostgreSQL as Django speaks to it, for processes that live long.

A session that can only read is of no more use than a dead one. After a switch-over a connection may
lead to a server that is a standby now. It answers, so that no health check finds it, and fails each
write. Here that is an outage as any other: the caller gets an `OperationalError`, and the
connection is not used again.

A process that is frozen, or cut off, within a transaction keeps its locks for as long as its
session lasts: on a run that others could take over, on the audit record that everybody writes to.
So the server ends a session that is idle within a transaction for longer than a lease; by then its
process has lost what it held in any case. That is an outage, too.

A session belongs to the process that has opened it. What was forked meanwhile opens its own, and
does not end its parent's.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

from django.conf import settings
from django.db import connections
from django.db.backends.postgresql import base
from django.db.utils import DatabaseErrorWrapper, OperationalError
from django.utils.functional import cached_property
from psycopg.errors import IdleInTransactionSessionTimeout, ReadOnlySqlTransaction

OUTAGES = (ReadOnlySqlTransaction, IdleInTransactionSessionTimeout)


class ErrorWrapper(DatabaseErrorWrapper):
    def __init__(self, wrapper: DatabaseWrapper) -> None:
        super().__init__(wrapper)
        self._own = wrapper

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, OUTAGES):
            # Closed at the next look at it, between two pieces of work.
            self._own.close_at = 0
            raise OperationalError(*error.args) from error
        super().__exit__(kind, error, traceback)


class DatabaseWrapper(base.DatabaseWrapper):
    @cached_property
    def wrap_database_errors(self) -> Any:
        return ErrorWrapper(self)

    def init_connection_state(self) -> None:
        super().init_connection_state()
        with self.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('idle_in_transaction_session_timeout', %s, false)",
                [f"{round(settings.ROMULUS_LEASE_SECONDS * 1000)}ms"],
            )


def leave_to_parent() -> None:
    for own in connections.all(initialized_only=True):
        _of_parent.append(own.connection)
        own.connection = None


# Kept, so that nobody takes them for forgotten ones and ends them.
_of_parent: list[Any] = []
os.register_at_fork(after_in_child=leave_to_parent)
