"""A proxy that forwards a request and *then* breaks what comes back, and counts what passes.

It listens on the loopback and speaks HTTP/1.1 to the client, HTTP or HTTPS to the far side. One
request that came is one passage: a client that sends again by itself shows as a second one.
Standard library only.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import struct
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import SplitResult, urlsplit

from reconciliation.rehearsal.bodies import read_body
from reconciliation.rehearsal.breaks import (
    BAD_GATEWAY,
    UNAVAILABLE,
    Answer,
    Break,
    On,
    Passage,
    kind_of,
)

# Of the far side: longer than any client waits for it.
UPSTREAM_SECONDS = 60.0
HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
OWN = HOP_BY_HOP | {"host", "content-length", "expect"}
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Away(Exception):
    """The far side did not answer: what it has done is not known."""


@dataclass
class Armed:
    """A break for the next `times` requests of a kind; None: for all of them."""

    broken: Break
    on: On
    times: int | None
    seconds: float


class FaultProxy:
    """A running proxy in front of one address."""

    def __init__(self, upstream: str) -> None:
        self._upstream = urlsplit(upstream)
        self._lock = threading.Lock()
        self._armed: list[Armed] = []
        self._ending = threading.Event()
        self.passages: list[Passage] = []
        self._server = Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        thread.start()

    def close(self) -> None:
        """Let nothing pass any more; answers that were to come late do not come."""
        self._ending.set()
        self._server.shutdown()
        self._server.server_close()

    def arm(
        self, broken: Break, *, on: On = On.WRITES, times: int | None = 1, seconds: float = 0.0
    ) -> None:
        """Break the next `times` exchanges of a kind; `seconds` is how late a late answer is."""
        with self._lock:
            self._armed.append(Armed(broken, on, times, seconds))

    def forget(self) -> None:
        """Disarm everything, and forget what has passed."""
        with self._lock:
            self._armed.clear()
            self.passages = []

    def writes(self) -> list[Passage]:
        """The writes that came, oldest first."""
        with self._lock:
            return [passage for passage in self.passages if passage.kind is On.WRITES]

    # --- one exchange -----------------------------------------------------------------------

    def take(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Taken:
        """Note a request that came; forward it as often as what it meets says."""
        kind = kind_of(method, headers, body)
        armed = self._use(kind)
        passage = Passage(kind, method, path, armed.broken if armed else None)
        with self._lock:
            self.passages.append(passage)
        times = {Break.UNAVAILABLE: 0, Break.DROP_BEFORE: 0, Break.DELIVER_TWICE: 2}
        for _ in range(times.get(passage.broke, 1) if passage.broke else 1):
            answer = forwarded(self._upstream, method, path, headers, body)
            passage.answers = (*passage.answers, answer)
        return Taken(passage, armed.seconds if armed else 0.0)

    def pause(self, seconds: float) -> None:
        self._ending.wait(seconds)

    def _use(self, kind: On) -> Armed | None:
        with self._lock:
            for armed in self._armed:
                if armed.on is kind and armed.times != 0:
                    if armed.times is not None:
                        armed.times -= 1
                    return armed
        return None


@dataclass(frozen=True)
class Taken:
    """A passage whose far side has been dealt with, and how late its answer comes."""

    passage: Passage
    seconds: float


def forwarded(
    upstream: SplitResult, method: str, path: str, headers: Mapping[str, str], body: bytes
) -> Answer:
    """Send the request on once, and return the whole answer. Raises `Away`."""
    connection = connected(upstream)
    try:
        own = {name: value for name, value in headers.items() if name not in OWN}
        connection.request(method, upstream.path.rstrip("/") + path, body or None, own)
        response = connection.getresponse()
        content = response.read()
        kept = [(name, value) for name, value in response.getheaders() if name.lower() not in OWN]
        return Answer(response.status, tuple(kept), content)
    except (OSError, http.client.HTTPException) as error:
        raise Away from error
    finally:
        connection.close()


def connected(upstream: SplitResult) -> http.client.HTTPConnection:
    host, port = upstream.hostname or "", upstream.port
    if upstream.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=UPSTREAM_SECONDS, context=context)
    return http.client.HTTPConnection(host, port, timeout=UPSTREAM_SECONDS)


class Server(ThreadingHTTPServer):
    """The listening socket, on a free port of the loopback."""

    daemon_threads = True

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        super().__init__(("127.0.0.1", 0), Exchange)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent when a client has gone away; anything else is a bug and is shown."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Exchange(BaseHTTPRequestHandler):
    """One client's connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = UPSTREAM_SECONDS
    server: Server

    def pass_on(self) -> None:
        """Take the request whose head has just been read, and answer as the break says."""
        body = read_body(self.headers, self.rfile)
        self.close_connection = True  # each exchange stands alone: no dead connection is used again
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            taken = self.server.proxy.take(self.command, self.path, headers, body.content)
        except Away:
            self._hang_up()
            return
        self._respond(taken)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = pass_on  # noqa: N815

    def _respond(self, taken: Taken) -> None:
        passage = taken.passage
        match passage.broke:
            case Break.DROP_BEFORE | Break.DROP_AFTER:
                self._hang_up()
            case Break.UNAVAILABLE:
                self._send(UNAVAILABLE)
            case Break.BAD_GATEWAY:
                self._send(BAD_GATEWAY)
            case Break.TRUNCATE:
                self._send(passage.answers[-1], part=0.5)
            case Break.ANSWER_TWICE:
                self._send(passage.answers[-1])
                self._send(passage.answers[-1])
            case Break.LATE:
                self.server.proxy.pause(taken.seconds)
                self._send(passage.answers[-1])
            case _:
                self._send(passage.answers[-1])

    def _send(self, answer: Answer, *, part: float = 1.0) -> None:
        lines = [f"HTTP/1.1 {answer.status} {self.responses.get(answer.status, ('',))[0]}"]
        lines += [f"{name}: {value}" for name, value in answer.headers]
        lines += [f"Content-Length: {len(answer.body)}", "Connection: close", "", ""]
        body = b"" if self.command == "HEAD" else answer.body[: int(len(answer.body) * part)]
        self.wfile.write("\r\n".join(lines).encode("latin-1") + body)

    def _hang_up(self) -> None:
        """Reset the connection, without a byte."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        # The reader shares the socket: only when both are closed does the reset leave.
        self.rfile.close()
        self.connection.close()

    def log_message(self, *_: Any) -> None:
        """Say nothing: what passed is in `passages`."""


@contextmanager
def fault_proxy(upstream: str) -> Iterator[FaultProxy]:
    """Run a proxy in front of `upstream` for the block."""
    proxy = FaultProxy(upstream)
    try:
        yield proxy
    finally:
        proxy.close()
