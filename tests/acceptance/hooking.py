"""A sender of events over real HTTP, as exact about its bytes as senders are."""

from __future__ import annotations

import http.client
import socket
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.acceptance.web import Web

SECONDS = 30.0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Hooks:
    """A running console, as senders see it."""

    console: Web
    log: Path

    def post(self, slug: str, body: Any, headers: dict[str, str]) -> Answer:
        """POST `body`; in chunks when it is no bytes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.console.port, timeout=SECONDS)
        with closing(connection):
            given = {"Host": "localhost"} | headers
            connection.request(
                "POST", f"/hooks/{slug}/", body, given, encode_chunked=not isinstance(body, bytes)
            )
            return answer_of(connection)

    def raw(self, data: bytes) -> bytes:
        """Send `data` as it is and return what comes back until the server closes, or is silent."""
        with socket.create_connection(("127.0.0.1", self.console.port), timeout=2.0) as wire:
            try:
                wire.sendall(data)
                wire.shutdown(socket.SHUT_WR)
                return received(wire)
            except (TimeoutError, ConnectionError):
                return b""

    def resident(self) -> int:
        """The memory of the process that answers, in bytes."""
        children = Path(f"/proc/{self.console.pid}/task/{self.console.pid}/children").read_text()
        lines = Path(f"/proc/{children.split()[0]}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def received(wire: socket.socket) -> bytes:
    data = b""
    while piece := wire.recv(65536):
        data += piece
    return data


def answer_of(connection: http.client.HTTPConnection) -> Answer:
    answer = connection.getresponse()
    headers = {name.lower(): value for name, value in answer.getheaders()}
    return Answer(answer.status, headers, answer.read())
