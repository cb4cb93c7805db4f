"""Counts round trips, whatever the client's library does: it stands between client and server.

A round trip begins when the client speaks after the server spoke last. It slows everything that
passes through, so only counts are taken there, never times.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from romulus_site.bench.database import Server

BLOCK = 65_536


class CountingProxy:
    """Passes on what clients and the server say, and counts."""

    def __init__(self, server: tuple[str, int] | str) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self.trips = 0
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def close(self) -> None:
        with suppress(OSError):  # not every system has this for a socket that listens
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, connected(self._server) as server, selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ, server)
            selector.register(server, selectors.EVENT_READ, client)
            speaker: socket.socket = server
            with suppress(OSError):  # one of them is gone
                while True:
                    for key, _ in selector.select():
                        source = client if key.data is server else server
                        if not (said := source.recv(BLOCK)):
                            return
                        if source is client and speaker is server:
                            self._count()
                        speaker = source
                        key.data.sendall(said)

    def _count(self) -> None:
        with self._lock:
            self.trips += 1


def connected(address: tuple[str, int] | str) -> socket.socket:
    if isinstance(address, tuple):
        return socket.create_connection(address)
    local = socket.socket(socket.AF_UNIX)
    local.connect(address)
    return local


@contextmanager
def counting_proxy(server: Server) -> Iterator[CountingProxy]:
    """Give a proxy before `server`, which ends after."""
    with server.connect() as connection:
        host, port = connection.info.host, connection.info.port
    local = host.startswith("/")
    proxy = CountingProxy(str(Path(host) / f".s.PGSQL.{port}") if local else (host, port))
    try:
        yield proxy
    finally:
        proxy.close()
