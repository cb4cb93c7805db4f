"""A relay between a process and a server, that a test can cut, hold up and mend.

It listens on the loopback or, for PostgreSQL, on a socket in a folder of its own.
"""

from __future__ import annotations

import select
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

Address = tuple[str, int] | str  # host and port, or the path of a local socket

BLOCK = 65_536
LOOK_SECONDS = 0.05  # how soon a connection notices that it was cut
LOOPBACK = "127.0.0.1"


class Relay:
    """Passes on what is said, while it is not cut."""

    def __init__(self, server: Address, listens: Address = (LOOPBACK, 0)) -> None:
        self._server = server
        self._listens = listens
        self._held_up = threading.Event()
        self._cut = threading.Event()  # of the connections that there are
        self._listener: socket.socket | None = None
        self.mend()

    @property
    def port(self) -> int:
        assert isinstance(self._listens, tuple)
        return self._listens[1]

    def cut(self) -> None:
        """End every connection; refuse new ones until it is mended."""
        if self._listener is not None:
            with suppress(OSError):  # not every system has this for a socket that listens
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        self._cut.set()

    def hold_up(self) -> None:
        """Let no byte through and end nothing, as a network that swallows packets does."""
        self._held_up.set()

    def mend(self) -> None:
        """Pass on again, at the same address."""
        self._held_up.clear()
        if self._listener is not None:
            return
        if isinstance(self._listens, str):
            Path(self._listens).unlink(missing_ok=True)
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(self._listens)
            self._listener.listen()
        else:
            self._listener = socket.create_server(self._listens)
            self._listens = self._listener.getsockname()
        self._cut = threading.Event()
        threading.Thread(target=self._accept, args=(self._listener, self._cut), daemon=True).start()

    def _accept(self, listener: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._pass_on, args=(client, cut), daemon=True).start()

    def _pass_on(self, client: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError), client, connected(self._server) as server:  # one of them is gone
            self._talk(client, server, cut)

    def _talk(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        others = {client: server, server: client}
        while not cut.is_set():
            if self._held_up.is_set():
                cut.wait(LOOK_SECONDS)
                continue
            spoken, _, _ = select.select([client, server], [], [], LOOK_SECONDS)
            for source in spoken:
                if not (said := source.recv(BLOCK)):
                    return
                others[source].sendall(said)


def connected(server: Address) -> socket.socket:
    if isinstance(server, tuple):
        return socket.create_connection(server)
    local = socket.socket(socket.AF_UNIX)
    local.connect(server)
    return local


@contextmanager
def relay(server: Address) -> Iterator[Relay]:
    """A relay on the loopback to `server`, which is cut after."""
    made = Relay(server)
    try:
        yield made
    finally:
        made.cut()


@contextmanager
def database_relay(settings: dict[str, object]) -> Iterator[tuple[Relay, dict[str, object]]]:
    """A relay to the database of `settings`, with the settings that lead through it.

    A server that has a local socket alone is reached by one again.
    """
    host, port = str(settings["HOST"]), settings["PORT"] or 5432
    if not host.startswith("/"):
        with relay((host or LOOPBACK, int(str(port)))) as made:
            yield made, {**settings, "HOST": LOOPBACK, "PORT": made.port}
        return
    name = f".s.PGSQL.{port}"
    with tempfile.TemporaryDirectory(prefix="relay-") as folder:
        made = Relay(str(Path(host) / name), str(Path(folder) / name))
        try:
            yield made, {**settings, "HOST": folder}
        finally:
            made.cut()
