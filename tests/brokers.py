"""Brokers that a test may use beside the embedded one: servers of this machine, if they answer.

They are shared: a test has names of its own there, and removes what it has left.
"""

from __future__ import annotations

import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import kombu
import pytest

LOOPBACK = "127.0.0.1"
PORTS = {"redis": 6379, "amqp": 5672}
ANSWER_SECONDS = 2.0


@dataclass(frozen=True)
class Broker:
    """A server, and the names that a test has there.

    Attributes:
        address: where it listens itself.
        settings: what a process needs beside the address, to use this test's names.
    """

    scheme: str
    address: tuple[str, int]
    prefix: str
    settings: dict[str, Any]

    def url(self, port: int | None = None) -> str:
        """Its BROKER_URL, also by way of another port."""
        host, own = self.address
        return f"{self.scheme}://{host}:{port or own}/" + ("/" if self.scheme == "amqp" else "")

    @property
    def queues(self) -> list[str]:
        return [f"{self.prefix}{name}" for name in ("advance", "reconcile")]

    def empty(self) -> None:
        """Lose everything that is kept of this test: messages, queues, what is unacknowledged."""
        if self.scheme == "redis":
            self._remove_keys()
            return
        with kombu.Connection(self.url()) as connection:
            for queue in self.queues:
                for each in (kombu.Queue(queue), kombu.Exchange(queue)):
                    with suppress(*connection.channel_errors):
                        each(connection.channel()).delete()

    def _remove_keys(self) -> None:
        import redis

        with redis.Redis.from_url(self.url()) as client:
            for key in list(client.scan_iter(match=f"{self.prefix}*")):
                client.delete(key)


@contextmanager
def broker_of_machine(scheme: str) -> Iterator[Broker]:
    """The server of this machine; skips the test when none answers."""
    address = (LOOPBACK, PORTS[scheme])
    try:
        socket.create_connection(address, ANSWER_SECONDS).close()
    except OSError as error:
        pytest.skip(f"no broker answers at {scheme}://{address[0]}:{address[1]} ({error})")
    prefix = f"tests_{uuid.uuid4().hex[:12]}_"
    settings: dict[str, Any] = {
        "CELERY_TASK_DEFAULT_QUEUE": f"{prefix}advance",
        "CELERY_TASK_ROUTES": {"reconciliation.tasks.reconcile": {"queue": f"{prefix}reconcile"}},
    }
    if scheme == "redis":
        settings["CELERY_BROKER_TRANSPORT_OPTIONS"] = {"global_keyprefix": prefix}
    broker = Broker(scheme, address, prefix, settings)
    try:
        yield broker
    finally:
        broker.empty()
