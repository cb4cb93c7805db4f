"""Each fault of the rehearsal destination, seen from the client and from its journal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from reconciliation.rehearsal.client import Effect, JournalEntry
from tests.destination import (
    COMMENTS,
    MACHINES,
    REFUNDS,
    RunningDestination,
    error,
    eventually,
    keyed,
    machine,
    refund,
    running_destination,
)

# Of a client that leaves soon, once it is connected and has sent all.
IMPATIENT = httpx.Timeout(60, read=0.2)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDestination]:
    """One process for all tests here."""
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


def faulty(fault: str, key: str = "key-1") -> dict[str, str]:
    return {"Rehearsal-Fault": fault, **keyed(key)}


def last(destination: RunningDestination) -> JournalEntry:
    return destination.client.journal()[-1]


class TestNoEffect:
    """Faults that strike before anything was done."""

    @pytest.mark.parametrize(
        ("fault", "raised"),
        [
            ("drop_before", httpx.ReadError),
            ("drop_before;close=rst", httpx.ReadError),
            ("drop_before;close=fin", httpx.RemoteProtocolError),
            ("never_apply;seconds=0.05", httpx.RemoteProtocolError),
            ("never_apply;seconds=0.05;close=rst", httpx.ReadError),
        ],
    )
    def test_the_connection_is_closed(
        self,
        destination: RunningDestination,
        http: httpx.Client,
        fault: str,
        raised: type[Exception],
    ) -> None:
        with pytest.raises(raised):
            http.post(REFUNDS, json=refund(), headers=faulty(fault))
        entry = last(destination)
        assert (entry.done, entry.answered, entry.status) == ("nothing", "none", None)
        assert entry.fault is not None
        assert entry.fault.startswith(fault.partition(";")[0])
        assert entry.operation == "op-1"
        assert destination.client.effects() == []
        # The key was not used.
        assert http.post(REFUNDS, json=refund(), headers=keyed()).status_code == 201

    def test_never_apply_takes_its_time(self, http: httpx.Client) -> None:
        started = time.monotonic()
        with pytest.raises(httpx.RemoteProtocolError):
            http.post(COMMENTS, json={"body": "x"}, headers=faulty("never_apply;seconds=0.3"))
        assert time.monotonic() - started >= 0.3

    @pytest.mark.parametrize(
        ("parameters", "status", "told"),
        [
            ("", 500, {"type": "api_error"}),
            (";status=401", 401, {"type": "authentication_error"}),
            (";status=409;code=busy", 409, {"type": "conflict_error", "code": "busy"}),
            (";status=422", 422, {"type": "invalid_request_error"}),
            (";status=429;retry_after=3", 429, {"type": "rate_limit_error"}),
            (";status=402;type=card_error;code=no", 402, {"type": "card_error", "code": "no"}),
        ],
    )
    def test_an_error_before_is_typed_and_not_kept(
        self,
        destination: RunningDestination,
        http: httpx.Client,
        parameters: str,
        status: int,
        told: dict[str, str],
    ) -> None:
        answer = http.post(REFUNDS, json=refund(), headers=faulty("error_before" + parameters))
        message = "as rehearsed, before any effect"
        assert (answer.status_code, error(answer)) == (status, {**told, "message": message})
        assert answer.headers.get("Retry-After") == ("3" if status == 429 else None)
        assert destination.client.effects() == []
        again = http.post(REFUNDS, json=refund(), headers=keyed())
        assert again.status_code == 201
        assert "Idempotent-Replayed" not in again.headers

    def test_a_redirect_leads_elsewhere_and_following_it_shows(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        answer = http.post(REFUNDS, json=refund(), headers=faulty("redirect"))
        assert (answer.status_code, answer.headers["Location"]) == (302, f"/elsewhere{REFUNDS}")
        followed = http.post(
            REFUNDS, json=refund(), headers=faulty("redirect;status=307"), follow_redirects=True
        )
        assert followed.status_code == 404
        paths = [entry.path for entry in destination.client.journal()]
        assert paths == [REFUNDS, REFUNDS, f"/elsewhere{REFUNDS}"]
        assert destination.client.effects() == []

    def test_key_in_flight_answers_409_even_for_a_key_that_is_done(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        http.post(REFUNDS, json=refund(), headers=keyed())
        for key in ("key-1", "key-2"):
            answer = http.post(REFUNDS, json=refund(), headers=faulty("key_in_flight", key))
            assert (answer.status_code, error(answer)["code"]) == (409, "key_in_use")
        assert len(destination.client.effects()) == 1

    def test_a_proxy_that_never_reached_the_destination(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        answer = http.post(REFUNDS, json=refund(), headers=faulty("proxy_502;applied=false"))
        assert answer.status_code == 502
        assert destination.client.effects() == []


class TestEffectAndNoAnswer:
    """Faults that strike after the effect: it is there once, and the answer is not."""

    @pytest.mark.parametrize(
        ("fault", "raised"),
        [
            ("apply_then_drop", httpx.RemoteProtocolError),
            ("apply_then_drop;close=rst", httpx.ReadError),
            ("truncated_body", httpx.RemoteProtocolError),
        ],
    )
    def test_the_answer_is_lost_and_a_replay_brings_it(
        self,
        destination: RunningDestination,
        http: httpx.Client,
        fault: str,
        raised: type[Exception],
    ) -> None:
        with pytest.raises(raised):
            http.post(REFUNDS, json=refund(), headers=faulty(fault))
        (effect,) = destination.client.effects()
        entry = last(destination)
        assert (entry.done, entry.effect) == ("effect", effect.id)
        assert entry.answered == ("truncated" if fault == "truncated_body" else "none")
        again = http.post(REFUNDS, json=refund(), headers=keyed())
        assert again.json()["id"] == effect.resource_id
        assert again.headers["Idempotent-Replayed"] == "true"
        assert len(destination.client.effects()) == 1

    def test_a_truncated_body_announces_its_whole_length(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        blocks: list[bytes] = []

        def read(answer: httpx.Response) -> None:
            for block in answer.iter_raw():
                blocks.append(block)  # noqa: PERF402 - what came before the end is kept

        with http.stream(
            "POST", COMMENTS, json={"body": "x"}, headers=faulty("truncated_body")
        ) as answer:
            assert answer.status_code == 201
            with pytest.raises(httpx.RemoteProtocolError):
                read(answer)
        assert len(b"".join(blocks)) == int(answer.headers["Content-Length"]) // 2
        assert len(destination.client.effects()) == 1

    def test_a_proxy_answers_for_the_destination(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        answer = http.post(REFUNDS, json=refund(), headers=faulty("proxy_502"))
        assert answer.status_code == 502
        assert answer.headers["Content-Type"] == "text/html"
        assert "Request-Id" not in answer.headers
        (effect,) = destination.client.effects()
        again = http.post(REFUNDS, json=refund(), headers=keyed())
        assert (again.status_code, again.json()["id"]) == (201, effect.resource_id)

    def test_an_error_after_is_the_answer_that_is_kept(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        answer = http.post(REFUNDS, json=refund(), headers=faulty("error_after;status=503"))
        assert (answer.status_code, error(answer)["type"]) == (503, "api_error")
        again = http.post(REFUNDS, json=refund(), headers=keyed())
        assert (again.status_code, again.content) == (503, answer.content)
        assert again.headers["Idempotent-Replayed"] == "true"
        (effect,) = destination.client.effects()
        found = http.get(REFUNDS, params={"operation": "op-1"}).json()["data"]
        assert [record["id"] for record in found] == [effect.resource_id]

    def test_an_error_after_that_is_not_kept(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        http.post(REFUNDS, json=refund(), headers=faulty("error_after;stored=false"))
        (effect,) = destination.client.effects()
        again = http.post(REFUNDS, json=refund(), headers=keyed())
        assert (again.status_code, again.json()["id"]) == (201, effect.resource_id)

    def test_the_answer_comes_too_late(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        late = faulty("apply_then_delay;seconds=600")
        with pytest.raises(httpx.ReadTimeout):
            http.post(REFUNDS, json=refund(), headers=late, timeout=IMPATIENT)
        (effect,) = eventually(destination.client.effects)
        # The first answer is still on its way: the key itself is done.
        again = http.post(REFUNDS, json=refund(), headers=keyed())
        assert again.json()["id"] == effect.resource_id

    def test_a_slow_write_is_applied_after_its_client_has_gone(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        with pytest.raises(httpx.ReadTimeout):
            http.post(
                MACHINES, json=machine(), headers=faulty("slow;seconds=600"), timeout=IMPATIENT
            )
        assert http.get(MACHINES, params={"operation": "op-1"}).json()["data"] == []

        def released() -> list[Effect]:
            # Again and again: the request may arrive after the first.
            destination.client.release()
            return destination.client.effects()

        (effect,) = eventually(released)
        found = http.get(MACHINES, params={"operation": "op-1"}).json()["data"]
        assert [record["id"] for record in found] == [effect.resource_id]


class TestWrongEffect:
    """Faults after which the destination has something else than was asked for."""

    def test_a_pruned_key_executes_again(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        first = http.post(REFUNDS, json=refund(), headers=keyed()).json()
        second = http.post(REFUNDS, json=refund(), headers=faulty("key_pruned"))
        assert (second.status_code, "Idempotent-Replayed" in second.headers) == (201, False)
        third = http.post(REFUNDS, json=refund(), headers=keyed())
        assert third.content == second.content
        assert first["id"] != second.json()["id"]
        assert len(destination.client.effects()) == 2

    def test_an_ignored_key_applies_twice_and_keeps_the_first_answer(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        made = [
            http.post(REFUNDS, json=refund(), headers=faulty("apply_twice")).json()["id"]
            for _ in range(2)
        ]
        assert len(set(made)) == 2
        again = http.post(REFUNDS, json=refund(), headers=keyed())
        assert (again.json()["id"], again.headers["Idempotent-Replayed"]) == (made[0], "true")
        assert len(destination.client.effects(operation="op-1")) == 2

    @pytest.mark.parametrize("status", ["failed", "pending"])
    def test_a_postcondition_is_not_met(
        self, destination: RunningDestination, http: httpx.Client, status: str
    ) -> None:
        fault = faulty(f"postcondition;status={status}")
        made = http.post(MACHINES, json=machine(), headers=fault).json()
        assert made["status"] == status
        assert http.get(f"{MACHINES}/{made['id']}").json()["status"] == status
        (effect,) = destination.client.effects()
        assert effect.resource["status"] == status

    def test_a_postcondition_is_met_after_a_while(self, http: httpx.Client) -> None:
        fault = faulty("postcondition;status=pending;seconds=0.3")
        made = http.post(MACHINES, json=machine(), headers=fault).json()
        assert made["status"] == "pending"
        eventually(lambda: http.get(f"{MACHINES}/{made['id']}").json()["status"] == "running")

    @pytest.mark.parametrize(
        ("path", "body", "field", "told"),
        [
            (REFUNDS, refund(), "", {"amount": 501}),
            (REFUNDS, refund(), ";field=order", {"order": "A1-other"}),
            (REFUNDS, refund(), ";field=account", {"account": "acct_1-other"}),
            (MACHINES, machine(), "", {"name": "worker-1-other"}),
            (COMMENTS, {"body": "x"}, "", {"ticket": "17-other"}),
        ],
    )
    def test_a_receipt_tells_of_another(
        self, server: RunningDestination, path: str, body: object, field: str, told: Any
    ) -> None:
        server.client.reset()
        with server.as_account() as http:
            answer = http.post(path, json=body, headers=faulty("mismatched_receipt" + field))
        (effect,) = server.client.effects()
        assert answer.status_code == 201
        assert answer.json() == {**effect.resource, **told} != effect.resource

    def test_a_receipt_tells_of_another_operation(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        fault = faulty("mismatched_receipt;field=operation")
        answer = http.post(REFUNDS, json=refund(), headers=fault)
        assert answer.json()["metadata"]["operation"] != "op-1"
        (effect,) = destination.client.effects(operation="op-1")
        assert effect.marker == "op-1"

    def test_a_receipt_cannot_be_wrong_about_what_is_not_in_it(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        fault = faulty("mismatched_receipt;field=colour")
        answer = http.post(REFUNDS, json=refund(), headers=fault)
        assert (answer.status_code, error(answer)["param"]) == (400, "field")
        assert destination.client.effects() == []


class TestLookUps:
    """Faults of the reads."""

    def test_unavailable(self, http: httpx.Client) -> None:
        http.post(MACHINES, json=machine())
        fault = {"Rehearsal-Fault": "lookup_unavailable;retry_after=2"}
        for path in (MACHINES, f"{MACHINES}/m_1", REFUNDS):
            answer = http.get(path, headers=fault)
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
            assert error(answer)["type"] == "api_error"

    def test_lagging(self, http: httpx.Client) -> None:
        made = http.post(MACHINES, json=machine()).json()
        found = [
            http.get(MACHINES, headers={"Rehearsal-Fault": fault}).json()["data"]
            for fault in ("lookup_lag", "lookup_lag;seconds=0")
        ]
        assert found == [[], [made]]

    @pytest.mark.parametrize(
        ("fault", "member", "told"),
        [
            ("lookup_wrong_scope", "account", "acct_elsewhere"),
            ("lookup_wrong_scope;scope=zone", "zone", "elsewhere-1a"),
        ],
    )
    def test_another_scope(
        self,
        http: httpx.Client,
        fault: str,
        member: str,
        told: str,
    ) -> None:
        asked = {"operation": "op-1"}
        headers = {"Rehearsal-Fault": fault}
        (stranger,) = http.get(MACHINES, params=asked, headers=headers).json()["data"]
        assert stranger["metadata"] == {"operation": "op-1"}
        assert stranger[member] == told
        made = http.post(MACHINES, json=machine()).json()
        (record,) = http.get(MACHINES, params=asked, headers=headers).json()["data"]
        assert record == {**made, member: told}
        assert http.get(f"{MACHINES}/{made['id']}", headers=headers).json() == record

    def test_a_filter_that_is_ignored(self, http: httpx.Client) -> None:
        made = http.post(MACHINES, json=machine("op-of-another")).json()
        fault = {"Rehearsal-Fault": "lookup_ignores_filter"}
        found = http.get(MACHINES, params={"operation": "op-1"}, headers=fault).json()["data"]
        assert found == [made]

    def test_the_answer_to_a_look_up_is_lost_when_its_method_is_named(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        destination.client.arm("apply_then_drop", operation="op-1", method="GET")
        assert http.post(MACHINES, json=machine()).status_code == 201
        with pytest.raises(httpx.RemoteProtocolError):
            http.get(MACHINES, params={"operation": "op-1"})
        assert last(destination).done == "read"
