"""Deliveries over real HTTP that are large, packed, in chunks, cut short or no HTTP at all."""

from __future__ import annotations

import gzip
import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.acceptance.hooking import SECONDS, Hooks, answer_of
from tests.delivering import paid, signed, source
from tests.signing import SECRET
from workflows.core.sources import Scheme
from workflows.models import Event, EventSource, RefusalCount

pytestmark = pytest.mark.processes

MEGABYTE = 1_000_000
LARGE = 60 * MEGABYTE
SENDERS = 6
# What six bodies of which a megabyte each is read may take, with what the allocator keeps.
ROOM = 40 * MEGABYTE


@pytest.fixture(scope="module")
def shop(hooks: Hooks) -> EventSource:
    return source(Scheme.GITHUB)


@pytest.fixture(autouse=True)
def empty(shop: EventSource) -> None:
    Event.objects.all().delete()
    RefusalCount.objects.all().delete()


def headers_for(body: bytes, **more: str) -> dict[str, str]:
    return signed(Scheme.GITHUB, body) | {name.replace("_", "-"): v for name, v in more.items()}


def pieces(number: int, size: int = 64 * 1024) -> Iterator[bytes]:
    return (b"x" * size for _ in range(number // size))


def test_a_body_in_chunks_is_taken_like_any_other(hooks: Hooks) -> None:
    body = paid()
    answer = hooks.post("shop", iter([body[:5], body[5:]]), headers_for(body))
    assert answer.status == 202, answer.body
    assert bytes(Event.objects.get().body or b"") == body


def test_a_body_that_is_declared_too_large_is_refused_before_it_is_sent(hooks: Hooks) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", hooks.console.port, timeout=SECONDS)
    with closing(connection):
        connection.putrequest("POST", "/hooks/shop/")
        for name, value in headers_for(b"").items():
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(LARGE))
        connection.endheaders()
        assert answer_of(connection).status == 413
    assert RefusalCount.objects.get().reason == "size"


def test_memory_is_flat_under_bodies_of_60_megabytes(hooks: Hooks) -> None:
    """Declared, in chunks, and packed to a few kilobytes, several at once."""
    bomb = gzip.compress(b" " * LARGE)
    hooks.post("shop", paid(), headers_for(paid()))
    packed = headers_for(bomb, content_encoding="gzip")
    unpacked = headers_for(b"")
    before = hooks.resident()
    answered: list[int] = []

    def send() -> None:
        answered.append(hooks.post("shop", bomb, packed).status)
        for body in (pieces(LARGE), b"x" * LARGE):
            # A sender that goes on after it was refused may find the connection closed.
            with suppress(ConnectionError):
                answered.append(hooks.post("shop", body, unpacked).status)

    senders = [threading.Thread(target=send) for _ in range(SENDERS)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert set(answered) == {413}
    assert len(answered) >= SENDERS
    assert hooks.resident() - before < ROOM
    assert Event.objects.count() == 1


@pytest.mark.parametrize(
    "cut",
    [
        b"Content-Length: 500\r\n\r\n{}",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\n{}",
        b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n",
        b"Content-Length: -1\r\n\r\n{}",
        b"Content-Length: many\r\n\r\n{}",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        b"Content-Length: 0\r\n\r\n",
        b"\r\n",
    ],
)
def test_a_body_that_was_cut_or_is_none_stores_nothing_and_is_no_error(
    hooks: Hooks, cut: bytes
) -> None:
    start = b"POST /hooks/shop/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    said = hooks.raw(start + b"Connection: close\r\n" + cut)
    assert re.match(rb"HTTP/1.1 4\d\d |$", said), said[:200]
    assert not Event.objects.exists()


HEADER_BYTES = st.binary(max_size=60).map(lambda value: re.sub(rb"[\r\n]", b"", value))
NAMES = st.sampled_from(
    [
        b"Content-Type",
        b"Content-Encoding",
        b"X-Hub-Signature-256",
        b"X-GitHub-Delivery",
        b"Authorization",
        b"X-Forwarded-Proto",
        b"Cookie",
        b"Expect",
        b"Accept",
        b"HX-Request",
    ]
)


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    headers=st.lists(st.tuples(NAMES, HEADER_BYTES), max_size=5),
    body=st.binary(max_size=200),
    query=st.binary(max_size=20).map(lambda value: re.sub(rb"[\s#]", b"", value)),
)
def test_whatever_bytes_are_sent_nothing_is_stored_and_nothing_breaks(
    hooks: Hooks, headers: list[tuple[bytes, bytes]], body: bytes, query: bytes
) -> None:
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    said = hooks.raw(
        b"POST /hooks/shop/?"
        + query
        + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        + b"Content-Length: %d\r\n" % len(body)
        + lines
        + b"\r\n"
        + body
    )
    assert not re.match(rb"HTTP/1.1 5", said), said[:200]
    assert not re.match(rb"HTTP/1.1 2", said), said[:200]
    assert not Event.objects.exists()


def test_the_log_of_all_that_holds_no_secret_and_no_error(hooks: Hooks) -> None:
    said = hooks.log.read_text()
    assert SECRET not in said
    assert "Traceback" not in said
    assert '"level": "error"' not in said
