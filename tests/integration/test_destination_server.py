"""The rehearsal destination as a server: its journal, its administration, and HTTP itself."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from reconciliation.rehearsal.client import DestinationRefused
from tests.destination import (
    COMMENTS,
    MACHINES,
    REFUNDS,
    RunningDestination,
    error,
    eventually,
    keyed,
    refund,
    running_destination,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDestination]:
    """One process for the tests that do not kill it."""
    with running_destination(tmp_path_factory.mktemp("destination")) as destination:
        yield destination


@pytest.fixture
def destination(server: RunningDestination) -> RunningDestination:
    """The shared process, with nothing in it."""
    server.client.reset()
    return server


@pytest.fixture
def http(destination: RunningDestination) -> Iterator[httpx.Client]:
    """A client of the personalities, as acct_1."""
    with destination.as_account() as client:
        yield client


class TestJournal:
    """Every request is written down as it arrived."""

    def test_a_request_is_kept_byte_for_byte(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        content = b' {"amount":500,"currency":"eur",  "order":"A1"}\n'
        headers = {**keyed(), "Romulus-Operation": "op-7", "Romulus-Attempt": "try-1"}
        answer = http.post(REFUNDS + "?trace=1", content=content, headers=headers)
        (entry,) = destination.client.journal(operation="op-7")
        (effect,) = destination.client.effects(operation="op-7")
        assert entry.body == content
        assert (entry.method, entry.path, entry.query) == ("POST", REFUNDS, "trace=1")
        assert (entry.personality, entry.account) == ("keyed", "acct_1")
        assert (entry.attempt, entry.idempotency_key) == ("try-1", "key-1")
        assert (entry.done, entry.answered, entry.status) == ("effect", "whole", 201)
        assert entry.request_id == answer.headers["Request-Id"]
        assert (entry.effect, effect.request) == (effect.id, entry.id)
        assert (effect.attempt, effect.idempotency_key) == ("try-1", "key-1")

    def test_look_ups_and_refusals_are_in_it(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        http.get(MACHINES, params={"operation": "op-1"})
        http.post(MACHINES, json={"metadata": {"operation": "op-1"}})
        found = [
            (entry.method, entry.done, entry.status)
            for entry in destination.client.journal(operation="op-1")
        ]
        assert found == [("GET", "read", 200), ("POST", "nothing", 400)]

    def test_it_is_paged(self, destination: RunningDestination, http: httpx.Client) -> None:
        for number in range(5):
            http.post(COMMENTS, json={"body": str(number)})
        first = http.get("/_admin/journal", params={"limit": 2}).json()
        assert first["next_after"] == first["data"][-1]["id"]
        rest = destination.client.journal(after=first["next_after"])
        assert [json.loads(entry.body)["body"] for entry in rest] == ["2", "3", "4"]
        assert http.get("/_admin/journal", params={"limit": 5}).json()["next_after"] is None

    def test_the_client_follows_the_pages(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        for _ in range(205):
            http.get("/blind/v1/nothing")
        assert len(destination.client.journal()) == 205


class TestAdministration:
    """What a developer sets and asks."""

    def test_reset_forgets_everything(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        http.post(REFUNDS, json=refund(), headers=keyed())
        destination.client.arm("drop_before")
        destination.client.settings("keyed", retention_seconds=1)
        destination.client.reset()
        assert destination.client.effects() == []
        assert destination.client.journal() == []
        assert destination.client.armed() == []
        assert destination.client.settings()["keyed"]["retention_seconds"] == 86_400
        assert http.post(REFUNDS, json=refund(), headers=keyed()).status_code == 201

    def test_what_came_before_a_reset_does_nothing_after_it(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        destination.client.arm("slow", seconds=60)
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(http.post, REFUNDS, json=refund(), headers=keyed())
            eventually(destination.client.journal)
            destination.client.reset()
            destination.client.release()
            with pytest.raises(httpx.RemoteProtocolError):
                answer.result()
        assert (destination.client.effects(), destination.client.journal()) == ([], [])
        assert http.post(REFUNDS, json=refund(), headers=keyed()).status_code == 201

    def test_release_ends_the_delays_that_are_under_way(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        destination.client.arm("apply_then_delay", seconds=60)
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(http.post, REFUNDS, json=refund(), headers=keyed())
            eventually(destination.client.effects)
            assert not answer.done()
            destination.client.release()
            assert answer.result().status_code == 201

    @pytest.mark.parametrize(
        ("values", "param"),
        [
            ({"personality": "odd"}, "personality"),
            ({}, "personality"),
            ({"personality": "keyed", "retention": 3}, "retention"),
            ({"personality": "keyed", "retention_seconds": -1}, "retention_seconds"),
            ({"personality": "keyed", "retention_seconds": True}, "retention_seconds"),
            ({"personality": "lookup", "visibility_lag_seconds": "3"}, "visibility_lag_seconds"),
        ],
    )
    def test_a_setting_that_cannot_be_is_refused(
        self, http: httpx.Client, values: dict[str, Any], param: str
    ) -> None:
        answer = http.post("/_admin/settings", json=values)
        assert (answer.status_code, error(answer)["param"]) == (400, param)

    def test_what_does_not_exist_names_what_does(self, http: httpx.Client) -> None:
        answer = http.get("/_admin/nothing")
        assert answer.status_code == 404
        assert "/_admin/effects" in error(answer)["known"]
        assert http.delete("/_admin/journal").status_code == 405
        assert error(http.get("/_admin/journal?after=x"))["param"] == "after"
        assert error(http.get("/_admin/effects?resource=x"))["param"] == "resource"

    def test_the_typed_client_raises_what_the_destination_said(
        self, destination: RunningDestination
    ) -> None:
        with pytest.raises(DestinationRefused, match="no personality 'odd'") as refused:
            destination.client.settings("odd")
        assert refused.value.status == 400
        assert "keyed" in refused.value.error["known"]


class TestHttp:
    """Connections, framing and other people's bytes."""

    def exchange(self, destination: RunningDestination, sent: bytes) -> bytes:
        """Send bytes, and return all that comes until the destination closes."""
        url = httpx.URL(destination.url)
        with socket.create_connection((url.host, url.port or 0), 10) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def test_requests_follow_each_other_on_one_connection(
        self, destination: RunningDestination
    ) -> None:
        head = (
            b"POST /blind/v1/tickets/1/comments HTTP/1.1\r\nHost: d\r\n"
            b"Authorization: Bearer acct_1\r\n"
        )
        plain = head + b'Content-Length: 12\r\n\r\n{"body":"a"}'
        chunked = (
            head + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"bod\r\n7;x=1\r\ny":"b"}\r\n0\r\n\r\n'
        )
        answers = self.exchange(destination, plain + chunked + plain)
        assert answers.count(b"HTTP/1.1 201 Created\r\n") == 3
        bodies = [entry.body for entry in destination.client.journal()]
        assert bodies == [b'{"body":"a"}', b'{"body":"b"}', b'{"body":"a"}']

    @pytest.mark.parametrize(
        ("framing", "status"),
        [
            (b"Content-Length: -1\r\n\r\n", b"400"),
            (b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", b"400"),
            (b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
            (b"Transfer-Encoding: gzip\r\n\r\n", b"400"),
            (b"Transfer-Encoding: chunked\r\n\r\n-1\r\n", b"400"),
            (b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFF\r\nxx", b"413"),
            (b"Content-Length: 99999999999999999999999\r\n\r\n", b"413"),
            (b'Content-Length: 99\r\n\r\n{"body":"half', b"400"),
        ],
    )
    def test_bad_framing_is_refused_and_journalled(
        self, destination: RunningDestination, framing: bytes, status: bytes
    ) -> None:
        head = b"POST " + COMMENTS.encode() + b" HTTP/1.1\r\nAuthorization: Bearer acct_1\r\n"
        answer = self.exchange(destination, head + framing)
        assert answer.startswith(b"HTTP/1.1 " + status)
        assert b"Connection: close" in answer
        assert answer.count(b"HTTP/1.1") == 1
        assert destination.client.effects() == []
        assert [entry.done for entry in destination.client.journal()] == ["nothing"]

    @pytest.mark.parametrize(
        "sent",
        [b"\x16\x03\x01\x02\x00\r\n\r\n", b"BREW /pot HTTP/1.1\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"],
    )
    def test_what_is_no_request_gets_a_typed_error(
        self, destination: RunningDestination, sent: bytes
    ) -> None:
        answer = self.exchange(destination, sent)
        assert b'"type"' in answer
        assert b"Request-Id: req_" in answer
        assert destination.client.health()

    def test_an_address_that_cannot_be_read(self, destination: RunningDestination) -> None:
        answer = self.exchange(destination, b"GET http://[/ HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400")
