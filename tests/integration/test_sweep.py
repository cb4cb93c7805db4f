"""The sweep: what is due and was not told of is told of again (promise P10)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import DatabaseError, InterfaceError
from django.db.models.functions import Now
from pytest_django import Settings

from reconciliation.models import Operation
from reconciliation.services.reconcile import DUE_BATCH, hint_due_operations
from tests.claiming import ONCE
from tests.factories import advanced, ready_provider, started_run, tenant
from tests.waiting import wait_for
from workflows.core.definitions import Child, Workflow
from workflows.models import Run, Worker
from workflows.registry import registry
from workflows.services import children
from workflows.services import sweep as sweeping
from workflows.services.children import see_ends
from workflows.services.claims import claim_run
from workflows.services.ownership import Keeper
from workflows.services.run_view import RunView
from workflows.services.runs import start
from workflows.services.sweep import (
    Sweeper,
    due_runs,
    hint_due_runs,
    register_duty,
    sweep,
)

pytestmark = pytest.mark.django_db


def worker() -> Worker:
    return Worker.objects.create(host="here", pid=1, workflows=[])


def claimed_run(lease_ends_in: float) -> Run:
    run = started_run()
    assert claim_run(run.pk, worker().pk)
    Run.objects.filter(pk=run.pk).update(lease_expires_at=Now() + timedelta(seconds=lease_ends_in))
    return run


parent = Workflow("tests.swept_parent")


@parent.children()
def bring_up(run: RunView) -> list[Child]:
    return [Child(ONCE.name, {"act": "act"})]


def age_hints(seconds: float) -> None:
    Run.objects.update(hinted_at=Now() - timedelta(seconds=seconds))


# --- runs -------------------------------------------------------------------------------------


def test_a_ready_run_that_is_due_is_told_of() -> None:
    run = started_run()
    assert hint_due_runs() == 1
    run.refresh_from_db()
    assert run.hinted_at is not None
    assert run.state == "ready"  # nothing but the hint has changed
    assert run.fence == 0


def test_a_run_that_rests_is_not_told_of_before_its_time() -> None:
    run = started_run()
    Run.objects.filter(pk=run.pk).update(ready_at=Now() + timedelta(seconds=30))
    assert hint_due_runs() == 0
    Run.objects.filter(pk=run.pk).update(ready_at=Now())
    assert hint_due_runs() == 1


def test_a_run_is_told_of_once_per_period(settings: Settings) -> None:
    settings.ROMULUS_SWEEP_SECONDS = 10
    started_run()
    assert [hint_due_runs() for _ in range(3)] == [1, 0, 0]
    age_hints(settings.ROMULUS_SWEEP_SECONDS - 1)
    assert hint_due_runs() == 0
    age_hints(settings.ROMULUS_SWEEP_SECONDS + 1)
    assert hint_due_runs() == 1


@pytest.mark.parametrize(("lease_ends_in", "told"), [(30, 0), (-1, 1)])
def test_a_running_run_is_told_of_when_its_lease_ran_out(lease_ends_in: float, told: int) -> None:
    claimed_run(lease_ends_in)
    assert hint_due_runs() == told


def test_a_lease_that_ran_out_is_told_of_though_its_run_was_told_of_before() -> None:
    run = started_run()
    assert hint_due_runs() == 1
    assert claim_run(run.pk, worker().pk)
    Run.objects.filter(pk=run.pk).update(lease_expires_at=Now() - timedelta(seconds=1))
    assert hint_due_runs() == 1


@pytest.mark.parametrize("state", ["waiting", "held", "completed", "failed", "cancelled"])
def test_nothing_is_told_of_a_run_that_no_worker_can_move(state: str) -> None:
    run = started_run()
    finished = Now() if state in ("completed", "failed", "cancelled") else None
    Run.objects.filter(pk=run.pk).update(state=state, finished_at=finished)
    assert hint_due_runs() == 0


def test_one_sweep_takes_a_batch_the_oldest_first() -> None:
    runs = [started_run() for _ in range(3)]
    for age, run in enumerate(reversed(runs)):
        Run.objects.filter(pk=run.pk).update(ready_at=Now() - timedelta(minutes=1 + age))
    first = due_runs(batch=2)
    rest = due_runs(batch=2)
    assert set(first) == {runs[0].pk, runs[1].pk}
    assert rest == [runs[2].pk]


def test_ready_runs_do_not_keep_expired_leases_waiting() -> None:
    ready = started_run()
    Run.objects.filter(pk=ready.pk).update(ready_at=Now() - timedelta(hours=1))
    expired = claimed_run(-1)
    told = due_runs(batch=1)
    assert set(told) == {ready.pk, expired.pk}


def test_runs_that_this_process_has_no_code_for_do_not_fill_its_batch() -> None:
    """A11, P10: a thousand of them, left over after a deploy, must not hide the others."""
    unknown, known = started_run(), started_run()
    Run.objects.filter(pk=unknown.pk).update(
        workflow="tests.gone", ready_at=Now() - timedelta(hours=1)
    )
    told = due_runs(batch=1)
    assert told == [known.pk]


def parent_whose_child_has_ended_unseen() -> Run:
    """As when whoever ended it died before it could look at its parent."""
    registry.add(ONCE)
    registry.add(parent)
    run = advanced(start(parent.name, {}, tenant=tenant()))
    ended = {"state": "completed", "finished_at": Now()}
    Run.objects.filter(parent=run).update(**ended)
    return run


def test_a_child_that_has_ended_unseen_is_seen() -> None:
    run = parent_whose_child_has_ended_unseen()
    assert see_ends() == 1
    run.refresh_from_db()
    assert run.state == "ready"
    assert see_ends() == 0


def test_parents_that_this_process_has_no_code_for_do_not_fill_its_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A11, P10: those that have their code look at them."""
    monkeypatch.setattr(children, "BATCH", 1)
    unknown = [parent_whose_child_has_ended_unseen() for _ in range(3)]
    known = parent_whose_child_has_ended_unseen()
    Run.objects.filter(pk__in=[run.pk for run in unknown]).update(version=99)
    assert see_ends() == 1
    known.refresh_from_db()
    assert known.state == "ready"


# --- operations -------------------------------------------------------------------------------


def intended_operation() -> Operation:
    """An operation that waits, because dispatch is paused."""
    if not Operation.objects.exists():
        ready_provider("payments", dispatch="paused")
    run = advanced(started_run())
    return Operation.objects.get(run=run)


def make_due(operation: Operation, seconds: float) -> None:
    Operation.objects.filter(pk=operation.pk).update(due_at=Now() + timedelta(seconds=seconds))


@pytest.mark.parametrize(("seconds", "told"), [(-1, 1), (0, 1), (30, 0)])
def test_an_operation_is_told_of_when_it_is_due(seconds: float, told: int) -> None:
    make_due(intended_operation(), seconds)
    assert hint_due_operations() == told


def test_an_operation_that_a_worker_or_a_person_has_is_not_told_of() -> None:
    operation = intended_operation()
    Operation.objects.filter(pk=operation.pk).update(due_at=None)
    assert hint_due_operations() == 0


def test_one_sweep_tells_of_no_more_operations_than_a_batch() -> None:
    operation = intended_operation()
    copies = [
        Operation(
            **{
                field.attname: getattr(operation, field.attname)
                for field in Operation._meta.concrete_fields
                if field.attname not in ("id", "effect", "idempotency_key")
            }
            | {"effect": str(number), "idempotency_key": str(number)}
        )
        for number in range(DUE_BATCH)
    ]
    Operation.objects.bulk_create(copies)
    Operation.objects.update(due_at=Now())
    assert hint_due_operations() == DUE_BATCH


def test_whoever_waits_for_dispatch_is_looked_at_again_by_itself() -> None:
    """P12: a switch that nobody tells of must not leave a run lying."""
    assert intended_operation().due_at is not None


# --- the duties together ----------------------------------------------------------------------


@pytest.fixture
def duties() -> Iterator[None]:
    """Duties that a test adds are gone after it."""
    before = list(sweeping.duties)
    yield
    sweeping.duties[:] = before


def test_one_sweep_does_every_duty() -> None:
    make_due(intended_operation(), -1)
    started_run()
    assert sweep() == 2


def test_a_duty_is_done_once_however_often_it_is_registered(duties: None) -> None:
    count = len(sweeping.duties)

    def duty() -> int:
        return 7

    register_duty(duty)
    register_duty(duty)
    assert len(sweeping.duties) == count + 1
    assert sweep() == 7


def swept(settings: Settings, error: Exception) -> int:
    """How often a sweeper does a duty that goes wrong the first time, until it has recovered."""
    settings.ROMULUS_SWEEP_SECONDS = 0.01
    done: list[int] = []

    def duty() -> int:
        done.append(1)
        if len(done) == 1:
            raise error
        return 0

    sweeping.duties[:] = [duty]
    sweeper = Sweeper(Keeper())
    sweeper.start()
    try:
        wait_for(lambda: len(done) > 1 or not sweeper.is_alive(), "it sweeps again, or is dead")
    finally:
        sweeper.stop()
    return len(done)


def test_a_sweep_survives_a_database_that_is_away(settings: Settings, duties: None) -> None:
    assert swept(settings, DatabaseError("away")) > 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    "error", [InterfaceError("connection already closed"), RuntimeError("a duty that breaks")]
)
def test_a_sweep_survives_whatever_goes_wrong_in_a_duty(
    error: Exception, settings: Settings, duties: None
) -> None:
    assert swept(settings, error) > 1


def test_one_duty_that_breaks_does_not_keep_the_others_from_being_done(duties: None) -> None:
    done: list[int] = []

    def breaks() -> int:
        raise RuntimeError("a duty that breaks")

    def works() -> int:
        done.append(1)
        return 1

    sweeping.duties[:] = [breaks, works]
    sweep()
    assert done == [1]
