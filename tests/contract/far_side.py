"""The far side of the wire, byte by byte: it counts what comes, and answers or breaks as told."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Seen:
    """One request, as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Said:
    """What is answered. `fault` breaks it: nothing at all, half of it, or no end of it."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    fault: Literal["", "drop", "hang", "truncate", "trickle"] = ""


Answers = Callable[[Seen], Said]


class FarSide:
    """A server on the loopback that speaks HTTP/1.1 and nothing else."""

    def __init__(self, safe: ssl.SSLContext | None = None) -> None:
        self._safe = safe
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._over = threading.Event()
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.seen: list[Seen] = []
        self.connections = 0
        self.answers: Answers = lambda _seen: Said()
        threading.Thread(target=self._accept, daemon=True).start()

    def end(self) -> None:
        self._over.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with plain, suppress(OSError), self._secured(plain) as client:
            # Until the client leaves: a second request on one connection would be counted too.
            while (seen := read(client)) is not None:
                self.seen.append(seen)
                said = self.answers(seen)
                if not self._say(client, seen, said):
                    return

    def _secured(self, plain: socket.socket) -> socket.socket:
        return self._safe.wrap_socket(plain, server_side=True) if self._safe else plain

    def _say(self, client: socket.socket, seen: Seen, said: Said) -> bool:
        if said.fault == "drop":
            return False
        if said.fault == "hang":
            self._over.wait()
            return False
        length = {} if seen.method == "HEAD" else {"Content-Length": str(len(said.body))}
        headers = {**length, **said.headers}
        head = f"HTTP/1.1 {said.status} X\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in headers.items()
        )
        whole = head.encode() + b"\r\n" + (b"" if seen.method == "HEAD" else said.body)
        if said.fault == "truncate":
            client.sendall(whole[: len(head) + 2 + len(said.body) // 2])
            return False
        if said.fault == "trickle":
            for place in range(len(whole)):
                client.sendall(whole[place : place + 1])
                if self._over.wait(0.05):
                    return False
        client.sendall(whole)
        return True


def read(client: socket.socket) -> Seen | None:
    """The next request; None when the client has left."""
    come = b""
    while b"\r\n\r\n" not in come:
        data = client.recv(65536)
        if not data:
            return None
        come += data
    head, _, body = come.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += client.recv(65536)
    return Seen(method, path, headers, body)


@contextmanager
def far_side(safe: ssl.SSLContext | None = None) -> Iterator[FarSide]:
    side = FarSide(safe)
    try:
        yield side
    finally:
        side.end()
