"""A worker is killed: its runs go on elsewhere at once, long before their leases would run out.

The leases here are longer than a test may take, so nothing but the end of the dead worker's session
can have given its runs away.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection

from tests.acceptance.changed_settings import changing
from tests.acceptance.payfake import (
    all_over,
    attempts,
    effects,
    ledger,
    order_run,
    payfake,
    requests,
    sends,
    wait_until_sent,
)
from tests.brokers import broker_of_machine
from tests.destination import RunningDestination
from tests.factories import tenant
from tests.waiting import LIMIT_SECONDS, wait_for
from tests.workers import Crew, WorkerProcess
from workflows.models import Run, Worker
from workflows.services.clock import database_now
from workflows.services.gone_workers import GONE_SECONDS
from workflows.services.runs import start

pytestmark = pytest.mark.processes

LONG_LEASE = {"ROMULUS_LEASE_SECONDS": str(LIMIT_SECONDS * 10)}


def holder_of(run: Run, crew: list[WorkerProcess]) -> WorkerProcess:
    run.refresh_from_db()
    pid = Worker.objects.get(pk=run.lease_owner).pid
    return next(worker for worker in crew if worker.pid == pid)


def known_sessions() -> int:
    return Worker.objects.filter(session__isnull=False).count()


def passages(folder: Path) -> int:
    """How often its first step was begun."""
    file = folder / "first"
    return len(file.read_text().splitlines()) if file.exists() else 0


def run_at_its_first_step(folder: Path) -> Run:
    """A run that goes on when a file named "gate" is there."""
    run = start("counting", {"folder": str(folder), "wait_for_gate": True}, tenant=tenant())
    wait_for(lambda: passages(folder) == 1, "it is in its first step")
    return run


def assert_goes_on_after_a_kill(crew: list[WorkerProcess], folder: Path) -> None:
    wait_for(lambda: known_sessions() == len(crew), "their sessions are known")
    run = run_at_its_first_step(folder)
    holder_of(run, crew).kill()
    wait_for(lambda: passages(folder) == 2, "another worker has taken over")
    (folder / "gate").touch()
    all_over(run)
    assert run.state == "completed"
    assert attempts(run) == [("first", "lost"), ("first", "committed"), ("second", "committed")]


@pytest.mark.parametrize("scheme", ["pgmq", "amqp", "redis"])
def test_the_run_of_a_killed_worker_goes_on_before_its_lease_is_over(
    workers: Crew, tmp_path: Path, scheme: str
) -> None:
    workers.environment |= LONG_LEASE
    if scheme == "pgmq":
        assert_goes_on_after_a_kill(workers.start_all(2), tmp_path)
        return
    with broker_of_machine(scheme) as broker:
        workers.environment |= changing(**broker.settings) | {"BROKER_URL": broker.url()}
        workers.queues = ",".join(broker.queues)
        assert_goes_on_after_a_kill(workers.start_all(2), tmp_path)
        workers.kill_all()


def test_a_write_whose_worker_was_killed_is_asked_for_at_once_and_not_sent_again(
    workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    payfake(destination)
    destination.client.arm("apply_then_delay", seconds=60, body={"order": "ORD-1"})
    workers.environment |= LONG_LEASE
    crew = workers.start_all(2)
    wait_for(lambda: known_sessions() == 2, "their sessions are known")
    run = order_run(tmp_path, "ORD-1")
    operation = wait_until_sent(destination, run)
    wait_for(lambda: effects(destination, operation), "the refund is made, and not answered")
    holder_of(run, crew).kill()
    all_over(run)
    operation.refresh_from_db()
    assert (run.state, operation.state, ledger(operation)) == (
        "completed",
        "verified",
        [("first", "unknown")],
    )
    assert (sends(destination, operation), effects(destination, operation)) == (1, 1)
    assert requests(destination, operation, "GET")


def test_a_worker_whose_session_was_cut_and_that_lives_keeps_its_run(
    workers: Crew, tmp_path: Path
) -> None:
    crew = workers.start_all(2)
    wait_for(lambda: known_sessions() == 2, "their sessions are known")
    run = run_at_its_first_step(tmp_path)
    holder = holder_of(run, crew).identity
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [holder.session])
    cut_at = database_now()

    def another_session() -> bool:
        before = holder.session
        holder.refresh_from_db(fields=["session"])
        return holder.session != before

    wait_for(another_session, "it has told of its next session")
    others = Worker.objects.exclude(pk=holder.pk)
    long_after = cut_at + timedelta(seconds=3 * GONE_SECONDS)
    wait_for(others.filter(swept_at__gt=long_after).exists, "the other has looked, again and again")
    (tmp_path / "gate").touch()
    all_over(run)
    assert run.state == "completed"
    assert attempts(run) == [("first", "committed"), ("second", "committed")]
    assert passages(tmp_path) == 1
