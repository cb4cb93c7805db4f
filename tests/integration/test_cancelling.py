"""Cancelling a run: at once where nothing is open elsewhere, else when that is settled.

None of these tests has a worker that is alive, but where it says so.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db.models.functions import Now
from django.test import TestCase

from reconciliation.core.errors import RunCancelled
from reconciliation.core.states import DecisionKind
from reconciliation.models import AuditEntry, Hold, Provider, Transmission
from reconciliation.services import write_step
from reconciliation.services.offers import offers_on
from reconciliation.services.reconcile import ask_again, reconcile
from tests.claiming import (
    ONCE,
    RESTED,
    RETRIED,
    acts,
    attempts,
    claim_at_write,
    claimed,
    commit,
    expire_lease,
    lose_worker,
    raising,
    ready_run,
    worker,
)
from tests.deciding import ABANDON, APPLIED, SEND_AGAIN, decide
from tests.destination import RunningDestination
from tests.factories import (
    administrator,
    advanced,
    open_hold_of,
    ready_provider,
    started_run,
    tenant,
    wait_until,
)
from tests.hinting import hinted
from tests.sending import (
    about_to_send,
    begin,
    effects,
    lagging_contract,
    ledger,
    opened,
    parking_contract,
    posts,
    proving_contract,
    the_operation,
)
from workflows.core.definitions import Child, Workflow
from workflows.core.errors import LostOwnership, RunIsOver, UsageError
from workflows.core.retry import MAX_LOST_ATTEMPTS
from workflows.models import Run
from workflows.registry import registry
from workflows.services import ending
from workflows.services.claims import claim_next, claim_run
from workflows.services.ending import end_cancelled
from workflows.services.executor import take
from workflows.services.kinds import Cancel
from workflows.services.ownership import Keeper
from workflows.services.results import result_of
from workflows.services.run_view import RunView
from workflows.services.runs import start
from workflows.services.stopping import cancel_run, pause_all, pause_run
from workflows.services.sweep import due_runs

pytestmark = pytest.mark.django_db

BY, WHY = "ada", "The customer has called it off."


def cancel(run: Run) -> str:
    outcome = cancel_run(run.pk, by=BY, reason=WHY)
    run.refresh_from_db()
    return outcome


def is_cancelled(run: Run) -> bool:
    """Whether `run` has ended by its cancellation, says so, and can never go on."""
    run.refresh_from_db()
    if run.state != "cancelled":
        return False
    assert run.failure == {"reason": "cancelled", "message": "Cancelled by ada."}
    assert run.finished_at is not None
    assert (run.lease_owner, run.lease_expires_at) == (None, None)
    assert claim_run(run.pk, worker()) is None
    assert run.pk not in due_runs()
    return True


def told_of_by(act: Callable[[], object]) -> list[UUID]:
    """The runs that workers are told of when what `act` does is committed."""
    hinted()
    with TestCase.captureOnCommitCallbacks(execute=True):
        act()
    return hinted()


# --- nothing is open elsewhere ----------------------------------------------------------------

sleeper = Workflow("tests.cancelled_sleeper")


@sleeper.sleep()
def rest(run: RunView) -> timedelta:
    return timedelta(hours=1)


def resting() -> Run:
    return advanced(ready_run(RESTED, raising(TimeoutError())))


def sleeping() -> Run:
    registry.add(sleeper)
    return advanced(start(sleeper.name, {}, tenant=tenant()))


def held() -> Run:
    run = ready_run()
    for _ in range(MAX_LOST_ATTEMPTS):
        lose_worker(run)
    return advanced(run)


def running() -> Run:
    run = ready_run()
    claimed(run)
    run.refresh_from_db()
    return run


def left_lying() -> Run:
    run = ready_run()
    lose_worker(run)
    run.refresh_from_db()
    return run


def paused() -> Run:
    run = ready_run()
    pause_run(run.pk, by=BY)
    return run


def of_a_paused_workflow() -> Run:
    run = ready_run()
    pause_all(by=BY, reason=WHY, workflow=run.workflow)
    return run


def of_a_version_that_is_not_here() -> Run:
    run = ready_run()
    Run.objects.update(version=99)
    run.refresh_from_db()
    return run


@pytest.mark.parametrize(
    ("run_of", "state"),
    [
        (ready_run, "ready"),
        (resting, "ready"),
        (sleeping, "waiting"),
        (held, "held"),
        (running, "running"),
        (left_lying, "running"),
        (paused, "ready"),
        (of_a_paused_workflow, "ready"),
        (of_a_version_that_is_not_here, "ready"),
    ],
)
def test_a_run_that_has_nothing_open_elsewhere_ends_at_once(
    run_of: Callable[[], Run], state: str
) -> None:
    run = run_of()
    assert run.state == state
    assert cancel(run) == "cancelled"
    assert is_cancelled(run)
    assert result_of(run) is None


def test_the_record_says_who_did_it_and_why() -> None:
    run = ready_run()
    cancel(run)
    assert (run.cancel_asked_by, run.cancel_asked_at is not None) == (BY, True)
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.verb, entry.object) == (BY, "run cancelled", f"run:{run.pk}")
    assert entry.detail == {"reason": WHY}


def test_the_hold_of_a_held_run_is_closed_and_its_queue_is_rid_of_it() -> None:
    run = held()
    hold = Hold.objects.get()
    assert hold.state == "open"
    cancel(run)
    hold.refresh_from_db()
    assert (hold.state, hold.closed_at is not None) == ("closed", True)
    closed = AuditEntry.objects.get(verb="hold closed: the run was cancelled")
    assert closed.detail == {"by": BY, "holds": [str(hold.pk)]}


def test_the_purge_looks_at_a_cancelled_run_too() -> None:
    run = ready_run()
    cancel(run)
    assert run.purge_at is not None


@pytest.mark.parametrize("end", [lambda _: 1, raising(ValueError())], ids=["completed", "failed"])
def test_a_run_that_is_over_is_not_cancelled(end: Callable[[RunView], int]) -> None:
    run = advanced(ready_run(ONCE, end))
    before = Run.objects.values().get()
    with pytest.raises(RunIsOver, match=f"run {run.pk} is {run.state} already"):
        cancel(run)
    assert Run.objects.values().get() == before
    assert not AuditEntry.objects.exists()


def test_a_run_is_cancelled_once() -> None:
    run = ready_run()
    cancel(run)
    before = Run.objects.values().get()
    with pytest.raises(RunIsOver, match="is cancelled already"):
        cancel_run(run.pk, by="grace")
    assert Run.objects.values().get() == before
    assert AuditEntry.objects.count() == 1


def test_a_run_that_is_not_there_is_not_cancelled() -> None:
    with pytest.raises(Run.DoesNotExist):
        cancel_run(uuid4(), by=BY)
    with pytest.raises(UsageError):
        cancel_run(ready_run().pk, by="")


# --- a step that is under way -----------------------------------------------------------------


def cancelling(run: Run, value: Any) -> Callable[[RunView], Any]:
    """A step that is under way when its run is cancelled, and brings `value` or raises it."""

    def work(view: RunView) -> Any:
        assert cancel_run(run.pk, by=BY) == "cancelled"
        if isinstance(value, Exception):
            raise value
        return value

    return work


def test_what_a_step_brings_too_late_is_kept_as_evidence_and_goes_no_further() -> None:
    run = ready_run()
    acts["act"] = cancelling(run, {"a": 1})
    run = advanced(run)
    assert is_cancelled(run)
    assert attempts(run) == [("act", 1, "superseded")]
    late = run.attempts.get()
    assert (late.output, late.output_form) == ({"a": 1}, "plain")
    assert late.error == "the run was cancelled by ada meanwhile"
    assert (late.fence, late.ended_at is not None) == (1, True)
    assert not run.attempts.outputs().exists()  # nobody reads it
    assert result_of(run) is None


@pytest.mark.parametrize(
    "error", [ValueError("no such order"), TimeoutError("again, please")], ids=repr
)
def test_a_step_that_fails_too_late_neither_fails_the_run_nor_is_tried_again(
    error: Exception,
) -> None:
    run = ready_run(RETRIED)
    acts["act"] = cancelling(run, error)
    run = advanced(run)
    assert is_cancelled(run)
    assert attempts(run) == [("act", 1, "superseded")]
    assert run.attempts.get().output_form is None


def test_an_output_that_cannot_be_stored_opens_no_hold_for_a_run_that_was_cancelled() -> None:
    run = ready_run()
    acts["act"] = cancelling(run, object())
    assert is_cancelled(advanced(run))
    assert not Hold.objects.exists()


def test_the_last_step_of_a_cancelled_run_does_not_complete_it() -> None:
    run = ready_run()
    claim = commit(claimed(run), 1)
    assert claim is not None
    cancel(run)
    with pytest.raises(LostOwnership):
        commit(claim, 2)
    assert is_cancelled(run)
    assert run.attempts.get(step="act").state == "committed"


def test_a_worker_that_went_quiet_is_not_replaced() -> None:
    run = left_lying()
    cancel(run)
    assert claim_next(worker()) is None
    assert attempts(run) == [("act", 1, "lost")]


# --- a write that is under way ----------------------------------------------------------------


def test_a_write_in_mid_call_is_settled_first_and_the_run_goes_no_further(
    destination: RunningDestination,
) -> None:
    """P7: what was sent is on record before the run ends; its worker is alive."""
    ready_provider("payments", destination.url)
    run = started_run("refund")
    sender = about_to_send(run)
    outcome = sender.transmit()
    assert cancel(run) == "asked"
    assert (run.state, end_cancelled()) == ("running", 0)

    sender.record(outcome)
    take(sender.claim, Keeper())
    assert is_cancelled(run)
    operation = the_operation()
    assert (operation.state, effects(destination)) == ("verified", 1)
    receipt = run.attempts.outputs().get(step="create_refund")
    assert receipt.output == {"operation": str(operation.pk), "resource": operation.resource}
    assert [step for step, *_ in attempts(run)] == ["load_order", "create_refund"]


def test_a_write_whose_answer_is_lost_in_mid_call_is_not_sent_again(
    destination: RunningDestination,
) -> None:
    ready_provider("payments", destination.url)
    destination.client.arm("apply_then_drop")
    run = started_run("refund")
    sender = about_to_send(run)
    outcome = sender.transmit()
    cancel(run)
    sender.record(outcome)
    take(sender.claim, Keeper())
    run.refresh_from_db()
    hold = open_hold_of(the_operation())
    assert (run.state, hold.reason) == ("held", "run_cancelled")
    assert "nothing more is sent" in hold.message
    assert (ledger(the_operation()), len(posts(destination))) == ([("first", "unknown")], 1)


def test_a_write_that_is_refused_for_now_in_mid_call_is_not_sent_again(
    destination: RunningDestination,
) -> None:
    ready_provider("payments", destination.url)
    destination.client.arm("error_before;status=429;type=rate_limit_error")
    run = started_run("refund")
    sender = about_to_send(run)
    outcome = sender.transmit()
    cancel(run)
    sender.record(outcome)
    take(sender.claim, Keeper())
    assert is_cancelled(run)
    assert (the_operation().state, len(posts(destination))) == ("abandoned", 1)


def test_a_write_that_was_about_to_be_sent_is_not(destination: RunningDestination) -> None:
    """The worker has decided to send, and has not written it down yet."""
    ready_provider("payments", destination.url)
    run = started_run("refund")
    claim = claim_at_write(run)
    operation = opened(claim)
    assert cancel(run) == "cancelled"
    with pytest.raises(LostOwnership):
        begin(operation, claim)
    take(claim, Keeper())
    assert is_cancelled(run)
    assert (the_operation().state, posts(destination)) == ("abandoned", [])


def test_a_write_that_is_asked_to_end_just_before_it_is_sent_is_not_sent(
    destination: RunningDestination,
) -> None:
    """Its end was asked for by its parent: that the sweep has not carried out yet."""
    ready_provider("payments", destination.url)
    run = started_run("refund")
    claim = claim_at_write(run)
    Run.objects.filter(pk=run.pk).update(cancel_asked_at=Now(), cancel_asked_by=BY)
    take(claim, Keeper())
    assert is_cancelled(run)
    assert (the_operation().state, posts(destination)) == ("abandoned", [])


def test_a_send_that_begins_just_then_does_not_begin(destination: RunningDestination) -> None:
    """The worker has looked before its end was asked for, and looks once more as it begins."""
    ready_provider("payments", destination.url)
    run = started_run("refund")
    claim = claim_at_write(run)
    operation = opened(claim)
    assert not operation.run.cancel_asked_at
    Run.objects.filter(pk=run.pk).update(cancel_asked_at=Now(), cancel_asked_by=BY)
    with pytest.raises(RunCancelled):
        begin(operation, claim)
    assert isinstance(write_step.settle(claim, operation), Cancel)
    assert not Transmission.objects.exists()
    assert posts(destination) == []


def test_a_write_whose_worker_went_quiet_is_settled_by_another_one(
    destination: RunningDestination,
) -> None:
    ready_provider("machines", destination.url)
    run = started_run("replacement_worker")
    sender = about_to_send(run)
    sender.transmit()  # and its worker dies
    cancel(run)
    assert end_cancelled() == 0
    expire_lease(run)
    assert due_runs() == [run.pk]
    run = advanced(run)
    assert is_cancelled(run)
    assert (the_operation().state, effects(destination)) == ("verified", 1)


# --- a write that waits -----------------------------------------------------------------------


def settle(run: Run) -> Run:
    """What workers and sweep do while the outcome of a write is open."""
    due = the_operation().due_at
    assert due is not None
    wait_until(due)
    reconcile(the_operation().pk)
    return advanced(run)


def test_what_is_only_intended_is_given_up_at_once() -> None:
    ready_provider("payments", dispatch="paused")
    run = advanced(started_run("refund"))
    assert (run.state, the_operation().state) == ("waiting", "intended")
    assert cancel(run) == "cancelled"
    assert is_cancelled(run)
    operation = the_operation()
    assert (operation.state, operation.due_at) == ("abandoned", None)
    assert operation.settled_at is not None
    entry = AuditEntry.objects.get(object=f"operation:{operation.pk}")
    assert (entry.verb, entry.detail) == ("abandoned: its run was cancelled", {"by": BY})


def test_what_is_held_before_it_was_ever_sent_is_settled_by_its_person(
    destination: RunningDestination,
) -> None:
    provider = ready_provider("payments", destination.url)
    Provider.objects.filter(pk=provider.pk).update(default_queue=None)
    run = advanced(started_run("refund"))
    assert open_hold_of(the_operation()).reason == "not_ready"
    cancel(run)
    decide(open_hold_of(the_operation()), ABANDON, by=administrator())
    assert end_cancelled() == 1
    assert is_cancelled(run)
    assert posts(destination) == []


def test_a_lost_answer_is_looked_up_before_the_run_ends(destination: RunningDestination) -> None:
    ready_provider("machines", destination.url, contract_version=lagging_contract())
    destination.client.arm("apply_then_drop")
    run = advanced(started_run("replacement_worker"))
    assert (run.state, the_operation().state) == ("waiting", "unknown")
    assert cancel(run) == "asked"
    assert (run.state, end_cancelled()) == ("waiting", 0)

    run = settle(run)
    assert is_cancelled(run)
    operation = the_operation()
    assert (operation.state, effects(destination)) == ("verified", 1)
    receipt = run.attempts.outputs().get(step="create_machine").output
    assert receipt == {"operation": str(operation.pk), "resource": operation.resource}
    assert len(posts(destination)) == 1


def test_a_write_that_is_proven_not_done_is_given_up(destination: RunningDestination) -> None:
    ready_provider("machines", destination.url, contract_version=proving_contract())
    destination.client.arm("drop_before")
    run = advanced(started_run("replacement_worker"))
    assert (run.state, the_operation().state) == ("waiting", "unknown")
    assert cancel(run) == "asked"
    while (run := settle(run)).state == "waiting":
        pass
    assert is_cancelled(run)
    assert the_operation().state == "abandoned"
    assert the_operation().evidence.filter(kind="absence").exists()
    assert not Hold.objects.exists()
    assert (len(posts(destination)), effects(destination)) == (1, 0)


def test_a_write_that_only_a_replay_could_settle_is_held_and_nothing_more_is_sent(
    destination: RunningDestination,
) -> None:
    run = cancelled_with_a_lost_answer(destination)
    hold = open_hold_of(the_operation())
    assert (run.state, hold.reason) == ("held", "run_cancelled")
    assert end_cancelled() == 0
    assert len(posts(destination)) == 1


def cancelled_with_a_lost_answer(destination: RunningDestination) -> Run:
    ready_provider("payments", destination.url, contract_version=parking_contract())
    destination.client.arm("apply_then_drop")
    run = advanced(started_run("refund"))
    assert (run.state, the_operation().state) == ("waiting", "unknown")
    assert cancel(run) == "asked"
    return settle(run)


def test_such_a_hold_offers_no_second_send(destination: RunningDestination) -> None:
    cancelled_with_a_lost_answer(destination)
    offers = {offer.kind: offer for offer in offers_on(open_hold_of(the_operation()))}
    again = offers[SEND_AGAIN]
    assert not again.allowed
    assert again.why_not == "The run's end was asked for: nothing more is sent for it."
    assert offers[ABANDON].allowed


@pytest.mark.parametrize(
    ("kind", "state"), [(APPLIED, "verified"), (ABANDON, "abandoned")], ids=str
)
def test_what_a_person_decides_on_it_ends_the_run(
    kind: DecisionKind, state: str, destination: RunningDestination
) -> None:
    run = cancelled_with_a_lost_answer(destination)
    (done,) = destination.client.effects()
    resource = done.resource_id if kind is APPLIED else ""
    decide(open_hold_of(the_operation()), kind, resource=resource)
    run = advanced(run)
    assert is_cancelled(run)
    assert the_operation().state == state
    assert not run.attempts.filter(step="tell_customer").exists()
    assert len(posts(destination)) == 1


def test_an_abandoned_write_ends_the_run_without_a_worker(destination: RunningDestination) -> None:
    run = cancelled_with_a_lost_answer(destination)
    decide(open_hold_of(the_operation()), ABANDON)
    assert end_cancelled() == 1
    assert is_cancelled(run)


def test_proof_that_comes_while_it_is_held_ends_the_run(destination: RunningDestination) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("apply_then_drop")
    destination.client.arm("lookup_unavailable", times=None)
    run = started_run("replacement_worker")
    while advanced(run).state != "held":
        run = settle(run)
    assert cancel(run) == "asked"
    destination.client.disarm()
    ask_again(the_operation().pk)
    run = advanced(run)
    assert is_cancelled(run)
    assert (the_operation().state, Hold.objects.get().state) == ("verified", "closed")


def test_asking_twice_changes_nothing_while_something_is_open(
    destination: RunningDestination,
) -> None:
    run = cancelled_with_a_lost_answer(destination)
    before = Run.objects.values().get()
    assert cancel_run(run.pk, by="grace") == "asked"
    assert Run.objects.values().get() == before  # the first one's name stays
    assert AuditEntry.objects.filter(verb="run cancelled").count() == 1


def test_a_paused_run_is_settled_and_ends_all_the_same(destination: RunningDestination) -> None:
    """Its cancellation counts, not its pause: the sweep tells of it until a worker has come."""
    ready_provider("machines", destination.url, contract_version=lagging_contract())
    destination.client.arm("apply_then_drop")
    run = advanced(started_run("replacement_worker"))
    pause_run(run.pk, by=BY)
    cancel(run)
    due = the_operation().due_at
    assert due is not None
    wait_until(due)
    reconcile(the_operation().pk)
    run.refresh_from_db()
    assert run.state == "ready"
    assert run.pk in told_of_by(end_cancelled)
    assert is_cancelled(advanced(run))


def test_a_write_whose_worker_went_quiet_is_settled_though_its_workflow_is_paused(
    destination: RunningDestination,
) -> None:
    ready_provider("machines", destination.url)
    run = started_run("replacement_worker")
    about_to_send(run).transmit()  # and its worker dies
    pause_all(by=BY, reason=WHY, workflow=run.workflow)
    cancel(run)
    expire_lease(run)
    assert run.pk in told_of_by(end_cancelled)
    assert is_cancelled(advanced(run))
    assert the_operation().state == "verified"


# --- the sweep --------------------------------------------------------------------------------


def asked(run: Run) -> Run:
    """Its end was asked for, and not carried out yet."""
    Run.objects.filter(pk=run.pk).update(cancel_asked_at=Now(), cancel_asked_by=BY)
    return run


@pytest.mark.parametrize("run_of", [ready_run, sleeping, held, running])
def test_what_was_asked_for_the_sweep_carries_out(run_of: Callable[[], Run]) -> None:
    run = asked(run_of())
    assert end_cancelled() == 1
    assert is_cancelled(run)
    assert end_cancelled() == 0


def test_a_worker_that_comes_first_ends_it_and_does_no_step() -> None:
    ran: list[int] = []
    run = asked(ready_run(ONCE, lambda _: ran.append(1)))
    run = advanced(run)
    assert is_cancelled(run)
    assert ran == []


def test_a_step_that_is_under_way_when_its_end_is_asked_for_is_the_last() -> None:
    """It commits before the sweep comes by: nothing of it is lost, and nothing follows."""
    run = ready_run()

    def work(view: RunView) -> int:
        asked(run)
        return 7

    acts["act"] = work
    run = advanced(run)
    assert is_cancelled(run)
    assert attempts(run) == [("act", 1, "committed")]
    assert run.attempts.outputs().get().output == 7


def test_those_that_have_something_to_settle_do_not_keep_others_from_their_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ending, "BATCH", 1)
    ready_provider("payments")
    first = started_run("refund")
    about_to_send(first)  # its worker is at it
    asked(first)
    run = asked(ready_run())
    assert any(end_cancelled() for _ in range(100))
    assert is_cancelled(run)
    first.refresh_from_db()
    assert first.state == "running"


# --- children ---------------------------------------------------------------------------------

family = Workflow("tests.family")
grown = Workflow("tests.grown")


@family.children(at_once=2)
def bring_up(run: RunView) -> list[Child]:
    return [Child("tests.grown", {"act": "act"}) for _ in range(3)]


@grown.children()
def bring_up_too(run: RunView) -> list[Child]:
    return [Child(ONCE.name, {"act": "act"})]


@pytest.fixture
def parent() -> Run:
    """A run that waits for three, of whom one is ready, one waits for a child of its own, and one
    for its turn."""
    for workflow in (ONCE, grown, family):
        registry.add(workflow)
    run = advanced(start("tests.family", {}, tenant=tenant()))
    first = run.children.order_by("parent_index")[0]
    assert advanced(first).state == "waiting"
    assert [child.state for child in run.children.order_by("parent_index")] == [
        "waiting",
        "ready",
        "waiting",
    ]
    return run


def test_the_runs_that_it_waits_for_are_cancelled_too(parent: Run) -> None:
    assert cancel(parent) == "cancelled"
    assert is_cancelled(parent)
    while end_cancelled():
        pass
    others = Run.objects.exclude(pk=parent.pk)
    assert others.count() == 4
    assert all(is_cancelled(run) for run in others)


def test_however_many_they_are_one_turn_of_the_sweep_ends_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In batches, those of paused tenants and of one that is being worked on among them."""
    monkeypatch.setattr(ending, "BATCH", 7)
    monkeypatch.setattr(ending, "TURN_SECONDS", 60.0)  # on a slow machine too
    large = Workflow("tests.large_family")

    @large.children()
    def bring_up_many(run: RunView) -> list[Child]:
        return [Child(ONCE.name, {"act": "act"}) for _ in range(30)]

    for workflow in (ONCE, large):
        registry.add(workflow)
    parent = advanced(start(large.name, {}, tenant=tenant()))
    working, paused_one, *_ = parent.children.all()
    claimed(working)
    pause_run(paused_one.pk, by=BY)
    assert cancel(parent) == "cancelled"
    assert end_cancelled() == 30
    assert all(is_cancelled(child) for child in parent.children.all())
    assert attempts(working) == [("act", 1, "lost")]


def test_a_child_that_is_cancelled_is_an_end_that_its_parent_sees(parent: Run) -> None:
    (_, second, _) = parent.children.order_by("parent_index")
    cancel(second)
    assert is_cancelled(second)
    third = parent.children.get(parent_index=2)
    assert third.state == "ready"  # its turn has come
    second.refresh_from_db()
    assert second.end_seen_at is not None


def test_a_parent_goes_on_when_its_last_child_is_cancelled(parent: Run) -> None:
    for child in parent.children.all():
        cancel(child)
    while end_cancelled():
        pass
    ends = result_of(advanced(parent))
    assert [end["state"] for end in ends] == ["cancelled"] * 3
    assert {end["failure"] for end in ends} == {"Cancelled by ada."}


def test_a_worker_that_ends_a_run_asks_for_the_end_of_what_it_started(parent: Run) -> None:
    asked = {"cancel_asked_at": Now(), "cancel_asked_by": BY}
    Run.objects.filter(pk=parent.pk).update(state="ready", **asked)
    assert advanced(parent).state == "cancelled"
    assert set(parent.children.values_list("cancel_asked_by", flat=True)) == {BY}


def test_a_child_that_has_a_write_open_is_settled_before_it_ends(
    destination: RunningDestination,
) -> None:
    sending = Workflow("tests.sending_family")

    @sending.children()
    def refund_all(run: RunView) -> list[Child]:
        return [Child("refund", {"order": "ORD-7001", "amount": "125.00"})]

    registry.add(sending)
    ready_provider("payments", destination.url)
    parent = advanced(start(sending.name, {}, tenant=tenant()))
    child = parent.children.get()
    sender = about_to_send(child)
    outcome = sender.transmit()
    cancel(parent)
    assert is_cancelled(parent)
    assert end_cancelled() == 0
    sender.record(outcome)
    take(sender.claim, Keeper())
    assert is_cancelled(child)
    assert the_operation().state == "verified"
