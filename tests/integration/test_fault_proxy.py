"""The fault proxy before the rehearsal destination: it forwards, breaks as told, and counts."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from reconciliation.rehearsal.breaks import Break, On, kind_of
from reconciliation.rehearsal.proxy import FaultProxy, fault_proxy
from tests.destination import (
    NO_CERTIFICATES,
    REFUNDS,
    RunningDestination,
    keyed,
    refund,
)


@pytest.fixture
def proxy(destination: RunningDestination) -> Iterator[FaultProxy]:
    with fault_proxy(destination.url) as made:
        yield made


def sent(proxy: FaultProxy, *, seconds: float = 5.0) -> httpx.Response:
    with client(proxy, seconds) as sender:
        return sender.post(REFUNDS, json=refund(), headers=keyed())


def client(proxy: FaultProxy, seconds: float = 5.0) -> httpx.Client:
    return httpx.Client(
        base_url=proxy.url,
        headers={"Authorization": "Bearer acct_1"},
        timeout=seconds,
        verify=NO_CERTIFICATES,
        trust_env=False,
    )


def effects(destination: RunningDestination) -> int:
    return len(destination.client.effects())


def test_what_nothing_breaks_passes_as_it_is(
    proxy: FaultProxy, destination: RunningDestination
) -> None:
    answer = sent(proxy)
    (effect,) = destination.client.effects()
    assert (answer.status_code, answer.json()["id"]) == (201, effect.resource_id)
    assert "Request-Id" in answer.headers
    with client(proxy) as asking:
        found = asking.get(REFUNDS, params={"operation": "op-1"}).json()["data"]
    assert [each["id"] for each in found] == [effect.resource_id]
    assert [(each.kind, each.broke) for each in proxy.passages] == [
        (On.WRITES, None),
        (On.READS, None),
    ]


@pytest.mark.parametrize(
    ("broken", "applied"),
    [(Break.DROP_BEFORE, 0), (Break.DROP_AFTER, 1), (Break.TRUNCATE, 1), (Break.LATE, 1)],
)
def test_an_answer_is_lost_before_or_after_it_was_applied(
    proxy: FaultProxy, destination: RunningDestination, broken: Break, applied: int
) -> None:
    proxy.arm(broken, seconds=30)
    with pytest.raises(httpx.TransportError):
        sent(proxy, seconds=1.0)
    assert effects(destination) == applied
    # Once only: the same key gets the answer that was lost, or makes the first effect.
    assert sent(proxy).status_code == 201
    assert (effects(destination), len(proxy.writes())) == (1, 2)


def test_a_proxys_page_takes_the_place_of_the_answer(
    proxy: FaultProxy, destination: RunningDestination
) -> None:
    proxy.arm(Break.BAD_GATEWAY)
    answer = sent(proxy)
    assert (answer.status_code, "Request-Id" in answer.headers) == (502, False)
    assert effects(destination) == 1


def test_the_network_delivers_twice(proxy: FaultProxy, destination: RunningDestination) -> None:
    proxy.arm(Break.DELIVER_TWICE)
    assert sent(proxy).headers["Idempotent-Replayed"] == "true"
    (passage,) = proxy.writes()
    assert len(passage.answers) == 2
    assert len({answer.body for answer in passage.answers}) == 1
    journal = destination.client.journal()
    assert (len(journal), effects(destination)) == (2, 1)


def test_the_second_of_two_answers_is_nobodys(
    proxy: FaultProxy, destination: RunningDestination
) -> None:
    proxy.arm(Break.ANSWER_TWICE)
    assert sent(proxy).status_code == 201
    assert effects(destination) == 1


def test_only_questions_are_broken_where_that_is_asked(
    proxy: FaultProxy, destination: RunningDestination
) -> None:
    proxy.arm(Break.UNAVAILABLE, on=On.READS, times=None)
    assert sent(proxy).status_code == 201
    with client(proxy) as asking:
        assert {asking.get(REFUNDS).status_code for _ in range(2)} == {503}
        proxy.forget()
        assert asking.get(REFUNDS).status_code == 200


def test_a_far_side_that_is_away_leaves_no_answer() -> None:
    with fault_proxy("http://127.0.0.1:9") as proxy, pytest.raises(httpx.TransportError):
        sent(proxy)


@pytest.mark.parametrize(
    ("method", "headers", "body", "kind"),
    [
        ("GET", {}, b"", On.READS),
        ("POST", {}, b"{}", On.WRITES),
        ("PUT", {}, b"{}", On.WRITES),
        ("POST", {"x-amz-target": "DynamoDB_20120810.PutItem"}, b"{}", On.WRITES),
        ("POST", {"x-amz-target": "DynamoDB_20120810.GetItem"}, b"{}", On.READS),
        (
            "POST",
            {"content-type": "application/x-www-form-urlencoded"},
            b"Action=DescribeInstances&Version=1",
            On.READS,
        ),
        (
            "POST",
            {"content-type": "application/x-www-form-urlencoded"},
            b"Action=RunInstances&Version=1",
            On.WRITES,
        ),
    ],
)
def test_questions_are_told_from_writes(
    method: str, headers: dict[str, str], body: bytes, kind: On
) -> None:
    assert kind_of(method, headers, body) is kind
