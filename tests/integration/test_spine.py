"""A write whose answer is lost, in one process: each kind of provider settles it in its own way."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest
from django.db.models.functions import Now

from reconciliation.core.matching import Found, compare
from reconciliation.core.states import DecisionKind, EvidenceKind
from reconciliation.models import AuditEntry, Hold, Operation, Provider
from reconciliation.services.decisions import Answer, record_decision
from reconciliation.services.offers import ground_of
from reconciliation.services.reconcile import ask_again, reconcile
from reconciliation.services.records import add_record_evidence, intended_by
from tests.destination import RunningDestination
from tests.factories import (
    NOTE,
    advanced,
    code_of,
    open_hold_of,
    person,
    ready_provider,
    settled,
    started_run,
    switched,
    tenant,
)
from workflows.core.definitions import Workflow
from workflows.core.intents import Intent
from workflows.registry import registry
from workflows.services import kinds
from workflows.services.results import result_of
from workflows.services.run_view import RunView
from workflows.services.runs import start

pytestmark = pytest.mark.django_db


def effects(destination: RunningDestination, operation: Operation) -> int:
    return len(destination.client.effects(operation=str(operation.pk)))


def sends(destination: RunningDestination, operation: Operation) -> int:
    journal = destination.client.journal(operation=str(operation.pk))
    return sum(entry.method == "POST" for entry in journal)


def answer(kind: DecisionKind, operation: Operation, **fields: object) -> Answer:
    hold = open_hold_of(operation)
    given: dict[str, object] = {
        "note": NOTE,
        "version": hold.version,
        "token": uuid4(),
        "code": code_of(operation.pk),
    }
    return Answer(kind=kind, **(given | fields))  # type: ignore[arg-type]


def test_an_answered_write_is_verified_and_the_run_completes(
    destination: RunningDestination,
) -> None:
    ready_provider("payments", destination.url)
    run = advanced(started_run("refund"))
    operation = Operation.objects.get(run=run)
    assert (run.state, operation.state) == ("completed", "verified")
    assert operation.resource.startswith("re_")
    assert effects(destination, operation) == 1
    assert result_of(run) == f"Your refund {operation.resource} is on its way."


def test_a_lost_answer_with_a_key_is_replayed_once_and_makes_one_effect(
    destination: RunningDestination,
) -> None:
    ready_provider("payments", destination.url)
    destination.client.arm("apply_then_drop")
    run = settled(started_run("refund"))
    operation = Operation.objects.get(run=run)
    assert (run.state, operation.state) == ("completed", "verified")
    assert sends(destination, operation) == 2
    assert effects(destination, operation) == 1
    first, second = operation.transmissions.order_by("number")
    assert (first.state, second.state, second.purpose) == ("unknown", "acknowledged", "replay")


def test_a_lost_answer_with_look_up_is_found_and_nothing_is_sent_again(
    destination: RunningDestination,
) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("apply_then_drop")
    run = settled(started_run("replacement_worker"))
    operation = Operation.objects.get(run=run)
    assert (run.state, operation.state) == ("completed", "verified")
    assert sends(destination, operation) == 1
    assert effects(destination, operation) == 1
    assert [row.kind for row in operation.evidence.order_by("id")] == ["lookup", "lookup"]


def test_a_lost_answer_with_neither_is_held_until_an_owner_decides(
    destination: RunningDestination,
) -> None:
    provider = ready_provider("desk", destination.url)
    destination.client.arm("apply_then_drop")
    run = settled(started_run("ticket_triage"))
    operation = Operation.objects.get(run=run)
    hold = open_hold_of(operation)
    assert (run.state, operation.state, hold.reason) == ("held", "held", "unguarded")
    assert hold.queue == provider.default_queue
    assert not run.attempts.outputs().filter(step="tell_requester").exists()

    decided = answer(DecisionKind.APPLIED, operation, resource="c_1")
    record_decision(hold.pk, person(), decided)
    run = advanced(run)
    operation.refresh_from_db()
    assert (run.state, operation.state, operation.resource) == ("completed", "verified", "c_1")
    assert run.attempts.outputs().filter(step="tell_requester").exists()
    assert sends(destination, operation) == 1


def test_never_applied_with_a_key_is_sent_again(destination: RunningDestination) -> None:
    ready_provider("payments", destination.url)
    destination.client.arm("drop_before")
    run = settled(started_run("refund"))
    operation = Operation.objects.get(run=run)
    assert run.state == "completed"
    assert effects(destination, operation) == 1


def test_absence_is_not_proof_and_ends_in_a_hold(destination: RunningDestination) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("drop_before")
    run = settled(started_run("replacement_worker"))
    operation = Operation.objects.get(run=run)
    assert (run.state, operation.state) == ("held", "held")
    assert open_hold_of(operation).reason == "absence_not_proof"
    assert sends(destination, operation) == 1


def test_look_up_away_ends_in_a_hold_and_never_in_a_send(
    destination: RunningDestination,
) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("apply_then_drop")
    destination.client.arm("lookup_unavailable", times=None)
    run = settled(started_run("replacement_worker"))
    operation = Operation.objects.get(run=run)
    assert open_hold_of(operation).reason == "look_up_unavailable"
    assert sends(destination, operation) == 1

    # The provider answers again: a person asks, the proof closes the hold by itself.
    destination.client.disarm()
    ask_again(operation.pk)
    run = advanced(run)
    operation.refresh_from_db()
    assert (run.state, operation.state) == ("completed", "verified")
    assert Hold.objects.get(operation=operation).state == "closed"


def test_a_refused_write_fails_the_run_and_says_nothing_changed(
    destination: RunningDestination,
) -> None:
    ready_provider("payments", destination.url, account="not-an-account")
    run = advanced(started_run("refund"))
    operation = Operation.objects.get(run=run)
    assert (run.state, operation.state) == ("failed", "rejected")
    assert run.failure["reason"] == "rejected"
    assert effects(destination, operation) == 0


def test_a_provider_without_owner_or_contract_sends_nothing_and_says_so(
    destination: RunningDestination,
) -> None:
    ready_provider("payments", destination.url, default_queue=None, contract_version=None)
    run = advanced(started_run("refund"))
    assert run.state == "held"
    message = Hold.objects.get(run=run).message
    assert "a contract" in message
    assert "an owner" in message
    assert destination.client.journal() == []


def test_a_provider_that_gets_its_owner_is_sent_to_when_a_person_says_so(
    destination: RunningDestination,
) -> None:
    provider = ready_provider("payments", destination.url)
    queue = provider.default_queue
    Provider.objects.filter(pk=provider.pk).update(default_queue=None)
    operation = Operation.objects.get(run=advanced(started_run("refund")))
    assert open_hold_of(operation).reason == "not_ready"
    assert destination.client.journal() == []

    Provider.objects.filter(pk=provider.pk).update(default_queue=queue)
    administrator = person("admin_1", is_superuser=True)
    decided = answer(DecisionKind.SEND_AGAIN, operation)
    record_decision(open_hold_of(operation).pk, administrator, decided)
    assert settled(operation.run).state == "completed"
    assert effects(destination, operation) == 1


def test_dispatch_paused_sends_nothing_and_resumes(destination: RunningDestination) -> None:
    provider = ready_provider("payments", destination.url, dispatch="paused")
    run = advanced(started_run("refund"))
    operation = Operation.objects.get(run=run)
    assert (run.state, operation.state) == ("waiting", "intended")
    assert sends(destination, operation) == 0

    switched(provider, "on")
    Operation.objects.filter(pk=operation.pk).update(due_at=Now())
    reconcile(operation.pk)
    assert advanced(run).state == "completed"


def test_a_failed_result_check_is_held(destination: RunningDestination) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("postcondition")
    run = advanced(started_run("replacement_worker"))
    operation = Operation.objects.get(run=run)
    assert (run.state, operation.state) == ("held", "postcondition_failed")
    assert open_hold_of(operation).reason == "postcondition_failed"
    decided = answer(DecisionKind.APPLIED, operation, resource="m_accepted")
    record_decision(open_hold_of(operation).pk, person(), decided)
    assert advanced(run).state == "completed"


def test_a_mismatched_receipt_is_a_conflict_and_is_held(destination: RunningDestination) -> None:
    ready_provider("payments", destination.url)
    destination.client.arm("mismatched_receipt")
    run = advanced(started_run("refund"))
    operation = Operation.objects.get(run=run)
    assert (run.state, operation.state) == ("held", "held")
    assert open_hold_of(operation).reason == "conflict"
    conflict = operation.evidence.get(kind="conflict")
    assert conflict.differences


def test_a_record_of_ours_that_names_nothing_proves_nothing(
    destination: RunningDestination,
) -> None:
    ready_provider("machines", destination.url, dispatch="paused")
    operation = Operation.objects.get(run=advanced(started_run("replacement_worker")))
    nameless = Found(resource="", operation=str(operation.pk))
    match = compare(intended_by(operation), nameless, marker_required=True)
    add_record_evidence(operation, EvidenceKind.LOOKUP, nameless, match, "look-up")
    evidence = operation.evidence.get()
    assert (evidence.kind, evidence.completes) == ("conflict", False)


def test_two_records_of_one_operation_stop_replays_and_are_audited(
    destination: RunningDestination,
) -> None:
    provider = ready_provider("machines", destination.url, dispatch="paused")
    operation = Operation.objects.get(run=advanced(started_run("replacement_worker")))
    for name in ("m_1", "m_2"):
        record = Found(resource=name, operation=str(operation.pk))
        match = compare(intended_by(operation), record, marker_required=True)
        add_record_evidence(operation, EvidenceKind.LOOKUP, record, match, "look-up")
    provider.refresh_from_db()
    assert provider.contradicted_at is not None
    assert AuditEntry.objects.filter(verb="contract contradicted").count() == 1


def test_what_breaks_while_a_step_is_settled_is_held_at_once() -> None:
    def break_it() -> None:
        raise RuntimeError("a bug of ours")

    broken = Workflow("tests.broken")

    @broken.step()
    def work(run: RunView) -> int:
        return 1

    broken.steps["work"] = replace(broken.steps["work"], kind="tests.breaks")
    registry.add(broken)
    kinds.register_kind("tests.breaks", lambda *_: kinds.Done(1, also=break_it))
    run = advanced(start("tests.broken", {}, tenant=tenant()))
    assert (run.state, run.failure["reason"]) == ("held", "step_crashed")
    assert Hold.objects.get(run=run).state == "open"


def test_a_refusal_for_good_that_is_held_is_not_tried_again(
    destination: RunningDestination,
) -> None:
    refused = Workflow("tests.refused")

    @refused.write(provider="payments", on_failure="hold")
    def pay(run: RunView) -> Intent:
        parameters = {"order": "ORD-1", "amount": 1, "currency": "USD"}
        return Intent("refunds.create", "order ORD-1", parameters, "Refund")

    registry.add(refused)
    ready_provider("payments", destination.url, account="not-an-account")
    run = advanced(start("tests.refused", {}, tenant=tenant()))
    hold = Hold.objects.get(run=run)
    offered = {offer.kind.value for offer in ground_of(hold).offers if offer.allowed}
    assert (hold.reason, offered) == ("rejected", {"fail_run", "keep_holding"})
