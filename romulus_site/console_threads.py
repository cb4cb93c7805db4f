"""The console's threads, none of which a slow sender can keep: a request comes whole in time.

A body that never ends, or drips in byte by byte, would hold a thread for ever, and with as many
as there are threads the console and the inbox of events. What has not been read by then reads as
cut short. Answers are not bounded by it: a large export may take as long as it takes.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import Any

from django.conf import settings
from gunicorn.workers.gthread import ThreadWorker


class TimedThreads(ThreadWorker):
    """Gunicorn's threads; its main loop, which looks about each second, ends late readings too."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._reading: dict[Any, float] = {}

    def handle(self, conn: Any) -> Any:
        self._reading[conn] = time.monotonic() + settings.ROMULUS_REQUEST_SECONDS
        try:
            return super().handle(conn)
        finally:
            self._reading.pop(conn, None)

    def murder_keepalived(self, *force: Any, **named: Any) -> None:
        super().murder_keepalived(*force, **named)
        now = time.monotonic()
        for conn, ends in list(self._reading.items()):
            if ends <= now:
                with suppress(OSError):  # it has ended by itself
                    conn.sock.shutdown(socket.SHUT_RD)
