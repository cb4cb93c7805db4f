"""One connection: a write that is too late does not leave, whatever was reached before."""

from __future__ import annotations

import fcntl
import socket
import struct
import termios
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest

from reconciliation.adapters.network import Channel, OutOfTime, Progress
from reconciliation.adapters.uptime import uptime
from reconciliation.adapters.wire import Request, exchange
from reconciliation.core.addresses import parse_address
from reconciliation.core.classify import BEFORE_SEND, Phase
from reconciliation.core.contracts import Deadlines
from tests.contract.lanes import LOOPBACK
from tests.waiting import LIMIT_SECONDS


def test_a_write_that_is_too_late_does_not_leave() -> None:
    """A10: frozen between the connection and the first byte, until its time was over."""
    ours, theirs = socket.socketpair()
    progress = Progress(uptime() - 1, Deadlines(), Phase.CONNECT)
    reached: list[str] = []
    with ours, theirs:
        with pytest.raises(OutOfTime):
            Channel(ours, progress).write(b"POST / HTTP/1.1", lambda: reached.append("sent"))
        theirs.setblocking(False)
        with pytest.raises(BlockingIOError):
            theirs.recv(1)
    assert reached == []
    assert progress.phase in BEFORE_SEND


def test_the_time_of_a_send_goes_on_while_the_machine_is_suspended() -> None:
    """The usual clock of a process stands still then, and others take the send to be over."""
    with_rests = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert with_rests <= uptime() <= time.clock_gettime(time.CLOCK_BOOTTIME)


def test_what_has_not_left_when_its_time_is_over_never_arrives() -> None:
    """The system would go on sending it from its buffers, once the other side takes bytes again."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        address = parse_address(f"http://127.0.0.1:{server.getsockname()[1]}")
        body = b"x" * 4_000_000  # more than any buffer of the other side has room for
        with connected_later(server) as theirs:
            got = exchange(
                address, LOOPBACK, Request("POST", "/", {}, body), Deadlines(), seconds=1
            )
            held = theirs.result(LIMIT_SECONDS)
            assert (got.status, got.phase) == (None, Phase.SEND)
            with held:
                there = waiting_in(held)
                assert received(held) <= there


@contextmanager
def connected_later(server: socket.socket) -> Iterator[Future[socket.socket]]:
    """Take one connection beside the test, and read nothing of it."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(lambda: server.accept()[0])


def waiting_in(wire: socket.socket) -> int:
    """How many bytes have come and were not read."""
    (number,) = struct.unpack("i", fcntl.ioctl(wire, termios.FIONREAD, b"\0" * 4))
    return int(number)


def received(wire: socket.socket) -> int:
    number = 0
    wire.settimeout(LIMIT_SECONDS)
    with suppress(ConnectionResetError):
        while piece := wire.recv(65536):
            number += len(piece)
    return number
