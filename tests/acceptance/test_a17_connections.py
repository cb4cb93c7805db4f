"""Case A17: connections to the database die under workers that live long.

Shrunk: a lease of 3 s instead of 15; the database is away for as long as a restart takes, and
sessions are read-only until they are dropped, instead of for 30 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection
from psycopg import sql

from reconciliation.models import Operation
from romulus_site.embedded import EmbeddedPostgres
from tests.acceptance.forks import forked_workers
from tests.acceptance.payfake import (
    HELD_BACK_SECONDS,
    all_over,
    attempts,
    effects,
    ledger,
    order_run,
    payfake,
    sends,
    states_of,
    wait_until_sent,
)
from tests.databases import administration
from tests.destination import RunningDestination
from tests.waiting import wait_for
from tests.workers import Crew, WorkerProcess
from workflows.models import Run, Worker

pytestmark = pytest.mark.processes

STEPS = ["prepare", "refund", "check", "notify"]
RUNS, REFUNDS = 100, 30
FORKED, FORKED_RUNS = 4, 200


def cut_sessions() -> int:
    """End every session of this test's database but the test's own; return how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return int(cursor.fetchone()[0])


def assert_never_restarted(crew: list[WorkerProcess]) -> None:
    assert [worker.process.poll() for worker in crew] == [None] * len(crew)
    assert Worker.objects.count() == len(crew)


def assert_one_effect_each(destination: RunningDestination) -> None:
    for operation in Operation.objects.all():
        assert (operation.state, effects(destination, operation)) == ("verified", 1)


def test_a17_idle_workers_whose_sessions_were_cut_take_the_next_run(
    workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    payfake(destination)
    worker = workers.start(threads=1)
    first = order_run(tmp_path, "ORD-1")  # its thread has a connection now
    all_over(first)
    assert cut_sessions() > 1
    second = order_run(tmp_path, "ORD-2")
    all_over(first, second)
    assert attempts(second) == [(step, "committed") for step in STEPS]
    assert (second.state, second.losses) == ("completed", 0)
    assert_one_effect_each(destination)
    assert_never_restarted([worker])


def test_a17_under_load_cut_sessions_and_a_restart_of_the_database_fail_no_step(
    workers: Crew,
    destination: RunningDestination,
    database_server: EmbeddedPostgres | None,
    tmp_path: Path,
) -> None:
    if database_server is None:
        pytest.skip("the server that DATABASE_URL names is not the tests' own to restart")
    payfake(destination)
    destination.client.arm("apply_then_delay", seconds=0.5, times=None)
    crew = workers.start_all(2, threads=4)
    runs = [order_run(tmp_path, f"ORD-{n}") for n in range(REFUNDS)]
    runs += [order_run(tmp_path, f"ORD-{n}", "counted") for n in range(REFUNDS, RUNS)]
    for _ in range(3):
        some_more(runs)
        assert cut_sessions() > 1
    some_more(runs)
    connection.close()
    database_server.stop()
    database_server.start()
    assert states_of(runs).get("completed", 0) < RUNS
    all_over(*runs)
    assert states_of(runs) == {"completed": RUNS}
    assert Operation.objects.count() == 2 * REFUNDS
    assert_one_effect_each(destination)
    assert_never_restarted(crew)


def some_more(runs: list[Run]) -> None:
    """Wait until something was committed since, in the midst of everything else."""
    before = progress(runs)
    wait_for(lambda: progress(runs) > before, "some steps are committed")


def progress(runs: list[Run]) -> int:
    fences = Run.objects.filter(pk__in=[run.pk for run in runs]).values_list("fence", flat=True)
    return sum(fences)


@contextmanager
def read_only_sessions() -> Iterator[None]:
    """Every session that there is can only read from now on; new ones can write.

    As after a switch-over: old connections lead to a server that is a standby now.
    """
    name = sql.Identifier(connection.settings_dict["NAME"])
    writable = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = off").format(name)
    with administration(connection.settings_dict) as admin:
        admin.execute("SET default_transaction_read_only = off")
        admin.execute(writable)
        admin.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        reload(admin)
        connection.close()
        try:
            yield
        finally:
            admin.execute("ALTER SYSTEM RESET default_transaction_read_only")
            reload(admin)


def reload(admin: psycopg.Connection[Any]) -> None:
    admin.execute("SELECT pg_reload_conf()")


def test_a17_sessions_that_became_read_only_are_dropped(
    workers: Crew,
    destination: RunningDestination,
    database_server: EmbeddedPostgres | None,
    tmp_path: Path,
) -> None:
    if database_server is None:
        pytest.skip("the server that DATABASE_URL names is not the tests' own to set up")
    payfake(destination)
    destination.client.arm("apply_then_delay", seconds=HELD_BACK_SECONDS, path="*refunds")
    crew = workers.start_all(2)
    calling = order_run(tmp_path, "ORD-1")
    operation = wait_until_sent(destination, calling)
    wait_for(lambda: effects(destination, operation), "the refund is made")
    with read_only_sessions():
        runs = [calling, *(order_run(tmp_path, f"ORD-{n}") for n in range(2, 12))]
        destination.client.release()
        all_over(*runs)
    assert states_of(runs) == {"completed": len(runs)}
    # Its record could not be written: it is unknown, and is asked for, not sent again.
    assert ledger(operation) == [("first", "unknown")]
    assert sends(destination, operation) == 1
    assert_one_effect_each(destination)
    assert_never_restarted(crew)


def test_a17_workers_that_were_forked_beside_an_open_connection_do_not_share_it(
    workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    payfake(destination)
    with forked_workers(workers, FORKED) as family:
        runs = [order_run(tmp_path, f"ORD-{n}") for n in range(20)]
        runs += [order_run(tmp_path, f"ORD-{n}", "counted") for n in range(20, FORKED_RUNS)]
        all_over(*runs)
        family.end_parent()
    assert states_of(runs) == {"completed": FORKED_RUNS}
    assert_one_effect_each(destination)
    assert family.errors() == []
