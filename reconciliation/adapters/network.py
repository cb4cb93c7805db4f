"""One connection to a provider: resolved, checked, and made to the very address that was checked.

How far it came is kept in `Progress`, by what was done and not by what was raised. Every wait has
an end: for the name, the connection, each write, each read, and the whole.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from reconciliation.adapters.uptime import uptime
from reconciliation.core.addresses import IP, Address, Allowed, may_be_called
from reconciliation.core.classify import Phase
from reconciliation.core.contracts import Deadlines

SAVE_SECONDS = 3.0  # a person waits
# The system goes on sending what a closed connection, or a killed process, has left in its buffers,
# for minutes where the other side is away. A request must not arrive when its time is over: unless
# all was said, what has not left by the end is thrown away (lingering on, for no time).
ABORT, AS_USUAL = struct.pack("ii", 1, 0), struct.pack("ii", 0, 0)
LEAST_SECONDS = 0.001  # a timeout of zero would mean "do not wait", and none "for ever"


class Unreachable(Exception):
    """No connection was made, and nothing has left; says so in words that tell no more."""


class OutOfTime(Exception):
    """The time for it is over."""


class Broken(Exception):
    """The connection has ended."""


SAID = {
    Phase.RESOLVE: "its name was not found",
    Phase.CONNECT: "no connection",
    Phase.TLS: "no safe connection",
}
NOT_ALLOWED = "its address is not one that may be called"


@dataclass
class Progress:
    """How far one exchange came, and how long it may take."""

    ends: float  # by `uptime`
    limits: Deadlines
    phase: Phase = Phase.RESOLVE

    def left(self, limit: float | None) -> float:
        """The seconds for one wait.

        Raises:
            OutOfTime: the whole is over.
        """
        whole = self.ends - uptime()
        if whole <= 0:
            raise OutOfTime
        return max(whole if limit is None else min(limit, whole), LEAST_SECONDS)


def connect(address: Address, allowed: tuple[Allowed, ...], progress: Progress) -> socket.socket:
    """Connect to one of the addresses that the host has now, all of which must be allowed.

    No second answer of the name is asked for: what was checked is what is connected to.

    Raises:
        Unreachable: nothing has left.
    """
    ips = resolve(address, progress)
    if not all(may_be_called(ip, address.port, allowed) for ip in ips):
        raise Unreachable(NOT_ALLOWED)
    progress.phase = Phase.CONNECT
    for ip in ips:
        with suppress(OSError, OutOfTime):
            seconds = progress.left(progress.limits.connect_seconds)
            made = socket.create_connection((str(ip), address.port), timeout=seconds)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
            return made
    raise Unreachable(SAID[Phase.CONNECT])


class Channel:
    """A connection on which every write and every read ends in time."""

    def __init__(self, made: socket.socket, progress: Progress) -> None:
        self.socket, self._progress = made, progress

    def write(self, data: bytes, before: Callable[[], None] = lambda: None) -> None:
        """Write all of it; `before` is called when a byte may leave, and not when time is over.

        Raises:
            OutOfTime, Broken: some of it may have left.
        """
        try:
            while data:
                # A worker that was frozen until now must not send: another may have taken over.
                self.socket.settimeout(self._progress.left(self._progress.limits.write_seconds))
                before()
                data = data[self.socket.send(data) :]
        except TimeoutError as error:
            raise OutOfTime from error
        except OSError as error:
            raise Broken from error

    def read(self, most: int) -> bytes:
        """Read what has come, `most` bytes at most; empty when the other side has ended.

        Raises:
            OutOfTime, Broken
        """
        try:
            self.socket.settimeout(self._progress.left(self._progress.limits.read_seconds))
            return self.socket.recv(most)
        except TimeoutError as error:
            raise OutOfTime from error
        except OSError as error:
            raise Broken from error

    def close(self) -> None:
        """End it. What has not left by now never does, unless the whole answer has come."""
        if self._progress.phase is Phase.ANSWER:
            with suppress(OSError):  # the other side has ended it before
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AS_USUAL)
        self.socket.close()

    def secure(self, host: str) -> Channel:
        """Make it a safe one to `host`, whose certificate is checked. Raises `Unreachable`."""
        return Channel(secure(self.socket, host, self._progress), self._progress)


def secure(made: socket.socket, host: str, progress: Progress) -> ssl.SSLSocket:
    """Make the connection a safe one to `host`, whose certificate is checked.

    Raises:
        Unreachable: there is none; nothing has left.
    """
    progress.phase = Phase.TLS
    try:
        made.settimeout(progress.left(progress.limits.connect_seconds))
        return certificates().wrap_socket(made, server_hostname=host)
    except (OSError, OutOfTime) as error:
        made.close()
        raise Unreachable(SAID[Phase.TLS]) from error


def resolve(address: Address, progress: Progress) -> list[IP]:
    """Return the addresses of the host, in the system's order.

    The system's resolver cannot be told when to end, so it is asked on a thread of its own.

    Raises:
        Unreachable: there is none, or the answer took too long.
    """
    if address.ip is not None:
        return [address.ip]
    found: list[IP] = []
    asking = threading.Thread(
        target=ask_for_name, args=(address.host, address.port, found), daemon=True
    )
    try:
        seconds = progress.left(progress.limits.connect_seconds)
    except OutOfTime as error:
        raise Unreachable(SAID[Phase.RESOLVE]) from error
    asking.start()
    asking.join(seconds)
    if asking.is_alive() or not found:
        raise Unreachable(SAID[Phase.RESOLVE])
    return list(dict.fromkeys(found))


def resolves_to_allowed(address: Address, allowed: tuple[Allowed, ...]) -> bool:
    """Whether all that the host stands for now may be called; also when it stands for nothing."""
    progress = Progress(uptime() + SAVE_SECONDS, Deadlines())
    try:
        ips = resolve(address, progress)
    except Unreachable:
        return True
    return all(may_be_called(ip, address.port, allowed) for ip in ips)


def ask_for_name(host: str, port: int, found: list[IP]) -> None:
    with suppress(OSError, ValueError):
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        found += [ipaddress.ip_address(str(answer[4][0]).partition("%")[0]) for answer in answers]


@cache
def certificates() -> ssl.SSLContext:
    """The machine's certificates: read once, since reading them takes longer than a request."""
    return ssl.create_default_context()
