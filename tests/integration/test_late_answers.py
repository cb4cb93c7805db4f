"""Sends whose worker went quiet: what their late answers change, and what they must not."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.db.models.functions import Now

from reconciliation.core.states import DecisionKind
from reconciliation.models import Evidence, Hold, Operation, Provider, Transmission
from reconciliation.services import transmit as transmitting
from reconciliation.services import write_step
from reconciliation.services.ledger import operation_of
from reconciliation.services.reconcile import reconcile
from tests.claiming import expire_lease
from tests.deciding import decide
from tests.destination import RunningDestination
from tests.factories import advanced, open_hold_of, ready_provider, settled, started_run
from tests.sending import about_to_send, parking_contract, posts, the_operation
from workflows.models import Run
from workflows.services import kinds
from workflows.services.claims import claim_run
from workflows.services.clock import database_now
from workflows.services.executor import take
from workflows.services.ownership import Keeper

pytestmark = pytest.mark.django_db


def test_a_lost_send_is_unknown_to_whoever_takes_over(destination: RunningDestination) -> None:
    ready_provider("desk", destination.url)
    sender = about_to_send(started_run("ticket_triage"))
    expire_lease(sender.operation.run)
    run = settled(Run.objects.get())
    transmission = the_operation().transmissions.get()
    assert (run.state, transmission.state) == ("held", "unknown")
    assert transmission.detail_redacted == "the worker that sent it went quiet"
    assert transmission.ended_at is not None
    assert posts(destination) == []


def test_the_late_answer_of_a_stale_attempt_is_kept_as_evidence_and_changes_nothing_else(
    destination: RunningDestination,
) -> None:
    """A10, promise P2."""
    ready_provider("desk", destination.url)
    stale = about_to_send(started_run("ticket_triage"))
    outcome = stale.transmit()
    expire_lease(stale.operation.run)
    run = settled(Run.objects.get())
    before = Run.objects.values().get(), Transmission.objects.values().get()

    stale.record(outcome)
    operation = the_operation()
    assert (Run.objects.values().get(), Transmission.objects.values().get()) == before
    assert (run.state, operation.state) == ("held", "held")
    receipt = operation.evidence.get()
    assert (receipt.kind, receipt.completes) == ("receipt", True)
    assert receipt.resource == destination.client.effects()[0].resource_id


def test_a_late_answer_settles_what_is_held_by_itself(destination: RunningDestination) -> None:
    ready_provider("desk", destination.url)
    stale = about_to_send(started_run("ticket_triage"))
    outcome = stale.transmit()
    expire_lease(stale.operation.run)
    run = settled(Run.objects.get())
    stale.record(outcome)
    due = the_operation().due_at
    assert due is not None
    assert due <= database_now()  # the sweep brings it up
    reconcile(the_operation().pk)
    run = advanced(run)
    assert (run.state, the_operation().state) == ("completed", "verified")
    assert Hold.objects.get().state == "closed"
    assert len(posts(destination)) == 1


def test_proof_that_comes_while_the_run_is_held_for_its_lost_workers_leaves_no_hold_behind(
    destination: RunningDestination,
) -> None:
    """A run is held exactly as long as a hold of it is open: for whatever reason it is held."""
    ready_provider("desk", destination.url)
    stale = about_to_send(started_run("ticket_triage"))
    outcome = stale.transmit()
    for _ in range(2):  # two more workers, of which the first has given up the lost send
        expire_lease(stale.operation.run)
        claim = claim_run(stale.operation.run_id, Keeper().worker)
        assert claim is not None
        transmitting.give_up_lost_sends(the_operation(), claim)
    expire_lease(stale.operation.run)
    run = advanced(Run.objects.get())
    assert (run.state, run.failure["reason"]) == ("held", "workers_lost")

    stale.record(outcome)
    Operation.objects.filter(due_at__isnull=False).update(due_at=Now())
    reconcile(the_operation().pk)
    run.refresh_from_db()
    assert run.holds.filter(state="open").exists() is (run.state == "held")


def test_a_late_refusal_says_nothing_that_could_advance_or_end_a_run(
    destination: RunningDestination,
) -> None:
    ready_provider("payments", destination.url, contract_version=parking_contract())
    destination.client.arm("error_before", status=400)
    stale = about_to_send(started_run("refund"))
    outcome = stale.transmit()
    expire_lease(stale.operation.run)
    run = advanced(Run.objects.get())
    assert run.state == "waiting"
    stale.record(outcome)
    assert the_operation().evidence.get().kind == "rejection"
    assert (Run.objects.get().state, the_operation().state) == ("waiting", "unknown")


def test_an_answer_that_comes_during_the_take_over_is_used(
    destination: RunningDestination,
) -> None:
    ready_provider("desk", destination.url)
    stale = about_to_send(started_run("ticket_triage"))
    outcome = stale.transmit()
    expire_lease(stale.operation.run)
    later = claim_run(stale.operation.run_id, Keeper().worker)
    assert later is not None
    operation = operation_of(later)
    assert operation is not None
    stale.record(outcome)
    transmitting.give_up_lost_sends(operation, later)
    result = write_step.settle(later, operation)
    result.also()  # type: ignore[misc]
    assert the_operation().state == "verified"


@pytest.mark.parametrize("known", [False, True], ids=["held", "parked"])
def test_proof_that_comes_while_a_worker_hands_its_write_back_is_not_left_lying(
    known: bool, destination: RunningDestination
) -> None:
    """It was brought forward, and whoever holds or parks the write would take that back."""
    slug, workflow = ("payments", "refund") if known else ("desk", "ticket_triage")
    ready_provider(
        slug, destination.url, **({"contract_version": parking_contract()} if known else {})
    )
    stale = about_to_send(started_run(workflow))
    outcome = stale.transmit()
    expire_lease(stale.operation.run)
    later = claim_run(stale.operation.run_id, Keeper().worker)
    assert later is not None
    operation = operation_of(later)
    assert operation is not None
    transmitting.give_up_lost_sends(operation, later)
    result = write_step.settle(later, operation)
    assert isinstance(result, kinds.Park if known else kinds.Hold)

    stale.record(outcome)
    with pytest.raises(kinds.Overtaken), transaction.atomic():
        result.also()  # type: ignore[misc]
    take(later, Keeper())
    assert advanced(Run.objects.get()).state == "completed"
    assert not Hold.objects.exists()


# --- answers that do not agree ----------------------------------------------------------------


def test_the_words_of_a_person_do_not_contradict_a_provider(
    destination: RunningDestination,
) -> None:
    ready_provider("desk", destination.url)
    stale = about_to_send(started_run("ticket_triage"))
    outcome = stale.transmit()
    expire_lease(stale.operation.run)
    run = settled(Run.objects.get())
    decide(open_hold_of(the_operation()), DecisionKind.APPLIED, resource="seen by Ada in the desk")
    assert settled(run).state == "completed"
    stale.record(outcome)
    assert Provider.objects.get().contradicted_at is None


def test_two_resources_of_one_operation_stop_every_replay_to_the_provider(
    destination: RunningDestination,
) -> None:
    provider = ready_provider("payments", destination.url)
    sender = about_to_send(started_run("refund"))
    sender.record(sender.transmit())
    outcome = sender.transmit()
    other = outcome.record.__class__(**{**outcome.record.__dict__, "resource": "re_another"})
    sender.record(outcome.__class__(outcome.report, other))
    provider.refresh_from_db()
    assert provider.contradicted_at is not None
    assert "re_another" in provider.contradiction
    assert Evidence.objects.filter(kind="conflict").count() == 1


def test_an_effect_of_what_was_refused_opens_a_hold_and_stops_every_replay(
    destination: RunningDestination,
) -> None:
    """Its run has failed, since the provider said that nothing was done."""
    provider = ready_provider("payments", destination.url)
    stale = about_to_send(started_run("refund"))
    outcome = stale.transmit()
    destination.client.arm("error_before", status=402)
    later = stale.transmit()
    stale.record(later)
    expire_lease(stale.operation.run)
    assert settled(stale.operation.run).state == "failed"
    assert the_operation().state == "rejected"

    stale.record(outcome)
    provider.refresh_from_db()
    assert provider.contradicted_at is not None
    assert Hold.objects.get(state="open", operation=the_operation()).reason == "conflict_later"
    assert the_operation().state == "rejected"
