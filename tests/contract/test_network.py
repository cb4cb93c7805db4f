"""One connection: a write that is too late does not leave, whatever was reached before."""

from __future__ import annotations

import socket
import time

import pytest

from reconciliation.adapters.network import Channel, OutOfTime, Progress
from reconciliation.adapters.uptime import uptime
from reconciliation.core.classify import BEFORE_SEND, Phase
from reconciliation.core.contracts import Deadlines


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
