"""HTTP/1.1 over a socket for each connection's thread: reads requests, lets answers leave as told.

Knows bytes, limits and connections, and nothing of what a request means.
"""

from __future__ import annotations

import logging
import socket
import socketserver
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from reconciliation.rehearsal import admin
from reconciliation.rehearsal.bodies import read_body
from reconciliation.rehearsal.execution import Execution, Stopping
from reconciliation.rehearsal.store import Store
from reconciliation.rehearsal.wire import Answer, Closing, Delivery, Request, failure

logger = logging.getLogger(__name__)

# An idle connection is closed by its client first: pools keep theirs for seconds, not minutes.
IDLE_SECONDS = 120
MAX_QUERY_FIELDS = 50
# Close with data unsent and a reset instead of the orderly end.
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Lifetime:
    """Whether the destination is ending, and how many requests it is still busy with."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        self._busy = 0
        self._releases = 0
        # Of each request, which is its thread's only one: how many releases were before it.
        self._arrived = threading.local()

    def pause(self, seconds: float) -> None:
        """Wait for `seconds`, or until a release that came after the request.

        Raises `Stopping` as soon as the destination is ending.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopping.is_set() or self._releases > self._arrived.after, seconds
            )
        if self._stopping.is_set():
            raise Stopping

    def release(self) -> None:
        """End the delays of all requests that have arrived."""
        with self._changed:
            self._releases += 1
            self._changed.notify_all()

    @contextmanager
    def request(self) -> Iterator[bool]:
        """Count one request for the block; gives False when it came too late to be served."""
        with self._changed:
            self._busy += 1
            self._arrived.after = self._releases
        try:
            yield not self._stopping.is_set()
        finally:
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()

    def end(self, patience_seconds: float) -> bool:
        """Take no more requests and wait for those under way; says whether all of them ended."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._busy == 0, patience_seconds)


class Server(ThreadingHTTPServer):
    """The listening socket and what every connection shares."""

    daemon_threads = True
    # A torture run opens its connections at once.
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], store: Store, lifetime: Lifetime) -> None:
        """Bind and listen. Raises `OSError` when the address cannot be had."""
        self.store = store
        self.lifetime = lifetime
        self.execution = Execution(store, lifetime.pause)
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, Connection)

    def server_bind(self) -> None:
        """Bind without the look-up of the host's name, which can take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent when a client has gone away; anything else is a bug and is shown."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def delivery(self, request: Request) -> Delivery:
        """Return how the answer to `request` leaves; never raises."""
        try:
            if request.path.startswith(admin.PREFIX):
                return Delivery(admin.answered(self.store, request, self.lifetime.release))
            return self.execution.deliver(request)
        except Exception:
            logger.exception("a request could not be served")
            return Delivery(failure(500, "api_error", "the destination has a bug; see its output"))


class Connection(BaseHTTPRequestHandler):
    """One client's connection, request after request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = IDLE_SECONDS
    server: Server

    def serve(self) -> None:
        """Answer the request whose head has just been read."""
        with self.server.lifetime.request() as in_time:
            if not in_time:
                self.close_connection = True
                return
            request = self._request()
            try:
                self._deliver(request, self.server.delivery(request))
            except (OSError, Stopping):
                # The client went away or the destination is ending; what was done is journalled.
                self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = serve  # noqa: N815

    def _request(self) -> Request:
        body = read_body(self.headers, self.rfile)
        if body.ends_connection:
            self.close_connection = True
        headers = {name.lower(): ", ".join(self.headers.get_all(name, [])) for name in self.headers}
        unreadable = body.refusal
        try:
            parts = urlsplit(self.path)
            path, query = (
                parts.path,
                parse_qs(parts.query, keep_blank_values=True, max_num_fields=MAX_QUERY_FIELDS),
            )
        except ValueError:
            path, query = self.path, {}
            unreadable = failure(400, "invalid_request_error", "the address cannot be read")
        return Request(self.command, path, query, headers, body.content, unreadable)

    def _deliver(self, request: Request, delivery: Delivery) -> None:
        if delivery.after_seconds:
            self.server.lifetime.pause(delivery.after_seconds)
        if delivery.close is not None:
            self.close_connection = True
        if delivery.answer is None:
            self._hang_up(delivery.close)
            return
        self._send(delivery.answer, request.id, truncated=delivery.truncated)

    def _send(self, answer: Answer, request_id: str, *, truncated: bool = False) -> None:
        headers = [
            ("Date", formatdate(time.time(), usegmt=True)),
            ("Content-Type", answer.content_type),
            ("Content-Length", str(len(answer.body))),
            *([("Request-Id", request_id)] if answer.own else []),
            *answer.headers,
            # A truncated answer does not announce that it will be.
            *([("Connection", "close")] if self.close_connection and not truncated else []),
        ]
        head = f"HTTP/1.1 {answer.status} {_phrase(answer.status)}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers) + "\r\n"
        body = b"" if self.command == "HEAD" else answer.body
        self.wfile.write(head.encode("latin-1") + body[: len(body) // 2 if truncated else None])

    def _hang_up(self, closing: Closing | None) -> None:
        """Close without a byte; the orderly way is left to the server's own clean-up."""
        if closing != "rst":
            return
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        # The reader shares the socket: only when both are closed does the reset leave.
        self.rfile.close()
        self.connection.close()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no request at all (the base class found it malformed) like any other."""
        self.close_connection = True
        # The base class gets here before it has set the method of a line that it cannot read.
        self.command = getattr(self, "command", None) or "GET"
        kind = "invalid_request_error" if code < HTTPStatus.INTERNAL_SERVER_ERROR else "api_error"
        answer = failure(code, kind, explain or message or _phrase(code))
        self._send(answer, Request("", "", {}, {}, b"").id)

    def log_message(self, *_: Any) -> None:
        """Write nothing: the journal is the log."""


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Rehearsed"
