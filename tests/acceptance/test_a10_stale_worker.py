"""Case A10: a worker wakes up after its lease went to somebody else.

Shrunk: a lease of 3 s instead of 15; payfake makes the effect at once and answers when
another worker has taken over, instead of after 60 s.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now

from reconciliation.models import Operation
from tests.acceptance.payfake import (
    HELD_BACK_SECONDS,
    all_over,
    effects,
    ledger,
    order_run,
    payfake,
    requests,
    sends,
    wait_until_sent,
)
from tests.acceptance.refunding import passages
from tests.databases import url_of
from tests.destination import RunningDestination
from tests.relay import database_relay
from tests.waiting import wait_for
from tests.workers import LEASE_SECONDS, Crew, WorkerProcess
from workflows.models import Run, Worker
from workflows.services.clock import database_now

pytestmark = pytest.mark.processes

ORDER = "ORD-7010"
RENEWALS = 2  # so many heartbeats of the stale worker are watched
Lease = tuple[Any, int, datetime | None]


@pytest.fixture
def slow(destination: RunningDestination, workers: Crew, tmp_path: Path) -> RunningDestination:
    """payfake, which refunds at once and answers late; and `check` waits at its gate."""
    payfake(destination)
    destination.client.arm("apply_then_delay", seconds=HELD_BACK_SECONDS, path="*refunds")
    (tmp_path / f"{ORDER}.check.gate").touch()
    return destination


def in_call(destination: RunningDestination, folder: Path) -> tuple[Run, Operation]:
    """A run whose worker is inside the call; the effect is made, and not answered."""
    run = order_run(folder, ORDER)
    operation = wait_until_sent(destination, run)
    wait_for(lambda: effects(destination, operation), "the refund is made")
    return run, operation


def taken_over(folder: Path) -> None:
    wait_for(lambda: passages(folder, ORDER, "check"), "another worker is past the refund")


def lease_of(run: Run) -> Lease:
    run.refresh_from_db()
    return run.lease_owner, run.fence, run.lease_expires_at


def heartbeats(worker: WorkerProcess) -> Callable[[], bool]:
    """Whether the worker has renewed its leases some times since this was called."""
    seen = {worker.identity.seen_at}

    def enough() -> bool:
        seen.add(worker.identity.seen_at)
        return len(seen) > RENEWALS

    return enough


def watch_lease(run: Run, holder: WorkerProcess, until: Callable[[], bool]) -> None:
    """The lease stays its holder's own: neither shortened nor prolonged by anybody else."""
    owner, fence, last = lease_of(run)
    assert owner == holder.identity.pk

    def looked() -> bool:
        nonlocal last
        assert lease_of(run)[:2] == (owner, fence)
        assert last is not None
        assert run.lease_expires_at is not None
        assert last <= run.lease_expires_at
        assert run.lease_expires_at <= database_now() + timedelta(seconds=LEASE_SECONDS)
        last = run.lease_expires_at
        return until()

    wait_for(looked, "the stale worker has done all that it does")


def assert_finished_by(
    holder: WorkerProcess, run: Run, operation: Operation, destination: RunningDestination
) -> None:
    """One effect, found by asking; and what counts of the run is its last holder's."""
    all_over(run)
    assert run.state == "completed"
    operation.refresh_from_db()
    assert (sends(destination, operation), effects(destination, operation)) == (1, 1)
    assert requests(destination, operation, "GET")
    assert ledger(operation) == [("first", "unknown")]
    assert operation.state == "verified"
    committed = run.attempts.filter(state="committed", fence__gt=2).order_by("fence")
    by = set(committed.values_list("worker", flat=True))
    assert (by, committed.count()) == ({holder.identity.pk}, 3)
    assert run.attempts.outputs().get(step="refund").worker == holder.identity.pk


def test_a10_a_paused_worker_that_wakes_up_changes_nothing(
    workers: Crew, slow: RunningDestination, tmp_path: Path
) -> None:
    stale = workers.start()
    run, operation = in_call(slow, tmp_path)
    stale.freeze()
    holder = workers.start()
    taken_over(tmp_path)

    stale.thaw()
    slow.client.release()
    beats = heartbeats(stale)
    watch_lease(run, holder, lambda: stale.has_logged("attempt.superseded") and beats())
    assert stale.has_logged("lease.lapsed")
    superseded = run.attempts.get(state="superseded")
    assert (superseded.step, superseded.worker) == ("refund", stale.identity.pk)
    assert superseded.output is not None  # kept, and counts for nothing

    (tmp_path / f"{ORDER}.check.gate").unlink()
    assert_finished_by(holder, run, operation, slow)


def test_a10_a_worker_of_the_same_name_is_another_worker(
    workers: Crew, slow: RunningDestination, tmp_path: Path
) -> None:
    first = workers.start(name="twin")
    run, operation = in_call(slow, tmp_path)
    first.kill()
    # As through a pooler: nobody sees by its session that it is gone, so that its lease runs on.
    Worker.objects.filter(pk=first.identity.pk).update(session=None)
    # Long enough that the new one is up while the old one's lease still runs.
    Run.objects.filter(pk=run.pk).update(lease_expires_at=Now() + timedelta(minutes=5))
    left = lease_of(run)
    assert left[0] == first.identity.pk

    second = workers.start(name="twin")
    assert second.identity.pk != first.identity.pk
    wait_for(heartbeats(second), "the new one has renewed what it holds")
    assert lease_of(run) == left

    (tmp_path / f"{ORDER}.check.gate").unlink()
    Run.objects.filter(pk=run.pk).update(lease_expires_at=Now() - timedelta(seconds=1))
    assert_finished_by(second, run, operation, slow)


def test_a10_a_worker_that_was_cut_off_from_the_database_alone_changes_nothing(
    workers: Crew, slow: RunningDestination, tmp_path: Path
) -> None:
    direct = url_of(connection.settings_dict)
    with database_relay(connection.settings_dict) as (relay, through):
        broker = direct.replace("postgres", "pgmq", 1)
        stale = workers.start(DATABASE_URL=url_of(through), BROKER_URL=broker)
        run, operation = in_call(slow, tmp_path)
        relay.cut()
        holder = workers.start()
        taken_over(tmp_path)
        assert stale.has_logged("lease.not_renewed")

        relay.mend()
        slow.client.release()
        beats = heartbeats(stale)
        # Its late result found the database away, or was refused.
        refused = ("attempt.superseded", "raised unexpected: OperationalError")
        # Its session's end gave it away before its lease was over by its own clock, or after.
        watch_lease(run, holder, lambda: any(map(stale.has_logged, refused)) and beats())
        (tmp_path / f"{ORDER}.check.gate").unlink()
        assert_finished_by(holder, run, operation, slow)
        assert stale.process.poll() is None
