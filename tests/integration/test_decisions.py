"""Decisions that are made: what each kind does, and that it counts whatever comes after."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from reconciliation.models import AuditEntry, Decision, Hold, Operation, Provider
from reconciliation.sealing import seal
from reconciliation.services.audit import first_broken_entry
from reconciliation.services.reconcile import ask_again
from tests.deciding import (
    ABANDON,
    APPLIED,
    FAIL_RUN,
    KEEP_HOLDING,
    SEND_AGAIN,
    TRY_AGAIN,
    decide,
    run_hold,
    states,
)
from tests.destination import RunningDestination
from tests.factories import advanced, open_hold_of, person, ready_provider, settled, started_run
from tests.tampering import tamper
from workflows.core.errors import IllegalTransition
from workflows.models.ids import new_id
from workflows.services.claims import claim_run
from workflows.services.clock import database_now
from workflows.services.ownership import Keeper
from workflows.services.results import result_of

pytestmark = pytest.mark.django_db


def keyed_hold(destination: RunningDestination) -> Hold:
    """The open hold of a write that was refused for now until the budget was spent."""
    ready_provider("payments", destination.url)
    destination.client.arm("error_before", status=429, times=4)
    settled(started_run("refund"))
    return open_hold_of(Operation.objects.get())


# --- each kind moves operation and run --------------------------------------------------------


def test_it_was_applied_lets_the_run_go_on_with_the_named_resource(hold: Hold) -> None:
    decision = decide(hold, APPLIED, resource=" c_17 ")
    assert states(hold) == ("decided", "applied", "ready")
    evidence = decision.evidence
    assert evidence is not None
    assert (evidence.kind, evidence.completes, evidence.denies) == ("operator", True, False)
    assert (evidence.resource, evidence.by, evidence.source) == (
        "c_17",
        person(),
        "reviewer_1",
    )
    run = advanced(hold.run)
    assert run.state == "completed"
    assert "c_17" in result_of(run)


def test_send_again_sends_the_same_operation_once_more(destination: RunningDestination) -> None:
    hold = keyed_hold(destination)
    decision = decide(hold, SEND_AGAIN)
    assert states(hold) == ("decided", "unknown", "ready")
    assert decision.evidence is not None
    assert (decision.evidence.completes, decision.evidence.denies) == (False, True)
    assert settled(hold.run).state == "completed"
    operation = Operation.objects.get()
    assert operation.transmissions.count() == 5
    assert len(destination.client.effects(operation=str(operation.pk))) == 1


def test_send_again_of_what_was_never_sent_is_a_first_send(
    destination: RunningDestination,
) -> None:
    provider = ready_provider("payments", destination.url, default_queue=None)
    advanced(started_run("refund"))
    hold = open_hold_of(Operation.objects.get())
    administrator = person("admin_1", is_superuser=True)
    ready = ready_provider("machines", destination.url).default_queue
    Provider.objects.filter(pk=provider.pk).update(default_queue=ready)
    decide(hold, SEND_AGAIN, by=administrator)
    assert states(hold) == ("decided", "intended", "ready")
    assert advanced(hold.run).state == "completed"
    assert Operation.objects.get().transmissions.get().purpose == "first"


def test_abandon_gives_the_operation_up_and_leaves_its_outcome_as_it_was(hold: Hold) -> None:
    decision = decide(hold, ABANDON)
    assert states(hold) == ("decided", "abandoned", "ready")
    assert decision.evidence is None
    run = advanced(hold.run)  # its author says: continue
    assert run.state == "completed"
    assert "not noted in the desk" in result_of(run)


def test_abandon_fails_the_run_where_its_author_says_nothing(
    destination: RunningDestination,
) -> None:
    hold = keyed_hold(destination)
    decide(hold, ABANDON)
    run = advanced(hold.run)
    assert (run.state, run.failure["reason"]) == ("failed", "abandoned")
    assert Operation.objects.get().state == "abandoned"


def test_keep_holding_changes_nothing_but_when_it_is_due(hold: Hold) -> None:
    until = database_now() + timedelta(hours=8)
    decision = decide(hold, KEEP_HOLDING, until=until)
    assert states(hold) == ("open", "held", "held")
    assert (hold.due_at, hold.version) == (until, 2)
    assert (decision.until, decision.evidence) == (until, None)


def test_after_keep_holding_it_can_be_decided(hold: Hold) -> None:
    decide(hold, KEEP_HOLDING)
    hold.refresh_from_db()
    decide(hold, APPLIED)
    assert states(hold) == ("decided", "applied", "ready")
    assert [row.kind for row in Decision.objects.order_by("id")] == ["keep_holding", "applied"]


def test_trying_a_held_step_again_makes_its_run_ready(destination: RunningDestination) -> None:
    hold = run_hold(destination)
    decide(hold, TRY_AGAIN)
    assert states(hold) == ("decided", "", "ready")


def test_a_held_run_may_be_ended(destination: RunningDestination) -> None:
    hold = run_hold(destination)
    decide(hold, FAIL_RUN)
    assert states(hold) == ("decided", "", "failed")


def test_a_result_that_is_not_as_meant_may_be_accepted(destination: RunningDestination) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("postcondition")
    advanced(started_run("replacement_worker"))
    hold = open_hold_of(Operation.objects.get())
    decision = decide(hold, APPLIED, resource="m_mended")
    assert states(hold) == ("decided", "postcondition_failed", "ready")
    assert decision.evidence is not None
    assert decision.evidence.postcondition is True
    assert advanced(hold.run).state == "completed"


def test_workers_are_told_after_the_commit(
    hold: Hold, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks() as told:
        decide(hold)
    assert len(told) == 1


def test_a_decision_keeps_what_the_person_was_shown(hold: Hold) -> None:
    shown = decide(hold).shown
    assert (shown["reason"], shown["message"]) == ("unguarded", hold.message)
    offered = {option["kind"]: option["allowed"] for option in shown["options"]}
    allowed = {kind for kind, is_allowed in offered.items() if is_allowed}
    assert allowed == {"applied", "abandon", "keep_holding"}
    assert set(offered) - allowed == {"send_again", "replace", "undo"}
    assert next(o for o in shown["options"] if o["kind"] == "send_again")["why_not"]


def test_a_decision_is_audited_without_its_note(hold: Hold) -> None:
    decision = decide(hold)
    entry = AuditEntry.objects.order_by("-seq")[0]
    assert (entry.verb, entry.object) == ("decided", f"operation:{hold.operation_id}")
    assert entry.actor == f"user:{person().pk} reviewer_1"
    assert entry.detail == {"decision": str(decision.pk), "kind": "applied", "hold": str(hold.pk)}
    assert first_broken_entry() is None


# --- a decision counts ------------------------------------------------------------------------


def test_a_decision_outweighs_what_was_known_before_it_whatever_the_clocks_say(
    destination: RunningDestination,
) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("postcondition")
    advanced(started_run("replacement_worker"))
    operation = Operation.objects.get()
    check = operation.evidence.get(postcondition=False)
    five_minutes_ahead = UUID(int=new_id().int + (300_000 << 80))
    tamper("reconciliation_evidence", f"id = '{five_minutes_ahead}'", f"id = '{check.pk}'")
    decide(open_hold_of(operation), APPLIED, resource="m_mended")
    assert advanced(operation.run).state == "completed"


def test_someone_who_has_seen_the_result_settles_what_cannot_be_checked(
    destination: RunningDestination,
) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("lookup_unavailable", times=None)
    run = settled(started_run("replacement_worker"))
    operation = Operation.objects.get()
    hold = open_hold_of(operation)
    assert hold.reason == "not_verifiable"
    resource = operation.evidence.get(completes=True).resource
    decide(hold, APPLIED, resource=resource)
    assert settled(run).state == "completed"


@pytest.mark.parametrize("state", ["ready", "running"])
def test_asking_after_a_decision_does_not_take_the_run_from_anybody(
    destination: RunningDestination, state: str
) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("postcondition")
    run = advanced(started_run("replacement_worker"))
    operation = Operation.objects.get()
    resource = operation.evidence.get(completes=True).resource
    decide(open_hold_of(operation), APPLIED, resource=resource)
    claim = claim_run(run.pk, Keeper().worker) if state == "running" else None
    try:
        ask_again(operation.pk)
    except IllegalTransition:
        pytest.fail("it was made ready twice")
    run.refresh_from_db()
    assert (run.state, run.lease_owner) == (state, claim.worker if claim else None)


def test_a_credential_that_cannot_be_unsealed_does_not_keep_people_from_deciding(
    hold: Hold, settings: Settings
) -> None:
    Provider.objects.update(credential_sealed=seal(b"sk_live_1"))
    settings.ROMULUS_KEYS = ["a-key-that-has-sealed-nothing"]
    decide(hold)
    assert states(hold) == ("decided", "applied", "ready")
