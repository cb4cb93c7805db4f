"""Two workers at once, on connections of their own: one wins, the other is told, nothing is lost.

Where the order matters, a test waits until the other backend is observed to be blocked; it never
sleeps and hopes.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError, connection, transaction
from pytest_django import Settings

from reconciliation.core.errors import DispatchTurnedOff
from reconciliation.core.facts import Dispatch, Wait, WaitReason
from reconciliation.models import Operation, Provider, Transmission
from reconciliation.services import reconcile as reconciling
from reconciliation.services.dispatch import set_dispatch
from reconciliation.services.facts import load_facts
from reconciliation.services.reconcile import reconcile
from reconciliation.services.write_step import park
from tests.claiming import (
    ONCE,
    attempts,
    claim_at_write,
    claimed,
    commit,
    expire_lease,
    ready_run,
    worker,
)
from tests.destination import RunningDestination
from tests.factories import advanced, person, ready_provider, started_run, tenant, wait_until
from tests.racing import at_once, beside, wait_until_blocked
from tests.sending import begin, opened
from tests.waiting import LIMIT_SECONDS, wait_for
from workflows.core.definitions import Workflow
from workflows.core.errors import LostOwnership, StartConflict
from workflows.core.states import RunState
from workflows.models import Attempt, Run
from workflows.registry import registry
from workflows.services import executor, kinds
from workflows.services.claims import Claim, claim_next, claim_run, release
from workflows.services.executor import advance
from workflows.services.ownership import Keeper
from workflows.services.run_view import RunView
from workflows.services.runs import Start, start, start_many
from workflows.services.sweep import due_runs

pytestmark = pytest.mark.usefixtures("committed_db")

# --- claims -----------------------------------------------------------------------------------

ORDER = {"number": "ORD-7001", "refundable": "125.00"}


def claim_together(run: Run) -> None:
    given = at_once(*(partial(claim_run, run.pk, worker()) for _ in range(8)))
    (winner,) = (claim for claim in given if claim is not None)
    run.refresh_from_db()
    assert run.lease_owner == winner.worker
    assert (run.attempt, attempts(run)[-1][2]) == (winner.attempt, "running")


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
        assert do(lambda: claim_run(run.pk, uuid4())).result(timeout=LIMIT_SECONDS) is None


def commit_together(run: Run) -> None:
    claim = claimed(run)
    given = at_once(*[lambda: commit(claim, ORDER)] * 4)
    assert sum(isinstance(each, LostOwnership) for each in given) == 3
    assert run.attempts.outputs().count() == 1
    assert [state for *_, state in attempts(run)] == ["committed", "running"]


def test_of_two_commits_of_one_claim_one_wins() -> None:
    """A01: the same message, delivered twice to one worker."""
    for _ in range(10):
        commit_together(started_run())


def commit_and_take_over(run: Run) -> None:
    claim, other = claimed(run), worker()
    expire_lease(run)
    committed, taken = at_once(
        lambda: commit(claim, ORDER, go_on=False), lambda: claim_run(run.pk, other)
    )
    if isinstance(committed, LostOwnership):
        assert taken.step.name == "load_order"
        assert not run.attempts.outputs().exists()
    else:
        # claimed at the next step, or found locked and left to the sweep
        assert committed is None
        assert taken is None or taken.step.name == "create_refund"
        assert run.attempts.outputs().count() == 1


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
    keeper.begin(claim.attempt, claim.step.timeout.total_seconds())
    try:
        wait_for(renewed, "its lease is renewed")
        assert keeper.may_claim()
    finally:
        keeper.stop()
    assert not keeper.may_claim()


def test_a_session_that_ends_under_a_step_is_an_outage_and_not_its_failure() -> None:
    def ends_it(run: RunView) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    run = ready_run(ONCE, ends_it)
    with pytest.raises(OperationalError):
        advance(run.pk, Keeper())
    connection.close()
    run.refresh_from_db()
    assert (run.state, run.failure) == ("running", None)


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


def test_what_is_claimed_in_a_transaction_that_is_undone_was_never_claimed() -> None:
    """The engine's statements belong to the caller's transaction, also as its first ones."""
    run, other = started_run(), worker()
    with transaction.atomic():
        assert claim_run(run.pk, other)
        transaction.set_rollback(True)
    run.refresh_from_db()
    assert (run.state, run.fence) == ("ready", 0)


def test_what_the_server_has_been_made_to_forget_is_prepared_anew() -> None:
    first, second = started_run(), started_run()
    assert claim_run(first.pk, worker())
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")
    assert claim_run(second.pk, worker())


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


def test_two_calls_that_start_many_with_the_same_keys_start_each_once_and_wait_for_no_circle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("workflows.services.runs.BATCH", 50)
    tenant()
    refund = {"order": "ORD-7001", "amount": "125.00"}
    starts = [Start(refund, start_key=f"k-{place}") for place in range(300)]

    def begin(order: list[Start]) -> set[Any]:
        return {run.pk for run in start_many("refund", order, tenant=tenant())}

    given = at_once(lambda: begin(starts), lambda: begin(starts[::-1]))
    assert given[0] == given[1] == set(Run.objects.values_list("pk", flat=True))
    assert len(given[0]) == 300


def test_four_threads_share_a_backlog_and_take_each_run_once() -> None:
    ran: list[Any] = []
    first = ready_run(ONCE, lambda run: ran.append(run.id))
    start_many(ONCE.name, [Start({"act": "act"})] * 99, tenant=tenant())
    at_once(*[partial(executor.work_on, first.pk, Keeper())] * 4)
    assert set(Run.objects.values_list("state", flat=True)) == {"completed"}
    assert len(ran) == len(set(ran)) == 100
    assert Attempt.objects.count() == 200
    assert set(Attempt.objects.values_list("state", flat=True)) == {"committed"}


def test_what_another_one_has_locked_is_not_waited_for() -> None:
    first, second = started_run(), started_run()
    with beside() as do, transaction.atomic():
        Run.objects.select_for_update().get(pk=first.pk)
        claim = do(lambda: claim_next(uuid4())).result(timeout=LIMIT_SECONDS)
    assert claim.run == second.pk


def test_many_sweeps_at_once_tell_of_each_run_once() -> None:
    runs = {started_run().pk for _ in range(50)}
    told = at_once(*[partial(due_runs, again=60)] * 6)
    told += [due_runs(again=60) for _ in range(3)]  # what they left to one another
    assert Counter(run for each in told for run in each) == Counter(runs)


# --- sends ------------------------------------------------------------------------------------


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
            wait_until_blocked(sending)
        with pytest.raises(DispatchTurnedOff):
            sending.result(timeout=LIMIT_SECONDS)
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
            wait_until_blocked(turning)
        assert turning.result(timeout=LIMIT_SECONDS) == 1
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
    assert Transmission.objects.get().attempt == present.attempt


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
    parked = park(operation, None, WaitReason.DISPATCH, load_facts(operation))
    operation_is_locked = threading.Event()

    def also() -> None:
        parked.also()  # type: ignore[union-attr]
        operation_is_locked.set()
        wait_until_blocked()  # the reconciliation has the run, and wants the operation

    def park_it() -> Any:
        return release(claim, RunState.WAITING, failure={"reason": "x", "message": "x"}, also=also)

    def look_at_it() -> None:
        assert operation_is_locked.wait(timeout=LIMIT_SECONDS)
        reconciling.follow(reconciling.load(operation.pk), Wait(None, WaitReason.DISPATCH), ())

    given = at_once(park_it, look_at_it)
    assert [each for each in given if isinstance(each, OperationalError)] == []
