"""Senders that never finish their request: they keep no thread of the console."""

from __future__ import annotations

import re
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from romulus_site.parts import CONSOLE_THREADS, answers
from tests.acceptance.hooking import received
from tests.acceptance.web import web
from tests.delivering import source
from tests.waiting import LIMIT_SECONDS, wait_for
from tests.workers import environment_of
from workflows.core.sources import Scheme
from workflows.models import Event

pytestmark = pytest.mark.processes

START = b"POST /hooks/shop/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
UNFINISHED = (
    START + b"Content-Length: 500\r\n\r\n{",
    START + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
    b"POST /accounts/login/ HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 500\r\n\r\na=",
    START,  # not even its headers
)


def test_requests_that_never_end_are_cut_short_and_the_console_answers(
    committed_db: str, tmp_path: Path
) -> None:
    source(Scheme.GITHUB)
    environment = environment_of(committed_db) | {"ROMULUS_REQUEST_SECONDS": "2"}
    with web(environment, tmp_path) as console, ExitStack() as open_ones:
        address = ("127.0.0.1", console.port)
        slow = [
            open_ones.enter_context(socket.create_connection(address, timeout=LIMIT_SECONDS))
            for _ in range(CONSOLE_THREADS)
        ]
        for place, wire in enumerate(slow):
            wire.sendall(UNFINISHED[place % len(UNFINISHED)])
        wait_for(lambda: answers(address[0], console.port, "/healthz"), "it answers", limit=60)
        for wire in slow:
            assert re.match(rb"HTTP/1.1 4\d\d |$", received(wire))
    assert not Event.objects.exists()
