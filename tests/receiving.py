"""Where notifications arrive in tests: a real mail server and a real HTTP server, which misbehave
as they are told."""

from __future__ import annotations

import email
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import Envelope

from tests.pooler import free_port


class Mailbox:
    """A mail server's mailbox: what it has stored, and how it answers to a recipient."""

    def __init__(self) -> None:
        self.stored: list[EmailMessage] = []
        self.answer = "250 OK"
        self.port = 0

    async def handle_RCPT(  # noqa: N802 (the server's name for it)
        self, _server: Any, _session: Any, envelope: Envelope, address: str, _options: Any
    ) -> str:
        if self.answer.startswith("2"):
            envelope.rcpt_tos.append(address)
        return self.answer

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Envelope) -> str:  # noqa: N802
        assert isinstance(envelope.content, bytes)
        message = email.message_from_bytes(envelope.content, policy=default)
        assert isinstance(message, EmailMessage)
        self.stored.append(message)
        return "250 queued"

    def text(self, number: int = -1) -> str:
        """What readers of plain text see of a message."""
        body = self.stored[number].get_body(("plain",))
        assert body is not None
        return str(body.get_content())


@contextmanager
def mail_server() -> Iterator[Mailbox]:
    box = Mailbox()
    server = Controller(box, hostname="127.0.0.1", port=free_port())
    server.start()
    box.port = server.port
    yield box
    server.stop()


@dataclass
class Receiver:
    """What was posted, and with which status it is answered."""

    url: str = ""
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    @property
    def documents(self) -> list[Any]:
        return [json.loads(body) for _, body in self.got]


@contextmanager
def http_receiver() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.got.append(({k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(receiver.status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Tests read what came, not the server's log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_port}/inbox/s3cret-part"
    yield receiver
    server.shutdown()
    server.server_close()
