"""The queues in PostgreSQL, after an outage or a switch-over, and beside a worker that is frozen.

Reading a message is a write. On a session that can only read, because its server is a standby now,
kombu's own transport ends the worker; here it connects anew, as after any lost connection.

A message that cannot be acknowledged, because the connection is lost, is forgotten, as with Redis
(see `redis`): the pool opens another connection before the consumer notices anything, and as many
such messages as it may have would leave it silent for ever.

A worker that begins to listen makes the queue's trigger anew in kombu's own transport, which needs
the table for itself: it would wait for one that was frozen while it took a message, and everybody
who sends one would wait for both. Here it only listens: `ensure_pgmq` has made the trigger.
"""

from __future__ import annotations

from kombu.transport import pgmq
from psycopg.errors import ReadOnlySqlTransaction


class Channel(pgmq.Channel):
    def basic_ack(self, delivery_tag: str, multiple: bool = False) -> None:
        try:
            super().basic_ack(delivery_tag, multiple)  # type: ignore[no-untyped-call]
        except BaseException:
            self.qos.ack(delivery_tag)
            raise

    def _maybe_enable_notify(self, queue: str, queue_name: str | None = None) -> None:
        if self.use_notify:
            name = queue_name or self._queue_name(queue)
            self.connection._register_notify_queue(name)  # type: ignore[attr-defined]


class Transport(pgmq.Transport):
    Channel = Channel
    connection_errors = (*pgmq.Transport.connection_errors, ReadOnlySqlTransaction)
