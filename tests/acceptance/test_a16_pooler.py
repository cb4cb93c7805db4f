"""Case A16: a pooler in transaction mode between Romulus and the database.

PgBouncer with 4 connections to the server before 16 threads of two workers and a console, on
Debian's version, which does not carry prepared statements over; and, where a newer one is
installed (`PGBOUNCER` names it), with them. The queues in the database go to it directly, because
they LISTEN.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.urls import reverse

from reconciliation.core.facts import Dispatch
from reconciliation.models import AuditEntry, Operation
from reconciliation.services.audit import first_broken_entry
from reconciliation.services.dispatch import set_dispatch
from tests import databases
from tests.acceptance.payfake import all_over, console, order_run, payfake, states_of
from tests.acceptance.refunding import passages
from tests.acceptance.web import web
from tests.databases import url_of
from tests.destination import RunningDestination
from tests.factories import administrator
from tests.pooler import PREPARES_SINCE, SERVERS, Pooler, pooler, version
from tests.waiting import wait_for
from tests.workers import ROOT, Crew, WorkerProcess, environment_of
from workflows.models import Run

pytestmark = pytest.mark.processes

RESTARTS = 2
BATCH, REFUNDS = 100, 5  # with each start
RUNS = BATCH * (RESTARTS + 1)
THREADS = 8
SESSION_LOCKS = """
    SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def through(pool: Pooler, **more: str) -> dict[str, str]:
    """The environment of a process that goes through the pooler, and to the queues directly."""
    direct = url_of(connection.settings_dict)
    return {
        "DATABASE_URL": url_of(pool.settings),
        "BROKER_URL": direct.replace("postgres", "pgmq", 1),
        "ROMULUS_PREPARE": "0",
    } | more


@contextmanager
def everything(workers: Crew, *, doomed: bool = False) -> Iterator[None]:
    """A console and two workers; with `doomed` a third, which dies in its start-up."""
    crew = [workers.launch(threads=THREADS) for _ in range(2)]
    dying = workers.launch(ROMULUS_FAILPOINTS="after_enlist") if doomed else None
    site = environment_of(workers.database_url) | workers.environment
    with web(site, workers.folder) as console:
        for worker in crew:
            worker.wait_until_ready()
        if dying is not None:
            dying.wait_until_dead()
        assert console.ready()[0] == 200
        yield
        assert console.ready()[0] == 200
        workers.kill_all()


def batch(folder: Path, first: int) -> list[Run]:
    """Start runs, of which some write."""
    flows = ["refunding"] * REFUNDS + ["counted"] * (BATCH - REFUNDS)
    return [order_run(folder, f"ORD-{first + n}", flow) for n, flow in enumerate(flows)]


def completed(runs: list[Run]) -> int:
    return states_of(runs).get("completed", 0)


def test_a16_runs_finish_through_a_pooler_in_transaction_mode(
    workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    payfake(destination)
    with pooler(connection.settings_dict) as pool:
        workers.environment = through(pool)
        runs: list[Run] = []
        for restart in range(RESTARTS):
            with everything(workers, doomed=restart == 0):
                started = batch(tmp_path, len(runs))
                wait_for(partial(completed, started), "some of them finish")
            runs += started  # the others were in the midst
        with everything(workers):
            runs += batch(tmp_path, len(runs))
            all_over(*runs)
    assert states_of(runs) == {"completed": RUNS}
    assert_exclusive(runs)
    operations = Operation.objects.filter(step="refund")
    assert operations.count() == REFUNDS * (RESTARTS + 1)
    for operation in operations:
        effects = destination.client.effects(operation=str(operation.pk))
        assert [effect.resource_id for effect in effects] == [operation.resource]
    for log in tmp_path.glob("*.log"):
        assert "prepared statement" not in log.read_text()
    with connection.cursor() as cursor:
        cursor.execute(SESSION_LOCKS)
        assert cursor.fetchone()[0] == 0


def assert_exclusive(runs: list[Run]) -> None:
    """Of one run no two attempts overlapped, and each step was passed once."""
    for run in runs:
        attempts = list(run.attempts.order_by("fence"))
        assert all(one.ended_at <= two.claimed_at for one, two in pairwise(attempts))
        # An attempt that parked its run, so that an outcome was asked for, left no output.
        passed = list(run.attempts.outputs().values_list("step", flat=True))
        assert len(passed) == len(set(passed))


@pytest.fixture
def empty_database(committed_db: str) -> Iterator[dict[str, Any]]:
    """The settings of a database that nothing was ever done to."""
    name = f"{connection.settings_dict['NAME']}_empty"
    databases.create(connection.settings_dict, name, "template0")
    try:
        yield {**connection.settings_dict, "NAME": name}
    finally:
        databases.drop(connection.settings_dict, name)


def test_a16_a_migration_that_was_killed_holds_up_nobody(
    empty_database: dict[str, Any], tmp_path: Path
) -> None:
    with pooler(empty_database) as pool:
        migrate = [sys.executable, "manage.py", "migrate", "--verbosity=0"]
        given = environment_of(url_of(pool.settings)) | through(pool)
        given["DATABASE_URL"] = url_of(pool.settings)
        with psycopg.connect(url_of(empty_database), autocommit=True) as look:
            killed = subprocess.Popen(migrate, cwd=ROOT, env=given)
            wait_for(lambda: migrated(look), "it is in the midst of migrating")
            killed.kill()
            killed.wait(timeout=120)
            before = migrated(look)
            subprocess.run(migrate, cwd=ROOT, env=given, check=True, timeout=240)
            assert 0 < before < migrated(look)
            assert look.execute(SESSION_LOCKS).fetchone() == (0,)


def migrated(look: psycopg.Connection[Any]) -> int:
    """How many migrations are recorded."""
    if look.execute("SELECT to_regclass('django_migrations')").fetchone() == (None,):
        return 0
    (number,) = look.execute("SELECT count(*) FROM django_migrations").fetchone() or (0,)
    return int(number)


def test_a16_what_is_read_in_parts_is_read_through_such_a_pooler(
    workers: Crew, destination: RunningDestination, settings: Any
) -> None:
    """The audit record, and the choices of a form in the admin."""
    settings.ROMULUS_PREPARE = False  # as docs/operations.md says, for whoever comes through it
    provider = payfake(destination)
    for state in (Dispatch.OFF, Dispatch.ON) * 3:
        assert set_dispatch(provider, state, administrator(), "To leave something on record.")
    direct = dict(connection.settings_dict)
    with pooler(connection.settings_dict) as pool:
        open_all_servers(pool)
        connection.close()
        connection.settings_dict |= pool.settings
        try:
            assert AuditEntry.objects.count() == 6
            assert first_broken_entry() is None
            form = reverse("admin:reconciliation_provider_change", args=[provider.pk])
            assert console("admin_1").get(form).status_code == 200
        finally:
            connection.close()
            connection.settings_dict |= direct


def open_all_servers(pool: Pooler) -> None:
    """Let the pooler open every connection that it may have, which it does when it needs one."""
    with ExitStack() as clients:
        for _ in range(SERVERS):
            client = clients.enter_context(psycopg.connect(url_of(pool.settings)))
            client.execute("SELECT 1")  # and its transaction stays open


def refused(worker: WorkerProcess) -> str:
    assert worker.process.wait(timeout=240) == 1
    return worker.log.read_text()


def test_a16_what_such_a_pooler_does_not_give_is_said_at_the_start(workers: Crew) -> None:
    without = {"max_prepared_statements": 0} if version() >= PREPARES_SINCE else {}
    with pooler(connection.settings_dict, **without) as pool:
        prepares = workers.launch(**through(pool, ROMULUS_PREPARE="1"))
        listens = workers.launch(**through(pool, BROKER_URL="pgmq://"))
        assert "Set ROMULUS_PREPARE=0" in refused(prepares)
        assert "BROKER_URL=pgmq://user:password@host:5432/name" in refused(listens)


def test_a16_a_pooler_that_carries_prepared_statements_over_is_used_with_them(
    workers: Crew, tmp_path: Path
) -> None:
    if version() < PREPARES_SINCE:
        found = ".".join(map(str, version()))
        pytest.skip(f"PgBouncer {found} does not carry prepared statements over; 1.21 does")
    with pooler(connection.settings_dict, max_prepared_statements=200) as pool:
        workers.environment = through(pool, ROMULUS_PREPARE="1")
        crew = workers.start_all(2, threads=THREADS)
        runs = [order_run(tmp_path, f"ORD-{n}", "counted") for n in range(RUNS)]
        all_over(*runs)
        workers.kill_all()
    assert states_of(runs) == {"completed": RUNS}
    assert_exclusive(runs)
    assert all(passages(tmp_path, f"ORD-{n}", "three") == 1 for n in range(RUNS))
    for worker in crew:
        events = [line for line in worker.log.read_text().splitlines() if line.startswith("{")]
        assert not [event for event in events if json.loads(event)["level"] == "error"]
