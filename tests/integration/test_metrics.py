"""`/metrics`: who may read it, what it says, and what it costs."""

from __future__ import annotations

import re
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from reconciliation.models import Hold
from reconciliation.services.audit import check_chain
from romulus_site import metrics
from tests.destination import RunningDestination
from tests.factories import held_operation, many_held, many_runs, ready_provider
from workflows.models import Worker

pytestmark = pytest.mark.django_db

GROWS = re.compile(
    r"Seq Scan on (workflows_(run|attempt|event)|"
    r"reconciliation_(operation|transmission|evidence|hold|auditentry))\b"
)


def measured(client: Client) -> dict[str, float]:
    answer = client.get("/metrics")
    assert answer.status_code == HTTPStatus.OK
    lines = answer.content.decode().splitlines()
    samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in samples}


def test_it_tells_what_is_unsettled_held_and_sent(
    client: Client, destination: RunningDestination
) -> None:
    ready_provider("desk", destination.url)
    held_operation(destination)
    check_chain("system")
    found = measured(client)
    assert found['romulus_operations_unsettled{provider="desk",state="held"}'] == 1
    assert found['romulus_operations_unsettled_oldest_seconds{provider="desk",state="held"}'] > 0
    assert found['romulus_transmissions_recent{purpose="first",state="unknown"}'] == 1
    assert found["romulus_transmissions_per_operation"] == 1
    assert found['romulus_holds_open{queue="desk"}'] == 1
    assert found['romulus_holds_overdue{queue="desk"}'] == 0
    assert found['romulus_runs_unfinished{state="held"}'] == 1
    assert found['romulus_attempts_recent{state="committed"}'] > 0
    assert found['romulus_attempts_recent{state="lost"}'] == 0
    assert found["romulus_audit_chain_broken"] == 0
    assert "romulus_sweep_lag_seconds" not in found  # nobody sweeps


def test_it_tells_what_is_overdue_and_how_long_a_proof_took(
    client: Client, destination: RunningDestination
) -> None:
    ready_provider("machines", destination.url)
    held_operation(destination, "replacement_worker")  # found by look-up: it is settled
    Worker.objects.create(host="here", pid=1, workflows=[], swept_at=Now() - timedelta(seconds=30))
    found = measured(client)
    assert found['romulus_reconciliation_seconds{quantile="0.5"}'] > 0
    assert found['romulus_evidence_recent{kind="lookup"}'] >= 1
    assert found["romulus_workers_live"] == Worker.objects.count()
    assert 30 <= found["romulus_sweep_lag_seconds"] < 300
    many_held(1, ready_provider("payments"))
    Hold.objects.update(due_at=Now() - timedelta(minutes=1))
    assert measured(client)['romulus_holds_overdue{queue="payments"}'] == 1


def test_no_label_holds_an_id_a_person_or_what_was_sent(
    client: Client, destination: RunningDestination
) -> None:
    ready_provider("desk", destination.url)
    operation = held_operation(destination)
    text = client.get("/metrics").content.decode()
    for hidden in (operation.pk.hex, str(operation.pk), "T-17", "reviewer_1", "northwind"):
        assert hidden not in text
    assert set(re.findall(r"[{,](\w+)=", text)) <= {
        "provider",
        "state",
        "queue",
        "purpose",
        "kind",
        "quantile",
    }


def test_what_it_costs_does_not_grow_with_the_history(client: Client) -> None:
    provider = ready_provider("payments")
    with CaptureQueriesContext(connection) as few:
        measured(client)
    many_held(20, provider)
    many_runs(20, "completed")
    with CaptureQueriesContext(connection) as many:
        measured(client)
    assert len(many) == len(few)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        for query in many.captured_queries:
            if query["sql"].lstrip().startswith("SELECT"):
                cursor.execute(f"EXPLAIN {query['sql']}")
                plan = "\n".join(row[0] for row in cursor.fetchall())
                assert not GROWS.search(plan), f"{query['sql']}\n{plan}"


# --- who may read it --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({}, HTTPStatus.OK),
        ({"REMOTE_ADDR": "::1"}, HTTPStatus.OK),
        ({"REMOTE_ADDR": "10.0.0.7"}, HTTPStatus.NOT_FOUND),
        ({"REMOTE_ADDR": ""}, HTTPStatus.NOT_FOUND),
        # A proxy on this machine speaks for anybody.
        ({"HTTP_X_FORWARDED_FOR": "203.0.113.9"}, HTTPStatus.NOT_FOUND),
        ({"HTTP_FORWARDED": "for=203.0.113.9"}, HTTPStatus.NOT_FOUND),
    ],
)
def test_without_a_token_only_this_machine_reads_it(
    client: Client, asked: dict[str, Any], status: HTTPStatus
) -> None:
    assert client.get("/metrics", **asked).status_code == status
    assert client.post("/metrics", **asked).status_code == HTTPStatus.METHOD_NOT_ALLOWED


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        ("Bearer a token", HTTPStatus.OK),
        ("Bearer another", HTTPStatus.NOT_FOUND),
        ("a token", HTTPStatus.NOT_FOUND),
        ("", HTTPStatus.NOT_FOUND),
    ],
)
def test_with_a_token_only_who_has_it_reads_it(
    client: Client, settings: Settings, authorization: str, status: HTTPStatus
) -> None:
    settings.ROMULUS_METRICS_TOKEN = "a token"
    asked = {"Authorization": authorization} if authorization else {}
    assert client.get("/metrics", headers=asked).status_code == status


def test_a_database_that_does_not_answer_in_time_is_said(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_slow() -> str:
        raise DatabaseError("canceling statement due to statement timeout")

    monkeypatch.setattr(metrics, "measured", too_slow)
    assert client.get("/metrics").status_code == HTTPStatus.SERVICE_UNAVAILABLE
