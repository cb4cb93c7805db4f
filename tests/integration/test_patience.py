"""A delivery waits for locks for some seconds alone; whoever uses its session next does not."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from django.db import OperationalError, connection, transaction
from django.test import Client

from tests.delivering import deliver, paid, source
from workflows.core.events import Incoming
from workflows.models import Event, EventSource
from workflows.services.inbox import receive
from workflows.services.patience import patience


def limit() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        found: str = cursor.fetchone()[0]
    return found


def incoming(made: EventSource, event_id: str) -> Incoming:
    return Incoming(made.pk, made.tenant_id, event_id, "order.paid", "ORD-1", b"{}")


def test_the_limit_ends_with_the_delivery(committed_db: str) -> None:
    source()
    client = Client()
    assert deliver(client, paid()).status_code == HTTPStatus.ACCEPTED
    unsigned = deliver(client, paid(), {"content-type": "application/json"})
    assert unsigned.status_code == HTTPStatus.UNAUTHORIZED
    assert limit() == "0"


def test_the_limit_holds_within_the_transaction_and_no_longer(committed_db: str) -> None:
    made = source()
    with transaction.atomic():
        receive(incoming(made, "e-1"), patience=0.25)
        assert limit() == "250ms"
    assert limit() == "0"
    receive(incoming(made, "e-2"))
    assert Event.objects.count() == 2


def test_the_limit_ends_also_where_something_failed(committed_db: str) -> None:
    with pytest.raises(OperationalError), patience(0.5):  # noqa: PT012 (what it held then counts)
        assert limit() == "500ms"
        raise OperationalError
    assert limit() == "0"
