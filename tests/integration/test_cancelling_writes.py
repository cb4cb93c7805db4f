"""Cancelling a run that has a write open: that is settled first, and nothing more is sent.

None of these tests has a worker that is alive, but where it says so.
"""

from __future__ import annotations

import pytest
from django.db.models.functions import Now

from reconciliation.core.errors import RunCancelled
from reconciliation.core.states import DecisionKind
from reconciliation.models import AuditEntry, Hold, Provider, Transmission
from reconciliation.services import write_step
from reconciliation.services.offers import ground_of
from reconciliation.services.reconcile import ask_again, reconcile
from tests.cancelling import BY, WHY, cancel, is_cancelled, told_of_by
from tests.claiming import attempts, claim_at_write, expire_lease
from tests.deciding import ABANDON, APPLIED, SEND_AGAIN, decide
from tests.destination import RunningDestination
from tests.factories import (
    administrator,
    advanced,
    open_hold_of,
    ready_provider,
    started_run,
    wait_until,
)
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
from workflows.core.errors import LostOwnership
from workflows.models import Run
from workflows.services.ending import end_cancelled
from workflows.services.executor import take
from workflows.services.kinds import Cancel
from workflows.services.ownership import Keeper
from workflows.services.stopping import cancel_run, pause_all, pause_run
from workflows.services.sweep import due_runs

pytestmark = pytest.mark.django_db

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
    offers = {offer.kind: offer for offer in ground_of(open_hold_of(the_operation())).offers}
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
