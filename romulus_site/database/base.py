"""PostgreSQL as Django speaks to it, for processes that live long.

A session that can only read is of no more use than a dead one. After a switch-over a connection may
lead to a server that is a standby now. It answers, so that no health check finds it, and fails each
write. Here that is an outage as any other: the caller gets an `OperationalError`, and the
connection is not used again.

A process that is frozen, or cut off, within a transaction keeps its locks for as long as its
session lasts: on a run that others could take over, on the audit record that everybody writes to.
So the server ends a session that is idle within a transaction for longer than a lease; by then its
process has lost what it held in any case. That is an outage, too.

Of a migration nobody waits to take anything over, and Django may think for long between two of its
statements, on a machine that has much to do: its session is not ended.

A session that answered a moment ago, and of which nothing has come since, is not asked whether it
is alive: one that the server ended has sent its end, or the connection's. What ends sessions
without a word, as firewalls do, takes minutes.

A prepared statement is planned once, not for each of its executions (only the hot statements of
workflows/sql and the stamps of polls are prepared): to plan a claim takes longer than to carry it
out.

A session belongs to the process that has opened it. What was forked meanwhile opens its own, and
does not end its parent's.
"""

from __future__ import annotations

import os
import select
import time
from types import TracebackType
from typing import Any

from django.conf import settings
from django.db import connections
from django.db.backends.postgresql import base
from django.db.backends.postgresql.schema import DatabaseSchemaEditor
from django.db.utils import DatabaseErrorWrapper, OperationalError
from django.utils.functional import cached_property
from psycopg.errors import IdleInTransactionSessionTimeout, ReadOnlySqlTransaction

OUTAGES = (ReadOnlySqlTransaction, IdleInTransactionSessionTimeout)
MOMENT_SECONDS = 10.0


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
        if error is None:
            return
        if isinstance(error, OUTAGES):
            # Closed at the next look at it, between two pieces of work.
            self._own.close_at = 0
            raise OperationalError(*error.args) from error
        super().__exit__(kind, error, traceback)


class SchemaEditor(DatabaseSchemaEditor):
    def __enter__(self) -> Any:
        entered = super().__enter__()
        if self.atomic_migration:
            with self.connection.cursor() as cursor:
                cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        return entered


class DatabaseWrapper(base.DatabaseWrapper):
    SchemaEditorClass = SchemaEditor
    health_check_done: bool
    _answered_at = 0.0

    @cached_property
    def wrap_database_errors(self) -> Any:
        return ErrorWrapper(self)

    def is_usable(self) -> bool:
        usable: bool = super().is_usable()
        if usable:
            self._answered_at = time.monotonic()
        return usable

    def close_if_health_check_failed(self) -> None:
        if self.health_check_done:
            return  # what super would find out in a longer way, before each hot statement
        if self._is_surely_alive():
            self.health_check_done = True
        else:
            super().close_if_health_check_failed()

    def _is_surely_alive(self) -> bool:
        if self.connection is None or time.monotonic() > self._answered_at + MOMENT_SECONDS:
            return False
        heard = select.poll()
        heard.register(self.connection.pgconn.socket, select.POLLIN)
        return not heard.poll(0)

    def init_connection_state(self) -> None:
        super().init_connection_state()
        self._answered_at = time.monotonic()
        with self.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('idle_in_transaction_session_timeout', %s, false),"
                " set_config('plan_cache_mode', 'force_generic_plan', false)",
                [f"{round(settings.ROMULUS_LEASE_SECONDS * 1000)}ms"],
            )


def leave_to_parent() -> None:
    for own in connections.all(initialized_only=True):
        _of_parent.append(own.connection)
        own.connection = None


# Kept, so that nobody takes them for forgotten ones and ends them.
_of_parent: list[Any] = []
os.register_at_fork(after_in_child=leave_to_parent)
