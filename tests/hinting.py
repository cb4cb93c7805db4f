"""The messages that a test's own process has sent, which no worker of its takes."""

from __future__ import annotations

from queue import Empty
from uuid import UUID

from celery import current_app


def hinted(queue: str = "advance") -> list[UUID]:
    """What `queue` was told of since it was last asked, the first one first."""
    told: list[UUID] = []
    with current_app.connection_for_read() as connection, connection.SimpleQueue(queue) as waiting:
        while True:
            try:
                message = waiting.get_nowait()
            except Empty:
                return told
            message.ack()
            args, *_ = message.payload
            told += map(UUID, args)
