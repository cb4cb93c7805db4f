"""Which requests of the rehearsal destination meet a fault, and what cannot be asked for."""

from __future__ import annotations

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
    keyed,
    machine,
    refund,
    running_destination,
)

EVERY_FAULT = {
    "drop_before",
    "never_apply",
    "error_before",
    "redirect",
    "lookup_unavailable",
    "slow",
    "key_in_flight",
    "key_pruned",
    "apply_twice",
    "postcondition",
    "mismatched_receipt",
    "apply_then_drop",
    "apply_then_delay",
    "error_after",
    "truncated_body",
    "proxy_502",
    "lookup_lag",
    "lookup_wrong_scope",
    "lookup_ignores_filter",
}


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


class TestArming:
    """Faults for requests to come."""

    def test_they_are_used_in_the_order_of_arming(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        destination.client.arm("error_before", status=503, times=2)
        destination.client.arm("error_before", status=418)
        statuses = [http.post(COMMENTS, json={"body": "x"}).status_code for _ in range(4)]
        assert statuses == [503, 503, 418, 201]
        assert [armed.applied for armed in destination.client.armed()] == [2, 1]

    def test_until_cleared(self, destination: RunningDestination, http: httpx.Client) -> None:
        destination.client.arm("error_before", times=None)
        for _ in range(3):
            assert http.post(COMMENTS, json={"body": "x"}).status_code == 500
        (armed,) = destination.client.armed()
        assert (armed.times, armed.applied) == (None, 3)
        assert destination.client.disarm() == 1
        assert http.post(COMMENTS, json={"body": "x"}).status_code == 201

    @pytest.mark.parametrize(
        "match",
        [
            {"personality": "keyed"},
            {"operation": "op-1"},
            {"path": REFUNDS},
            {"path": "/keyed/*"},
            {"method": "POST"},
            {"account": "acct_1"},
            {"order": "A1"},
            {"body": {"amount": 500, "metadata.operation": "op-1"}},
            {},
        ],
    )
    def test_what_matches_meets_the_fault(
        self, destination: RunningDestination, http: httpx.Client, match: dict[str, Any]
    ) -> None:
        destination.client.arm("error_before", status=418, **match)
        # A read is not what a fault is meant for that does not say so.
        assert http.get(REFUNDS, params={"operation": "op-1"}).status_code == 200
        assert http.post(REFUNDS, json=refund(), headers=keyed()).status_code == 418

    @pytest.mark.parametrize(
        "match",
        [
            {"personality": "lookup"},
            {"operation": "op-2"},
            {"path": "/keyed/v1"},
            {"method": "GET"},
            {"account": "acct_2"},
            {"order": "A2"},
            {"body": {"amount": True}},
            {"body": {"metadata.customer": "c1"}},
        ],
    )
    def test_what_does_not_match_does_not(
        self, destination: RunningDestination, http: httpx.Client, match: dict[str, Any]
    ) -> None:
        destination.client.arm("error_before", status=418, **match)
        assert http.post(REFUNDS, json=refund(), headers=keyed()).status_code == 201
        assert destination.client.armed()[0].applied == 0

    def test_an_operation_is_matched_by_header_too(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        destination.client.arm("error_before", operation="op-9")
        headers = {"Romulus-Operation": "op-9"}
        assert http.post(COMMENTS, json={"body": "x"}, headers=headers).status_code == 500

    def test_a_header_goes_before_what_is_armed(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        destination.client.arm("error_before", status=418)
        headers = faulty("error_before;status=503")
        assert http.post(COMMENTS, json={"body": "x"}, headers=headers).status_code == 503
        assert http.post(COMMENTS, json={"body": "x"}).status_code == 418

    def test_parallel_requests_use_a_fault_once(self, destination: RunningDestination) -> None:
        destination.client.arm("error_before", times=3)

        def send(_: int) -> int:
            with destination.as_account() as client:
                return client.post(COMMENTS, json={"body": "x"}).status_code

        with ThreadPoolExecutor(12) as pool:
            statuses = list(pool.map(send, range(12)))
        assert statuses.count(500) == 3
        assert len(destination.client.effects()) == 9

    def test_faults_of_two_stages_combine(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        destination.client.arm("postcondition;status=failed, apply_then_drop")
        with pytest.raises(httpx.RemoteProtocolError):
            http.post(MACHINES, json=machine())
        (found,) = http.get(MACHINES, params={"operation": "op-1"}).json()["data"]
        assert found["status"] == "failed"

    @pytest.mark.parametrize(
        ("asked", "param", "message"),
        [
            ({"fault": "explode"}, "fault", "there is no fault 'explode'"),
            ({}, "fault", "fault must be text"),
            ({"fault": "slow", "second": 1}, "second", "slow has no parameter 'second'"),
            ({"fault": "slow", "seconds": -1}, "seconds", "seconds of slow must be seconds"),
            ({"fault": "slow", "seconds": "nan"}, "seconds", "seconds of slow must be seconds"),
            ({"fault": "slow;seconds=601"}, "seconds", "seconds of slow must be seconds"),
            ({"fault": "error_before", "status": 200}, "status", "an HTTP status, 400 to 599"),
            ({"fault": "drop_before", "close": "ack"}, "close", "must be fin or rst"),
            ({"fault": "proxy_502", "applied": "maybe"}, "applied", "must be true or false"),
            ({"fault": "error_after", "code": "a\r\nb"}, "code", "code of error_after"),
            ({"fault": "slow", "times": 0}, "times", "times must be a whole number"),
            ({"fault": "slow", "times": True}, "times", "times must be a whole number"),
            ({"fault": "slow", "personality": "odd"}, "personality", "no personality 'odd'"),
            ({"fault": "slow", "method": "PUT"}, "method", "no fault happens to 'PUT'"),
            ({"fault": "slow", "body": "order"}, "body", "body must be an object"),
            ({"fault": "lookup_lag", "method": "POST"}, "fault", "lookup_lag happens to reads"),
            ({"fault": "apply_twice", "personality": "blind"}, "fault", "does not happen to"),
            ({"fault": "lookup_lag", "personality": "blind"}, "fault", "does not happen to"),
            ({"fault": "redirect, drop_before"}, "fault", "two faults of one stage"),
            ({"fault": "slow, drop_before", "seconds": 1}, "seconds", "belong to one fault"),
        ],
    )
    def test_what_cannot_be_is_refused(
        self,
        destination: RunningDestination,
        http: httpx.Client,
        asked: dict[str, Any],
        param: str,
        message: str,
    ) -> None:
        answer = http.post("/_admin/faults", json=asked)
        assert (answer.status_code, error(answer)["param"]) == (400, param)
        assert message in error(answer)["message"]
        assert destination.client.armed() == []

    @pytest.mark.parametrize(
        ("fault", "known"),
        [("explode", "drop_before"), ("", "drop_before"), ("slow;speed=3", "seconds")],
    )
    def test_a_header_that_cannot_be_is_refused_and_told_what_can(
        self, destination: RunningDestination, http: httpx.Client, fault: str, known: str
    ) -> None:
        answer = http.post(REFUNDS, json=refund(), headers=faulty(fault))
        assert answer.status_code == 400
        assert known in error(answer)["known"]
        assert destination.client.effects() == []
        assert len(destination.client.journal()) == 1

    def test_the_typed_client_passes_the_refusal_on(self, destination: RunningDestination) -> None:
        with pytest.raises(DestinationRefused) as refused:
            destination.client.arm("explode")
        assert set(refused.value.error["known"]) == EVERY_FAULT

    def test_the_list_explains_every_fault(self, http: httpx.Client) -> None:
        known = http.get("/_admin/faults").json()["known"]
        assert set(known) == EVERY_FAULT
        assert known["apply_then_drop"]["parameters"] == {"close": "fin or rst (else fin)"}
        assert all(fault["meaning"] for fault in known.values())
