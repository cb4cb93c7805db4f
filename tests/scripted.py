"""A provider at the far side of the wire that answers whatever a test says.

It misbehaves in ways that the rehearsal destination does not rehearse.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Scripted:
    """What the provider answers, and what it was asked."""

    url: str = ""
    status: int = 201
    body: bytes = b'{"id": "r_1"}'
    headers: dict[str, str] = field(default_factory=lambda: {"Request-Id": "req_1"})
    # What it reads of a request before it answers; the answer may depend on it.
    answers: Callable[[BaseHTTPRequestHandler], bytes] | None = None
    sent: bytes = b""  # the body of the latest request
    requests: list[tuple[str, str]] = field(default_factory=list)


@contextmanager
def scripted_provider() -> Iterator[Scripted]:
    """Run one, until the block is left."""
    provider = Scripted()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            provider.sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            provider.requests.append((self.command, self.path))
            body = provider.answers(self) if provider.answers else provider.body
            self.send_response(provider.status)
            for name, value in {**provider.headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer  # noqa: N815 (names that the server calls)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    provider.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
