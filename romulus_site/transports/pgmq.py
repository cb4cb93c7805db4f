"""The queues in PostgreSQL, after an outage or a switch-over, and beside a worker that is frozen.

Reading a message is a write. On a session that can only read, because its server is a standby now,
kombu's own transport ends the worker; here it connects anew, as after any lost connection.

A message that cannot be acknowledged, because the connection is lost, is forgotten, as with Redis
(see `redis`): the pool opens another connection before the consumer notices anything, and as many
such messages as it may have would leave it silent for ever.

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

from kombu.transport import pgmq
from psycopg.errors import ReadOnlySqlTransaction

# Nothing is asked of the database meanwhile.
SOON_SECONDS = 0.02


class Channel(pgmq.Channel):
    connection: Transport

    def drain_events(self, *args: Any, **kwargs: Any) -> None:
        if self._consumers and not self.qos.can_consume():
            self.connection.hands_are_full = True
            raise Empty
        super().drain_events(*args, **kwargs)  # type: ignore[no-untyped-call]

    def basic_ack(self, delivery_tag: str, multiple: bool = False) -> None:
        try:
            super().basic_ack(delivery_tag, multiple)  # type: ignore[no-untyped-call]
        except BaseException:
            self.qos.ack(delivery_tag)
            raise

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

    def _get_notify_waiter(self) -> Any:
        if self._notify_waiter is None:
            self._notify_waiter = Waiter(self, self._get_pgmq_client().config.dsn)
        return self._notify_waiter
