"""The rehearsal destination as a client meets it: its three personalities, and their refusals."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.destination import (
    COMMENTS,
    CREDITS,
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


class TestKeyed:
    """Honours an idempotency key."""

    def test_a_refund_is_made_and_found(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        answer = http.post(REFUNDS, json=refund(reason="broken"), headers=keyed())
        made = answer.json()
        assert answer.status_code == 201
        assert answer.headers["Request-Id"].startswith("req_")
        assert made["id"].startswith("re_")
        assert made == {
            "id": made["id"],
            "object": "refund",
            "status": "succeeded",
            "amount": 500,
            "currency": "eur",
            "order": "A1",
            "metadata": {"operation": "op-1"},
            "reason": "broken",
            "account": "acct_1",
            "created_at": made["created_at"],
        }
        assert http.get(f"{REFUNDS}/{made['id']}").json() == made
        assert http.get(REFUNDS, params={"operation": "op-1"}).json()["data"] == [made]
        assert http.get(REFUNDS, params={"operation": "op-2"}).json()["data"] == []
        (effect,) = destination.client.effects()
        assert (effect.resource_id, effect.kind, effect.resource) == (made["id"], "refund", made)

    def test_the_same_request_gets_the_stored_answer(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        first = http.post(REFUNDS, json=refund(), headers=keyed())
        reordered = json.dumps(dict(reversed(refund().items())), indent=1)
        for body in (json.dumps(refund()), reordered):
            again = http.post(REFUNDS, content=body, headers=keyed())
            assert (again.status_code, again.content) == (201, first.content)
            assert again.headers["Idempotent-Replayed"] == "true"
            assert again.headers["Original-Request"] == first.headers["Request-Id"]
            assert again.headers["Request-Id"] != first.headers["Request-Id"]
        assert "Idempotent-Replayed" not in first.headers
        assert [entry.done for entry in destination.client.journal()] == [
            "effect",
            "replay",
            "replay",
        ]
        assert len(destination.client.effects()) == 1

    @pytest.mark.parametrize(("path", "body"), [(REFUNDS, refund(amount=501)), (CREDITS, refund())])
    def test_the_key_of_another_request_is_refused(
        self, destination: RunningDestination, http: httpx.Client, path: str, body: dict[str, Any]
    ) -> None:
        http.post(REFUNDS, json=refund(), headers=keyed())
        answer = http.post(path, json=body, headers=keyed())
        assert answer.status_code == 400
        assert error(answer)["type"] == "idempotency_error"
        assert error(answer)["code"] == "key_reused"
        assert len(destination.client.effects()) == 1

    def test_keys_and_records_belong_to_an_account(self, destination: RunningDestination) -> None:
        with destination.as_account("acct_a") as a, destination.as_account("acct_b") as b:
            made = a.post(REFUNDS, json=refund(), headers=keyed()).json()
            other = b.post(REFUNDS, json=refund(), headers=keyed()).json()
            assert made["id"] != other["id"]
            assert b.get(f"{REFUNDS}/{made['id']}").status_code == 404
            assert b.get(REFUNDS, params={"operation": "op-1"}).json()["data"] == [other]
        assert len(destination.client.effects(account="acct_a")) == 1

    def test_a_key_is_needed_and_bounded(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        codes = []
        for key in ("", "k" * 256, "k" * 255):
            answer = http.post(REFUNDS, json=refund(), headers=keyed(key))
            codes.append(answer.json().get("error", {}).get("code"))
        assert codes == ["missing_key", "key_too_long", None]
        assert error(http.post(REFUNDS, json=refund()))["code"] == "missing_key"
        assert len(destination.client.effects()) == 1

    def test_an_old_key_is_forgotten_and_executes_again(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        assert destination.client.settings()["keyed"]["retention_seconds"] == 86_400
        first = http.post(REFUNDS, json=refund(), headers=keyed()).json()
        destination.client.settings("keyed", retention_seconds=0)
        second = http.post(REFUNDS, json=refund(), headers=keyed())
        assert second.status_code == 201
        assert second.json()["id"] != first["id"]
        assert "Idempotent-Replayed" not in second.headers
        assert len(destination.client.effects(operation="op-1")) == 2

    def test_a_key_still_executing_is_refused(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        slow = {**keyed(), "Rehearsal-Fault": "slow;seconds=1", "Romulus-Attempt": "slow"}
        with ThreadPoolExecutor() as pool, destination.as_account() as other:
            first = pool.submit(http.post, REFUNDS, json=refund(), headers=slow)
            eventually(destination.client.journal)
            second = other.post(REFUNDS, json=refund(), headers=keyed())
            assert second.status_code == 409
            assert error(second)["code"] == "key_in_use"
            assert error(second)["type"] == "idempotency_error"
            assert destination.client.effects() == []
            assert first.result().status_code == 201
            third = other.post(REFUNDS, json=refund(), headers=keyed())
        assert third.content == first.result().content
        assert len(destination.client.effects()) == 1

    def test_parallel_requests_under_one_key_make_one_effect(
        self, destination: RunningDestination
    ) -> None:
        together = threading.Barrier(16)

        def send(number: int) -> httpx.Response:
            with destination.as_account() as client:
                client.get(REFUNDS)
                together.wait(60)
                return client.post(
                    REFUNDS, json=refund(), headers={**keyed(), "Romulus-Attempt": str(number)}
                )

        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(send, range(16)))
        (effect,) = destination.client.effects()
        assert {answer.status_code for answer in answers} <= {201, 409}
        made = {answer.json()["id"] for answer in answers if answer.status_code == 201}
        assert made == {effect.resource_id}


class TestLookup:
    """No key; found by its marker."""

    def test_asked_twice_it_makes_two_and_both_are_found(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        made = [http.post(MACHINES, json=machine(), headers=keyed()).json() for _ in range(2)]
        assert made[0]["id"].startswith("m_")
        assert (made[0]["object"], made[0]["status"]) == ("machine", "running")
        assert http.get(MACHINES, params={"operation": "op-1"}).json() == {
            "object": "list",
            "data": made,
            "has_more": False,
        }
        assert http.get(f"{MACHINES}/{made[1]['id']}").json() == made[1]
        assert len(destination.client.effects(personality="lookup")) == 2

    def test_what_carries_no_marker_is_not_found_by_one(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        body = machine()
        del body["metadata"]
        http.post(MACHINES, json=body, headers={"Romulus-Operation": "op-1"})
        assert http.get(MACHINES, params={"operation": "op-1"}).json()["data"] == []
        (effect,) = destination.client.effects(operation="op-1")
        assert (effect.operation, effect.marker) == ("op-1", None)

    def test_look_up_lags_by_the_setting(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        destination.client.settings("lookup", visibility_lag_seconds=3600)
        made = http.post(MACHINES, json=machine()).json()
        assert http.get(MACHINES, params={"operation": "op-1"}).json()["data"] == []
        missing = http.get(f"{MACHINES}/{made['id']}")
        assert (missing.status_code, error(missing)["code"]) == (404, "resource_missing")
        destination.client.settings("lookup", visibility_lag_seconds=0)
        assert http.get(MACHINES, params={"operation": "op-1"}).json()["data"] == [made]

    def test_a_filter_that_does_not_exist_is_refused(self, http: httpx.Client) -> None:
        answer = http.get(MACHINES, params={"marker": "op-1"})
        assert (answer.status_code, error(answer)["param"]) == (400, "marker")

    def test_a_long_list_says_that_there_is_more(self, http: httpx.Client) -> None:
        for _ in range(101):
            http.post(MACHINES, json=machine())
        page = http.get(MACHINES).json()
        assert (len(page["data"]), page["has_more"]) == (100, True)


class TestBlind:
    """Neither key nor look-up."""

    def test_a_comment_is_made_and_cannot_be_read(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        headers = {"Romulus-Operation": "op-1", **keyed()}
        made = http.post(COMMENTS, json={"body": "Dönè", "public": True}, headers=headers).json()
        assert made["id"].startswith("c_")
        assert (made["object"], made["ticket"], made["body"]) == ("comment", "17", "Dönè")
        assert made["public"] is True
        http.post(COMMENTS, json={"body": "Dönè", "public": True}, headers=headers)
        assert http.get(COMMENTS).status_code == 404
        assert http.get(f"{COMMENTS}/{made['id']}").status_code == 404
        assert len(destination.client.effects(operation="op-1")) == 2


class TestRefusals:
    """What cannot be done is refused with a reason and has no effect."""

    @pytest.mark.parametrize(
        "authorization",
        [None, "", "Bearer", "Bearer sk_1", "Basic acct_1", "Bearer acct_", "Bearer acct_a b"],
    )
    def test_without_an_account(
        self, destination: RunningDestination, authorization: str | None
    ) -> None:
        headers = keyed() if authorization is None else {"Authorization": authorization, **keyed()}
        answer = httpx.post(
            destination.url + REFUNDS, json=refund(), headers=headers, trust_env=False
        )
        assert answer.status_code == 401
        assert error(answer)["type"] == "authentication_error"
        assert answer.headers["Request-Id"].startswith("req_")
        assert destination.client.effects() == []

    @pytest.mark.parametrize(
        ("path", "body", "param"),
        [
            (REFUNDS, refund(amount=0), "amount"),
            (REFUNDS, refund(amount=True), "amount"),
            (REFUNDS, refund(amount="500"), "amount"),
            (REFUNDS, refund(amount=5.5), "amount"),
            (REFUNDS, refund(amount=10**30), "amount"),
            (REFUNDS, refund(currency="euro"), "currency"),
            (REFUNDS, refund(order=""), "order"),
            (REFUNDS, {"currency": "eur", "order": "A1"}, "amount"),
            (REFUNDS, refund(metadata=[]), "metadata"),
            (REFUNDS, refund(metadata={"operation": 7}), "metadata.operation"),
            (REFUNDS, refund(status="succeeded"), "status"),
            (MACHINES, machine(zone=None), "zone"),
            (MACHINES, machine(name="x" * 65_537), "name"),
            (COMMENTS, {"text": "hello"}, "body"),
            (COMMENTS, {"body": "hello", "ticket": "18"}, "ticket"),
            (REFUNDS, [refund()], "body"),
        ],
    )
    def test_a_bad_parameter_is_named(
        self,
        destination: RunningDestination,
        http: httpx.Client,
        path: str,
        body: object,
        param: str,
    ) -> None:
        answer = http.post(path, json=body, headers=keyed())
        assert answer.status_code == 400
        assert error(answer)["type"] == "invalid_request_error"
        assert error(answer)["param"] == param
        assert destination.client.effects() == []
        # The key was not used up by the refusal.
        assert http.post(REFUNDS, json=refund(), headers=keyed()).status_code == 201

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"{",
            b'{"body": "\xff"}',
            b'{"body": NaN}',
            b'{"body": "\\ud800"}',
            b"[" * 200_000,
            b"9" * 10_000,
            b"\x00",
        ],
    )
    def test_a_body_that_is_not_json(
        self, destination: RunningDestination, http: httpx.Client, content: bytes
    ) -> None:
        answer = http.post(COMMENTS, content=content)
        assert (answer.status_code, error(answer)["param"]) == (400, "body")
        assert destination.client.effects() == []
        assert destination.client.journal()[0].body == content

    def test_a_body_beyond_the_bound(
        self, destination: RunningDestination, http: httpx.Client
    ) -> None:
        frame = len(json.dumps({"body": "x", "padding": ""}).encode())
        for extra, status in ((0, 201), (1, 413)):
            padding = "p" * (1024 * 1024 - frame + extra)
            content = json.dumps({"body": "x", "padding": padding}).encode()
            assert http.post(COMMENTS, content=content).status_code == status
        assert len(destination.client.effects()) == 1
        assert [entry.status for entry in destination.client.journal()] == [201, 413]

    @pytest.mark.parametrize(
        ("method", "path", "status", "allow"),
        [
            ("PUT", REFUNDS, 405, "GET, POST"),
            ("DELETE", f"{MACHINES}/m_1", 405, "GET"),
            ("POST", f"{REFUNDS}/re_1", 405, "GET"),
            ("PATCH", COMMENTS, 405, "POST"),
            ("HEAD", REFUNDS, 405, "GET, POST"),
            ("GET", "/keyed/v1/charges", 404, None),
            ("GET", "/keyed", 404, None),
            ("GET", "/", 404, None),
            ("GET", "/stripe/v1/refunds", 404, None),
        ],
    )
    def test_what_does_not_exist(
        self, http: httpx.Client, method: str, path: str, status: int, allow: str | None
    ) -> None:
        answer = http.request(method, path)
        assert (answer.status_code, answer.headers.get("Allow")) == (status, allow)
        assert answer.headers["Request-Id"].startswith("req_")
