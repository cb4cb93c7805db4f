"""Sessions of the database that are kept, that are of no use any more, and of another process."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest
from celery import current_app
from django.db import OperationalError, close_old_connections, connection, connections

from romulus_site.celery_fixup import Fixup
from tests.databases import administration
from tests.factories import tenant
from tests.statements import statements
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


def idle_limit() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        (found,) = cursor.fetchone()
    return str(found)


def test_a_migration_may_think_for_as_long_as_it_likes(committed_db: str) -> None:
    usual = idle_limit()
    with connection.schema_editor():
        assert idle_limit() == "0"
    assert idle_limit() == usual != "0"


def begin_task() -> None:
    """What a worker's thread does before each task, and after."""
    app: Any = current_app
    (fixup,) = (each for each in app._fixups if isinstance(each, Fixup))
    task = SimpleNamespace(request=SimpleNamespace(is_eager=False))
    fixup.worker_fixup.on_task_postrun(task)
    fixup.worker_fixup.on_task_prerun(task)


def test_a_thread_of_a_worker_keeps_its_session_from_task_to_task(committed_db: str) -> None:
    tenant()
    session = connection.connection
    begin_task()
    with statements() as sent:
        assert database_now()
    assert connection.connection is session
    assert len(sent) == 1  # it answered a moment ago: it is not asked whether it is alive


def test_a_session_that_has_rested_is_asked_whether_it_is_alive(
    committed_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant()
    begin_task()
    monkeypatch.setattr(connections["default"], "_answered_at", -1000.0)
    with statements() as sent:
        assert database_now()
    assert sent[0] == "SELECT 1"
    assert vars(connections["default"])["_answered_at"] > 0


def test_a_session_that_was_ended_a_moment_ago_is_found_out_by_its_end(committed_db: str) -> None:
    tenant()
    session = connection.connection
    with administration(connection.settings_dict) as admin:
        # It answers when the session has ended.
        admin.execute("SELECT pg_terminate_backend(%s, 10000)", [session.info.backend_pid])
    begin_task()
    assert tenant().pk
    assert connection.connection is not session


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
