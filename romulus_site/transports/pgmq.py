"""The queues in PostgreSQL, after an outage or a switch-over, and beside a worker that is frozen.

Reading a message is a write. On a session that can only read, because its server is a standby now,
kombu's own transport ends the worker; here it connects anew, as after any lost connection.

Messages are hints, so nothing waits for a disk on their account, and one is read and deleted in a
single round trip where `visibility_timeout` is 0: Celery acknowledges it before its task in any
case. There is no acknowledgement then that could fail, because the connection is lost; as many such
messages as a worker may have would leave it silent for ever.

A worker that begins to listen makes the queue's trigger anew in kombu's own transport, which needs
the table for itself: it would wait for one that was frozen while it took a message, and everybody
who sends one would wait for both. Here it only listens: `ensure_pgmq` has made the trigger.

A worker that has as many messages as it may have waits, in kombu's own transport, for a new one to
be sent before it looks for others, up to a second: of a backlog it would take some four a second.
Here it looks again as soon as it may have another.
"""

from __future__ import annotations

import time
from queue import Empty
from typing import Any

import psycopg
from kombu.transport import pgmq
from pgmq import PGMQueue
from psycopg.errors import ReadOnlySqlTransaction
from psycopg_pool import ConnectionPool

# Nothing is asked of the database meanwhile.
SOON_SECONDS = 0.02


class Channel(pgmq.Channel):
    connection: Transport

    def drain_events(self, *args: Any, **kwargs: Any) -> None:
        if self._consumers and not self.qos.can_consume():
            self.connection.hands_are_full = True
            raise Empty
        super().drain_events(*args, **kwargs)  # type: ignore[no-untyped-call]

    def basic_consume(  # type: ignore[override]
        self, queue: str, *args: Any, **kwargs: Any
    ) -> None:
        if not self.visibility_timeout:
            # Taken by `pop`, and counted as one that the worker has until its task begins.
            self._noack_queues.add(queue)
        super().basic_consume(queue, *args, **kwargs)  # type: ignore[no-untyped-call]

    def _maybe_enable_notify(self, queue: str, queue_name: str | None = None) -> None:
        if self.use_notify:
            self.connection._register_notify_queue(queue_name or self._queue_name(queue))


class Waiter(pgmq._NotifyWaiter):
    """Waits for a message to come, unless nothing was looked for because all hands are full."""

    def __init__(self, transport: Transport, dsn: str) -> None:
        super().__init__(dsn)
        self._transport = transport

    def wait(self, timeout: float | None) -> bool:
        if not self._transport.hands_are_full:
            return bool(super().wait(timeout))
        self._transport.hands_are_full = False
        time.sleep(SOON_SECONDS)
        return True


class Transport(pgmq.Transport):
    Channel = Channel
    connection_errors = (*pgmq.Transport.connection_errors, ReadOnlySqlTransaction)
    hands_are_full = False
    _pool: ConnectionPool | None = None

    def _get_notify_waiter(self) -> Any:
        if self._notify_waiter is None:
            self._notify_waiter = Waiter(self, self._conn_string)
        return self._notify_waiter

    def _create_pgmq_client(self) -> Any:
        """Return kombu's client, with sessions of which each statement commits by itself."""
        options = self._options
        self._pool = ConnectionPool(
            self._conn_string,
            min_size=1,
            max_size=options["pool_size"],
            timeout=options["pool_timeout"],
            kwargs={"autocommit": True},
            configure=wait_for_no_disk,
            open=True,
        )
        return PGMQueue(conn_string=self._conn_string, pool=self._pool, init_extension=False)

    def close_connection(self, connection: Any) -> None:
        try:
            super().close_connection(connection)
        finally:
            if self._pool is not None:
                self._pool.close()

    @property
    def _conn_string(self) -> str:
        return str(self._options["conn_string"])

    @property
    def _options(self) -> dict[str, Any]:
        client: Any = self.client
        options: dict[str, Any] = client.transport_options
        return options


def wait_for_no_disk(connection: psycopg.Connection[Any]) -> None:
    """What a crash of the server loses of the last moment's hints, the next sweep makes good."""
    connection.execute("SET synchronous_commit = off")
