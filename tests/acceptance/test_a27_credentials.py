"""Case A27: credentials end up in logs and stored evidence.

A provider that answers 401 and echoes what it was sent, a database error with the connection string
in it, and debug logging on: then every table, log, page and message is searched, for the whole
marker and for a part of it. `tests/integration/test_secrets.py` has the other answers;
`tests/contract` asks every adapter the same. Left for their issues: the secret of a webhook, the
export.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from reconciliation.models import Operation, Provider
from reconciliation.sealing import seal
from tests.acceptance.payfake import all_over, console, explained, order_run, payfake
from tests.contract.far_side import FarSide, Said, Seen, far_side
from tests.contract.lanes import js
from tests.destination import RunningDestination
from tests.factories import administrator
from tests.integration.test_secrets import found_in_database
from tests.workers import Crew
from workflows.models import Run

pytestmark = pytest.mark.processes

KEY = "sk_live_MARKER_of_the_provider_51Nw0tAr3al"
PART = KEY[:20]


@pytest.fixture
def echoing() -> Iterator[FarSide]:
    """A provider that refuses, and repeats every header, the address and the body it was sent."""

    def echo(seen: Seen) -> Said:
        sent = json.dumps(seen.headers) + seen.path + seen.body.decode()
        error = {"type": "authentication_error", "code": seen.headers["authorization"]}
        body = {"error": error | {"message": sent}, "id": KEY, "order": KEY, "amount": KEY}
        headers = {"Request-Id": KEY, "WWW-Authenticate": sent[:200], "Retry-After": KEY}
        return js(body, 401, **headers)

    with far_side() as side:
        side.answers = echo
        yield side


def aim(provider: Provider, url: str) -> None:
    Provider.objects.filter(pk=provider.pk).update(
        base_url=url, adapter="http", credential_sealed=seal(KEY.encode())
    )


def messages_of_the_broker() -> str:
    """Every message that lies in a queue, or has lain there."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname = 'pgmq' "
            "AND (tablename LIKE 'q_%%' OR tablename LIKE 'a_%%')"
        )
        tables = cursor.fetchall()
        texts = []
        for schema, table in tables:
            cursor.execute(f'SELECT message::text FROM "{schema}"."{table}"')  # noqa: S608
            texts += [row[0] for row in cursor.fetchall()]
    assert tables
    return "".join(texts)


def pages(run: Run) -> dict[str, tuple[Client, str]]:
    """Every page that tells of the run, its operation or its provider."""
    operation = Operation.objects.get(run=run)
    admin, reviewer = console(administrator("admin_1").get_username()), console()
    change = "admin:reconciliation_{}_change"
    transmission = operation.transmissions.get()
    return {
        "run": (reviewer, reverse("run", args=[run.pk])),
        "operation": (reviewer, reverse("operation", args=[operation.pk])),
        "provider": (reviewer, reverse("provider", args=[operation.provider.slug])),
        "review": (reviewer, reverse("review")),
        "setup": (admin, reverse(change.format("provider"), args=[operation.provider.pk])),
        "sent": (admin, reverse(change.format("transmission"), args=[transmission.pk])),
        "ledger": (admin, reverse(change.format("operation"), args=[operation.pk])),
        "audit": (admin, reverse("admin:reconciliation_auditentry_changelist")),
    }


def test_a27_a_credential_that_is_echoed_is_nowhere(
    workers: Crew, destination: RunningDestination, echoing: FarSide, tmp_path: Path
) -> None:
    aim(payfake(destination, timeout_seconds=5), echoing.url)
    workers.environment["ROMULUS_LOG_LEVEL"] = "DEBUG"
    workers.log_level = "DEBUG"
    workers.start(threads=2)
    run = order_run(tmp_path, "ORD-7027")
    all_over(run)
    assert run.state == "failed"  # refused for good
    assert KEY in echoing.seen[0].headers["authorization"]
    assert len(echoing.seen) == 1

    assert found_in_database(PART) == set()
    assert PART not in messages_of_the_broker()
    logs = "".join(file.read_text() for file in tmp_path.glob("**/*.log"))
    assert "transmission.ended" in logs
    assert PART not in logs
    for name, (client, url) in pages(run).items():
        answer = client.get(url)
        assert answer.status_code == HTTPStatus.OK, name
        assert PART not in answer.content.decode(), name
    assert PART not in json.dumps(explained(run), default=str)
