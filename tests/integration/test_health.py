"""What `/healthz` and `/readyz` say while something is away, and hints to a broker that is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from celery import current_app
from django.db import DatabaseError
from django.db.models.functions import Now
from django.test import Client
from kombu.exceptions import OperationalError as BrokerAway

from romulus_site import health
from workflows.models import Worker
from workflows.services import hints

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is remembered from an earlier test, nor after this one."""
    monkeypatch.setattr(health, "broker_answers", health.Lately(health.ask_broker))
    monkeypatch.setattr(hints, "_away_since", None)
    monkeypatch.setattr(hints, "_tried_at", 0.0)


def readiness(client: Client) -> tuple[int, str]:
    answer = client.get("/readyz")
    return answer.status_code, answer.content.decode()


def worker(*, broker_away: bool = False) -> Worker:
    since = Now() - timedelta(seconds=5) if broker_away else None
    return Worker.objects.create(host="here", pid=1, workflows=[], broker_away_since=since)


def test_it_is_ready_when_everything_answers(client: Client) -> None:
    worker()
    assert readiness(client) == (200, health.READY)


def test_without_workers_it_is_ready_and_says_that_runs_wait(client: Client) -> None:
    assert readiness(client) == (200, health.READY + health.NO_WORKER)


def test_it_is_not_ready_while_the_broker_does_not_answer(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELERY_BROKER_WRITE_URL", "redis://127.0.0.1:1/0")
    assert readiness(client) == (503, health.BROKER_AWAY)
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(("others", "status"), [(0, 503), (1, 200)])
def test_it_is_not_ready_while_no_worker_reaches_the_broker(
    client: Client, others: int, status: int
) -> None:
    worker(broker_away=True)
    for _ in range(others):
        worker()
    assert readiness(client)[0] == status


def test_a_broker_is_asked_once_for_all_who_ask_at_once() -> None:
    asked: list[int] = []
    lately = health.Lately(lambda: not asked.append(1))  # type: ignore[func-returns-value]
    assert [lately(), lately()] == [True, True]
    assert asked == [1]


# --- hints ------------------------------------------------------------------------------------


def failing(error: Exception, tried: list[int]) -> Callable[..., None]:
    def send_task(*_: object, **__: object) -> None:
        tried.append(1)
        raise error

    return send_task


@pytest.mark.parametrize(
    "error", [BrokerAway("away"), TimeoutError("silent"), DatabaseError("no such queue")], ids=repr
)
def test_a_hint_that_cannot_be_sent_is_nobody_s_error_and_is_not_tried_at_once_again(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    tried: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(current_app, "send_task", failing(error, tried))
        sent = [hints.send("workflows.tasks.advance", uuid4()) for _ in range(20)]
    assert (sent, tried) == ([False] * 20, [1])
    assert hints.broker_away() is not None

    monkeypatch.setattr(hints, "_tried_at", float("-inf"))
    assert hints.send("workflows.tasks.advance", uuid4())
    assert hints.broker_away() is None
