"""Two at once, on connections of their own: one wins, the other is told, nothing is lost.

Where the order matters, a test waits until the other backend is observed to be blocked; it never
sleeps and hopes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now
from pytest_django import Settings

from reconciliation.core.errors import AlreadyDecided, DispatchTurnedOff
from reconciliation.core.facts import Dispatch, Wait, WaitReason
from reconciliation.core.states import DecisionKind, Purpose
from reconciliation.models import (
    AuditEntry,
    Decision,
    Hold,
    Operation,
    Provider,
    Transmission,
)
from reconciliation.services import reconcile as reconciling
from reconciliation.services import transmit as transmitting
from reconciliation.services.audit import add_entry, first_broken_entry
from reconciliation.services.decisions import Answer, record_decision
from reconciliation.services.dispatch import set_dispatch
from reconciliation.services.ledger import open_operation, provider_of
from reconciliation.services.providers import contract_of
from reconciliation.services.reconcile import reconcile
from reconciliation.services.write_step import park
from tests.destination import RunningDestination
from tests.factories import (
    NOTE,
    advanced,
    code_of,
    held_operation,
    open_hold_of,
    owner_of,
    person,
    ready_provider,
    settled,
    started_run,
    tenant,
    wait_until,
)
from tests.waiting import wait_for
from workflows.core.definitions import Workflow
from workflows.core.errors import LostOwnership, StartConflict
from workflows.core.states import RunState
from workflows.models import Run, Worker
from workflows.registry import registry
from workflows.services import kinds
from workflows.services.claims import Claim, claim_run, commit_step, release
from workflows.services.executor import advance, take_step
from workflows.services.ownership import Keeper
from workflows.services.run_view import RunView
from workflows.services.runs import start
from workflows.services.sweep import hint_due_runs

pytestmark = pytest.mark.usefixtures("committed_db")

Given = TypeVar("Given")


# --- two at once ------------------------------------------------------------------------------


def with_own_connection(act: Callable[[], Given]) -> Given:
    try:
        return act()
    finally:
        connection.close()


@contextmanager
def beside() -> Iterator[Callable[[Callable[[], Any]], Future[Any]]]:
    """Let acts run beside the test, each on a connection of its own."""
    with ThreadPoolExecutor(max_workers=16) as pool:
        yield lambda act: pool.submit(with_own_connection, act)


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """Do all of `acts` at the same moment; give what each returned or raised."""
    barrier = threading.Barrier(len(acts))

    def together(act: Callable[[], Any]) -> Any:
        connection.ensure_connection()  # not while the others already act
        barrier.wait(timeout=30)
        try:
            return act()
        except Exception as error:  # noqa: BLE001 (what it raised is what it gives)
            return error

    with beside() as run:
        futures = [run(lambda act=act: together(act)) for act in acts]  # type: ignore[misc]
        return [future.result(timeout=60) for future in futures]


def someone_is_blocked() -> bool:
    """Whether another connection of this database waits for a lock."""
    with connection.cursor() as cursor:
        # Inside a transaction the view is looked at once, and remembered.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])


def wait_until_blocked() -> None:
    wait_for(someone_is_blocked, "the other one waits for a lock")


def worker() -> Any:
    return Worker.objects.create(host="here", pid=1, workflows=[]).pk


def expire_lease(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(lease_expires_at=Now() - timedelta(seconds=1))


# --- claims -----------------------------------------------------------------------------------

ORDER = {"number": "ORD-7001", "refundable": "125.00"}


def claimed(run: Run) -> Claim:
    claim = claim_run(run.pk, worker())
    assert claim is not None
    return claim


def claim_together(run: Run) -> None:
    given = at_once(*(partial(claim_run, run.pk, worker()) for _ in range(8)))
    (winner,) = (claim for claim in given if claim is not None)
    run.refresh_from_db()
    assert run.lease_owner == winner.worker
    assert run.attempts.filter(state="running").count() == 1


@pytest.mark.parametrize("left_lying", [False, True])
def test_of_many_claims_at_once_one_wins(left_lying: bool) -> None:
    for _ in range(10):
        run = started_run()
        if left_lying:
            claimed(run)
            expire_lease(run)
        claim_together(run)


def test_a_claim_does_not_wait_for_another_one() -> None:
    run = started_run()
    # The transaction ends inside, so that another claim that does wait is let go when this fails.
    with beside() as do, transaction.atomic():
        claimed(run)  # not committed yet
        assert do(lambda: claim_run(run.pk, uuid4())).result(timeout=10) is None


def commit_together(run: Run) -> None:
    claim = claimed(run)
    given = at_once(*[lambda: commit_step(claim, ORDER, go_on=True)] * 4)
    assert sum(isinstance(each, LostOwnership) for each in given) == 3
    assert run.outputs.count() == 1
    assert run.attempts.filter(state="running").count() == 1


def test_of_two_commits_of_one_claim_one_wins() -> None:
    """A01: the same message, delivered twice to one worker."""
    for _ in range(10):
        commit_together(started_run())


def commit_and_take_over(run: Run) -> None:
    claim, other = claimed(run), worker()
    expire_lease(run)
    committed, taken = at_once(
        lambda: commit_step(claim, ORDER, go_on=False), lambda: claim_run(run.pk, other)
    )
    if isinstance(committed, LostOwnership):
        assert taken.step.name == "load_order"
        assert not run.outputs.exists()
    else:
        # claimed at the next step, or found locked and left to the sweep
        assert committed is None
        assert taken is None or taken.step.name == "create_refund"
        assert run.outputs.count() == 1


def test_a_commit_and_a_take_over_at_once_never_both_happen() -> None:
    """P2: whoever comes second finds another fence, or nothing that is due."""
    for _ in range(20):
        commit_and_take_over(started_run())


def test_a_lease_is_renewed_by_the_thread_until_it_is_stopped(settings: Settings) -> None:
    settings.ROMULUS_LEASE_SECONDS = 3
    keeper = Keeper()
    run = started_run()
    claim = claim_run(run.pk, keeper.worker)
    assert claim is not None
    first = Run.objects.get(pk=run.pk).lease_expires_at
    assert first is not None

    def renewed() -> bool:
        present = Run.objects.get(pk=run.pk).lease_expires_at
        return present is not None and present > first

    keeper.start()
    try:
        with keeper.at_work(claim.attempt):
            wait_for(renewed, "its lease is renewed")
        assert keeper.may_claim()
    finally:
        keeper.stop()
    assert not keeper.may_claim()


ambiguous = Workflow("tests.ambiguous")


@ambiguous.step()
def work(run: RunView) -> int:
    return 1


@ambiguous.step()
def work_on(run: RunView) -> int:
    return 2


def answer_is_lost() -> None:
    """Let the present transaction commit, and its process hear of an outage instead."""

    def lose_it() -> None:
        raise OperationalError("the connection is lost")

    transaction.on_commit(lose_it)


def settle_and_lose_the_answer(_claim: Claim, _view: RunView) -> kinds.Result:
    return kinds.Done(1, also=answer_is_lost)


def test_a_commit_whose_answer_was_lost_leaves_no_attempt_that_nobody_works_on() -> None:
    """A17: the commit was made, and the worker does not know it; the run goes on soon."""
    kinds.register_kind("tests.loses", settle_and_lose_the_answer)
    registry.add(ambiguous)
    ambiguous.steps["work"] = replace(ambiguous.steps["work"], kind="tests.loses")
    keeper = Keeper()
    run = start("tests.ambiguous", {}, tenant=tenant())
    with pytest.raises(OperationalError):
        advance(run.pk, keeper)
    run.refresh_from_db()
    assert (run.state, run.step) == ("running", "work_on")  # committed after all
    expire_lease(run)
    keeper.renew()
    assert claim_run(run.pk, worker())


def test_a_claim_whose_answer_was_lost_is_left_to_its_lease() -> None:
    registry.add(ambiguous)
    keeper = Keeper()
    run = start("tests.ambiguous", {}, tenant=tenant())

    def claim_it() -> None:
        with transaction.atomic():
            answer_is_lost()
            claim_run(run.pk, keeper.worker)

    with pytest.raises(OperationalError):
        claim_it()
    run.refresh_from_db()
    assert run.state == "running"
    expire_lease(run)
    keeper.renew()
    assert claim_run(run.pk, worker())


# --- starts and sweeps ------------------------------------------------------------------------


def test_of_many_starts_with_one_key_one_starts() -> None:
    tenant()
    refund = {"order": "ORD-7001", "amount": "125.00"}

    def begin() -> Any:
        return start("refund", refund, tenant=tenant(), start_key="k").pk

    given = at_once(*[begin] * 8)
    assert set(given) == set(Run.objects.values_list("pk", flat=True))
    assert Run.objects.count() == 1


def test_of_two_starts_with_one_key_and_other_inputs_the_second_is_told() -> None:
    tenant()

    def begin(amount: str) -> Any:
        given = {"order": "ORD-7001", "amount": amount}
        return start("refund", given, tenant=tenant(), start_key="k").pk

    given = at_once(lambda: begin("125.00"), lambda: begin("130.00"))
    assert sum(isinstance(each, StartConflict) for each in given) == 1
    assert Run.objects.count() == 1


def test_many_sweeps_at_once_tell_of_each_run_once() -> None:
    for _ in range(50):
        started_run()
    assert sum(at_once(*[hint_due_runs] * 6)) == 50


# --- sends ------------------------------------------------------------------------------------


def claim_at_write(run: Run) -> Claim:
    keeper = Keeper()
    claim = claim_run(run.pk, keeper.worker)
    while claim is not None and claim.step.kind != "write":
        claim = take_step(claim, keeper)
    assert claim is not None
    return claim


def opened(claim: Claim) -> Operation:
    return open_operation(claim, claim.step.function(RunView(claim)), provider_of(claim))


def begin(operation: Operation, claim: Claim) -> Transmission:
    return transmitting.begin(operation, claim, Purpose.FIRST, contract_of(operation))


def test_a_send_that_begins_while_dispatch_is_being_turned_off_does_not_begin() -> None:
    """Promise P13: the switch is read at the last moment, and waited for."""
    ready_provider("payments")
    claim = claim_at_write(started_run())
    operation = opened(claim)
    with beside() as do:
        with transaction.atomic():
            administrator = person("admin_1", is_superuser=True)
            set_dispatch(Provider.objects.get(), Dispatch.OFF, administrator, "An incident there.")
            sending = do(lambda: begin(operation, claim))
            wait_until_blocked()
        with pytest.raises(DispatchTurnedOff):
            sending.result(timeout=10)
    assert not Transmission.objects.exists()


def test_dispatch_is_off_only_after_the_sends_that_have_begun_are_on_record() -> None:
    """P13: whoever reads "off" sees every send that may still be on its way."""
    ready_provider("payments")
    claim = claim_at_write(started_run())
    operation = opened(claim)
    administrator = person("admin_1", is_superuser=True)

    def turn_off() -> int:
        set_dispatch(Provider.objects.get(), Dispatch.OFF, administrator, "An incident there.")
        return Transmission.objects.count()

    with beside() as do:
        with transaction.atomic():
            begin(operation, claim)
            turning = do(turn_off)
            wait_until_blocked()
        assert turning.result(timeout=10) == 1
    assert Provider.objects.get().dispatch == "off"


def test_of_two_workers_that_begin_one_send_one_does() -> None:
    ready_provider("payments")
    run = started_run()
    stale = claim_at_write(run)
    operation = opened(stale)
    expire_lease(run)
    present = claim_run(run.pk, worker())
    assert present is not None
    given = at_once(lambda: begin(operation, stale), lambda: begin(operation, present))
    assert isinstance(given[0], LostOwnership)
    assert Transmission.objects.get().attempt_id == present.attempt


def test_one_effect_is_opened_once_though_two_workers_come_to_it() -> None:
    ready_provider("payments")
    run = started_run()
    stale = claim_at_write(run)
    expire_lease(run)
    present = claim_run(run.pk, worker())
    assert present is not None
    given = at_once(lambda: opened(stale), lambda: opened(present))
    assert isinstance(given[0], LostOwnership)
    assert Operation.objects.get() == given[1]


# --- questions --------------------------------------------------------------------------------


def test_of_two_reconciliations_of_one_due_operation_one_asks(
    destination: RunningDestination,
) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("apply_then_drop")
    destination.client.arm("lookup_unavailable", times=None, retry_after=1)
    advanced(started_run("replacement_worker"))
    operation = Operation.objects.get()
    before = len(destination.client.journal())
    assert operation.due_at is not None
    wait_until(operation.due_at)
    at_once(*[lambda: reconcile(operation.pk)] * 4)
    assert len(destination.client.journal()) - before == 1


def test_a_worker_that_parks_and_a_reconciliation_of_the_same_run_do_not_lock_each_other_out(
    destination: RunningDestination,
) -> None:
    """A15: run, then operation, then hold: for everybody."""
    ready_provider("payments", destination.url)
    claim = claim_at_write(started_run())
    operation = opened(claim)
    parked = park(operation, None, WaitReason.DISPATCH)
    operation_is_locked = threading.Event()

    def also() -> None:
        parked.also()  # type: ignore[union-attr]
        operation_is_locked.set()
        wait_until_blocked()  # the reconciliation has the run, and wants the operation

    def park_it() -> Any:
        return release(claim, RunState.WAITING, failure={"reason": "x", "message": "x"}, also=also)

    def look_at_it() -> None:
        assert operation_is_locked.wait(timeout=30)
        reconciling.follow(reconciling.load(operation.pk), Wait(None, WaitReason.DISPATCH), ())

    given = at_once(park_it, look_at_it)
    assert [each for each in given if isinstance(each, OperationalError)] == []


# --- decisions --------------------------------------------------------------------------------

REPEATS = 20


def answer_on(hold: Hold, kind: DecisionKind, **fields: Any) -> Answer:
    given: dict[str, Any] = {
        "note": NOTE,
        "version": hold.version,
        "token": uuid4(),
        "code": code_of(hold.operation_id or hold.run_id),
        "resource": "c_1",
    }
    return Answer(kind=kind, **(given | fields))


def decide_together(operation: Operation, first: Any, second: Any) -> Decision:
    hold = open_hold_of(operation)
    given = at_once(
        lambda: record_decision(hold.pk, first, answer_on(hold, DecisionKind.APPLIED)),
        lambda: record_decision(hold.pk, second, answer_on(hold, DecisionKind.ABANDON)),
    )
    (recorded,) = Decision.objects.filter(hold=hold)
    (told,) = (each for each in given if isinstance(each, AlreadyDecided))
    assert told.decision == recorded
    assert recorded in given
    return recorded


def test_of_two_decisions_at_the_same_moment_one_counts_and_the_other_is_told(
    destination: RunningDestination,
) -> None:
    """A19: never two, never none, and never a success for the one that was not recorded."""
    provider = ready_provider("desk", destination.url)
    assert provider.default_queue is not None
    second = owner_of(provider.default_queue, "reviewer_2")
    for _ in range(REPEATS):
        operation = held_operation(destination)
        recorded = decide_together(operation, person(), second)
        operation.refresh_from_db()
        was_applied = recorded.kind == "applied"
        assert operation.state == ("applied" if was_applied else "abandoned")
        run = settled(operation.run)
        assert run.state == "completed"
        assert ("noted as c_1" in run.result) is was_applied
    assert Decision.objects.count() == REPEATS
    assert first_broken_entry() is None


def test_two_clicks_at_the_same_moment_decide_once_and_give_the_same(
    destination: RunningDestination,
) -> None:
    """A20."""
    ready_provider("desk", destination.url)
    for _ in range(5):
        hold = open_hold_of(held_operation(destination))
        answer = answer_on(hold, DecisionKind.APPLIED)
        given = at_once(*[partial(record_decision, hold.pk, person(), answer)] * 4)
        assert given == [Decision.objects.get(hold=hold)] * 4


def test_a_decision_waits_for_proof_that_is_being_written_and_is_then_refused(
    destination: RunningDestination,
) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("lookup_unavailable", times=None)
    operation = held_operation(destination, "replacement_worker")
    hold = open_hold_of(operation)
    destination.client.disarm()
    reviewer = person()
    with beside() as do:
        with transaction.atomic():
            reconciling.ask_again(operation.pk)
            deciding = do(
                lambda: record_decision(hold.pk, reviewer, answer_on(hold, DecisionKind.ABANDON))
            )
            wait_until_blocked()
        with pytest.raises(AlreadyDecided, match="Proof arrived meanwhile"):
            deciding.result(timeout=10)
    operation.refresh_from_db()
    assert operation.state == "applied"
    assert not Decision.objects.exists()


# --- the record of records --------------------------------------------------------------------


def test_entries_from_many_at_once_make_one_unbroken_chain() -> None:
    def add(actor: int) -> None:
        for number in range(5):
            with transaction.atomic():
                add_entry(f"user:{actor}", "decided", f"operation:{number}", {"n": number})

    given = at_once(*(lambda actor=actor: add(actor) for actor in range(8)))
    assert given == [None] * 8
    assert list(AuditEntry.objects.order_by("seq").values_list("seq", flat=True)) == list(
        range(1, 41)
    )
    assert first_broken_entry() is None


def test_an_entry_that_is_rolled_back_leaves_no_gap() -> None:
    with beside() as do:
        with transaction.atomic():
            add_entry("user:1", "decided", "operation:1", {})
            waiting = do(_add_one)
            wait_until_blocked()
            transaction.set_rollback(True)
        waiting.result(timeout=10)
    assert AuditEntry.objects.get().seq == 1
    assert first_broken_entry() is None


def _add_one() -> None:
    with transaction.atomic():
        add_entry("user:2", "decided", "operation:2", {})
