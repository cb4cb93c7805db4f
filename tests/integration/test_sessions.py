"""Sessions of the database that are of no use any more, and those of another process."""

from __future__ import annotations

import os

import pytest
from django.db import OperationalError, close_old_connections, connection

from tests.factories import tenant
from workflows.services.clock import database_now


def test_a_write_on_a_session_that_only_reads_is_an_outage_and_the_session_is_dropped(
    committed_db: str,
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    with pytest.raises(OperationalError, match="read-only"):
        tenant()
    assert database_now()  # it answers, so that no health check would find it
    close_old_connections()
    assert connection.connection is None
    assert tenant().pk


# The test's process has threads, of which the child has no need.
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_process_that_was_forked_leaves_its_parent_s_session_alone(committed_db: str) -> None:
    tenant()
    mine = connection.connection
    child = os.fork()
    if child == 0:
        os._exit(ended_as_worker())
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert connection.connection is mine
    assert tenant().pk


def ended_as_worker() -> int:
    """Close what this process has, as Celery does at the start of a worker; 0: it had nothing."""
    try:
        had = connection.connection
        connection.close()
    except Exception:  # noqa: BLE001 (whatever it is, the child must not go on with the tests)
        return 2
    return 0 if had is None else 1
