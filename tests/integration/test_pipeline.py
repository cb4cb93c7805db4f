"""Several hot statements in one round trip: their order, their errors, and what is left after."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import DatabaseError, OperationalError, connection, transaction
from pytest_django import Settings

from tests.events import delivered, incoming
from workflows.core.events import Outcome
from workflows.core.waits import lock_keys
from workflows.models import Event
from workflows.services.inbox import receive
from workflows.sql import fetch_together

pytestmark = pytest.mark.usefixtures("committed_db")

LOOKED_FOR = {"tenant": uuid4(), "type": "a", "correlation": "b", "received_at": None}


def lock_and_look() -> list[list[dict[str, Any]]]:
    return fetch_together(
        ("lock_matching", {"keys": lock_keys(uuid4(), ["a"], "b")}), ("open_waits", LOOKED_FOR)
    )


@pytest.mark.parametrize("prepare", [True, False])
def test_it_begins_the_transaction_and_rolls_back_with_it(
    prepare: bool, settings: Settings
) -> None:
    settings.ROMULUS_PREPARE = prepare
    with transaction.atomic():
        locks, waits = lock_and_look()
        assert (len(locks), waits) == (1, [])
        delivered(event_id="evt_1")
        transaction.set_rollback(True)
    assert not Event.objects.exists()
    assert delivered(event_id="evt_1").outcome is Outcome.STORED


def test_an_error_of_one_is_raised_and_the_connection_stays_of_use() -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        fetch_together(
            ("lock_matching", {"keys": [2**64]}),  # more than a key can be
            ("open_waits", LOOKED_FOR),
        )
    assert delivered().outcome is Outcome.STORED


def test_statements_that_a_pooler_has_dropped_are_prepared_again() -> None:
    delivered(event_id="evt_1")
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")
    # Inside a transaction nothing can be tried again: its sender does that.
    for _ in range(2):
        with pytest.raises(DatabaseError):
            delivered(event_id="evt_2")
    assert delivered(event_id="evt_2").outcome is Outcome.STORED


def test_a_connection_that_is_cut_is_an_outage() -> None:
    delivered()
    with psycopg.connect(connection.connection.info.dsn, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
    with pytest.raises(OperationalError):
        receive(incoming())
    connection.close()
    assert delivered().outcome is Outcome.STORED
