"""Decisions that take two people: nothing moves before somebody else confirms."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from guardian.shortcuts import remove_perm

from reconciliation.core.errors import (
    AlreadyDecided,
    InvalidDecision,
    ProposalVoid,
)
from reconciliation.models import (
    AuditEntry,
    Decision,
    DecisionProposal,
    Evidence,
    Hold,
    Notification,
    Operation,
    ProposalEnd,
)
from reconciliation.selectors.letters import is_worth_telling
from reconciliation.services import voiding
from reconciliation.services.answers import Verdict
from reconciliation.services.audit import actor_of, add_entry, first_broken_entry
from reconciliation.services.confirming import settle_proposal
from reconciliation.services.decisions import record_decision
from reconciliation.services.escalating import PROPOSAL_AGAIN, escalate_holds
from reconciliation.services.proposals import CHANGED
from reconciliation.services.reconcile import ask_again
from tests import approving
from tests.deciding import (
    ABANDON,
    APPLIED,
    KEEP_HOLDING,
    SEND_AGAIN,
    answer_on,
    decide,
    propose,
    seconder_of,
    settle_as,
    states,
    two_needed,
    verdict_on,
)
from tests.destination import RunningDestination
from tests.factories import (
    NOTE,
    advanced,
    owner_of,
    person,
    ready_provider,
    settled,
    started_run,
    switched,
    tenant,
)
from tests.tampering import tamper
from workflows.models import Run
from workflows.services.clock import database_now
from workflows.services.results import result_of
from workflows.services.runs import STARTED, start
from workflows.services.stopping import cancel_run

pytestmark = pytest.mark.django_db

CONFIRM, REFUSE, WITHDRAW = Verdict.CONFIRM, Verdict.REFUSE, Verdict.WITHDRAW
OPEN = ("open", "held", "held")


@pytest.fixture
def two(hold: Hold) -> Hold:
    """A held comment whose queue asks for two people."""
    return two_needed(hold)


@pytest.fixture
def second(two: Hold) -> object:
    return seconder_of(two.queue)


# --- two people -------------------------------------------------------------------------------


def test_what_is_proposed_moves_nothing(two: Hold) -> None:
    proposal = propose(two)
    assert states(two) == OPEN
    assert (two.proposal, two.version, two.due_at) == (proposal, 2, two.due_at)
    assert not Decision.objects.exists()
    assert not Evidence.objects.filter(kind="operator").exists()
    assert list(Hold.objects.waiting_for_second()) == [two]


def test_a_second_person_confirms_and_both_names_stand_for_it(two: Hold, second: object) -> None:
    proposal = propose(two, resource="c_17")
    ended = settle_as(two, CONFIRM, second)
    decision = Decision.objects.get()
    assert (ended.kind, ended.by) == ("confirmed", second)
    assert (decision.by, decision.second, decision.proposal) == (person(), second, proposal)
    assert (decision.note, decision.resource) == (NOTE, "c_17")
    assert decision.evidence is not None
    assert decision.evidence.source == "reviewer_1 and second_1"
    assert states(two) == ("decided", "applied", "ready")
    assert not Hold.objects.waiting_for_second().exists()
    assert "c_17" in result_of(advanced(two.held_run))
    verbs = list(AuditEntry.objects.order_by("seq").values_list("verb", flat=True))
    assert verbs[-3:] == ["proposed", "proposal confirmed", "decided"]
    assert first_broken_entry() is None


def test_a_refusal_says_why_and_leaves_the_case_open_to_all(two: Hold, second: object) -> None:
    propose(two)
    with pytest.raises(InvalidDecision, match="at least 20 characters"):
        settle_as(two, REFUSE, second, note="no")
    ended = settle_as(two, REFUSE, second)
    assert (ended.kind, ended.note, states(two)) == ("refused", NOTE, OPEN)
    propose(two, ABANDON)
    settle_as(two, CONFIRM, second)
    assert states(two) == ("decided", "abandoned", "ready")


def test_who_proposed_it_may_take_it_back(two: Hold, second: object) -> None:
    propose(two)
    with pytest.raises(PermissionDenied, match="Only who proposed it"):
        settle_as(two, WITHDRAW, second)
    assert settle_as(two, WITHDRAW, person()).kind == "withdrawn"
    assert states(two) == OPEN
    propose(two)


def test_nobody_confirms_what_they_proposed_whatever_their_rights(two: Hold) -> None:
    administrator = person("admin_1", is_superuser=True)
    for each in (administrator, owner_of(two.queue, "reviewer_2")):
        propose(two, by=each)
        for verdict in (CONFIRM, REFUSE):
            with pytest.raises(PermissionDenied, match="You proposed this"):
                settle_as(two, verdict, each)
        settle_as(two, WITHDRAW, each)
    assert states(two) == OPEN
    with pytest.raises(IntegrityError, match="decision_second_is_another"), transaction.atomic():
        Decision.objects.create(
            hold=two,
            kind=APPLIED,
            by=administrator,
            second=administrator,
            proposal=DecisionProposal.objects.first(),
            hold_version=99,
            token=uuid4(),
            shown={},
        )


def test_the_right_to_decide_is_not_the_right_to_confirm(two: Hold) -> None:
    propose(two)
    other = owner_of(two.queue, "reviewer_2")
    with pytest.raises(PermissionDenied, match="not confirm what others propose"):
        settle_as(two, CONFIRM, other)


def test_the_right_to_confirm_is_not_the_right_to_propose(two: Hold, second: object) -> None:
    with pytest.raises(PermissionDenied, match="owners decide it"):
        propose(two, by=second)


def test_nobody_decides_or_confirms_what_they_started(destination: RunningDestination) -> None:
    provider = ready_provider("desk", destination.url)
    destination.client.arm("apply_then_drop")
    starter = owner_of(provider.default_queue, "starter_1")
    seconder_of(provider.default_queue, "starter_1")
    ticket = {"number": "T-17", "subject": "A refund", "body": "Where is it?"}
    run = settled(start("ticket_triage", ticket, tenant=tenant(), by=starter))
    hold = two_needed(Hold.objects.get(run=run))
    with pytest.raises(PermissionDenied, match="You started this run"):
        propose(hold, by=person("starter_1"))
    propose(hold)
    with pytest.raises(PermissionDenied, match="You started this run"):
        settle_as(hold, CONFIRM, person("starter_1"))
    Run.objects.filter(pk=run.pk).update(parent=None)


def test_nobody_decides_or_confirms_what_they_approved(destination: RunningDestination) -> None:
    provider = ready_provider("payments", destination.url)
    queue = provider.default_queue
    run, asked = approving.proposed()
    approving.answered(asked, approving.approver())
    owner_of(queue, "approver_1")
    seconder_of(queue, "approver_1")
    destination.client.arm("error_before", status=429, times=4)
    hold = two_needed(Hold.objects.get(run=settled(run)))
    with pytest.raises(PermissionDenied, match="You approved this write"):
        propose(hold, ABANDON, by=person("approver_1"))
    propose(hold, ABANDON)
    with pytest.raises(PermissionDenied, match="You approved this write"):
        settle_as(hold, CONFIRM, person("approver_1"))
    assert settle_as(hold, CONFIRM, seconder_of(queue)).kind == "confirmed"


def test_keeping_on_hold_moves_nothing_and_takes_one(two: Hold) -> None:
    assert decide(two, KEEP_HOLDING).kind == "keep_holding"


@pytest.mark.parametrize(("second_from", "proposed"), [("125.01", False), ("125.00", True)])
def test_two_are_needed_from_the_queue_s_amount_on(
    destination: RunningDestination, second_from: str, proposed: bool
) -> None:
    ready_provider("payments", destination.url)
    destination.client.arm("error_before", status=429, times=4)
    run = settled(started_run("refund", amount="125.00"))
    hold = two_needed(Hold.objects.get(run=run), Decimal(second_from))
    given = record_decision(hold.pk, person(), answer_on(hold, ABANDON))
    assert isinstance(given, DecisionProposal) is proposed


@pytest.mark.parametrize("bars", ["started", "unseen"])
def test_where_nobody_can_confirm_though_they_have_the_right_administrators_are_told(
    two: Hold, second: Any, bars: str
) -> None:
    """Else the proposal would wait for somebody who can do nothing about it."""
    if bars == "started":
        add_entry(actor_of(second), STARTED, f"run:{two.run_id}", {})
    else:
        remove_perm("workflows.view_tenant", second, tenant())
    propose(two)
    (told,) = Notification.objects.filter(kind="proposed")
    assert (told.person, told.rung) == (None, "administrators")


def test_those_who_may_confirm_are_told_and_else_the_administrators(two: Hold) -> None:
    propose(two)
    (told,) = Notification.objects.filter(kind="proposed")
    assert (told.person, told.rung) == (None, "administrators")  # nobody else may confirm here
    settle_as(two, WITHDRAW, person())
    second = seconder_of(two.queue)
    proposal = propose(two)
    told = Notification.objects.get(cause=f"proposed:{proposal.pk}:{second.pk}")
    assert (told.person, is_worth_telling(told)) == (second, True)
    settle_as(two, CONFIRM, second)
    told.refresh_from_db()
    assert not is_worth_telling(told)


# --- one at a time, and each once -------------------------------------------------------------


def test_while_one_is_open_nobody_decides_beside_it(two: Hold) -> None:
    proposal = propose(two)
    other = owner_of(two.queue, "reviewer_2")
    for kind in (ABANDON, KEEP_HOLDING):
        with pytest.raises(AlreadyDecided, match="reviewer_1 has proposed") as told:
            record_decision(two.pk, other, answer_on(two, kind))
        assert told.value.decision == proposal


def test_submitting_twice_proposes_once_and_confirms_once(two: Hold, second: object) -> None:
    answer = answer_on(two)
    proposals = {record_decision(two.pk, person(), answer).pk for _ in range(2)}
    two.refresh_from_db()
    given = verdict_on(two, CONFIRM)
    ends = {settle_proposal(two.pk, second, given).pk for _ in range(2)}
    assert (len(proposals), len(ends), Decision.objects.count()) == (1, 1, 1)
    # Back, and the first form again: it says what it has done.
    assert record_decision(two.pk, person(), answer).pk in proposals


def test_a_form_s_token_serves_one_case_and_one_act(two: Hold, second: object) -> None:
    answer = answer_on(two)
    record_decision(two.pk, person(), answer)
    two.refresh_from_db()
    with pytest.raises(InvalidDecision, match="another case"):
        settle_proposal(two.pk, second, verdict_on(two, CONFIRM, token=answer.token))
    assert states(two) == OPEN


def test_a_verdict_on_a_proposal_that_has_ended_is_told_how(two: Hold, second: object) -> None:
    propose(two)
    late = verdict_on(two, CONFIRM)
    settle_as(two, WITHDRAW, person())
    with pytest.raises(AlreadyDecided, match="was withdrawn by reviewer_1 meanwhile"):
        settle_proposal(two.pk, second, late)
    propose(two, ABANDON)  # another one: what was read is not what would be confirmed
    with pytest.raises(AlreadyDecided):
        settle_proposal(two.pk, second, late)
    assert states(two) == OPEN


def test_a_confirmation_names_its_case(two: Hold, second: object) -> None:
    propose(two)
    with pytest.raises(InvalidDecision, match="not the last 6"):
        settle_as(two, CONFIRM, second, code="abcdez")
    assert states(two) == OPEN


# --- void -------------------------------------------------------------------------------------


def keyed(destination: RunningDestination) -> Hold:
    """A refund that was refused for now; it can be sent again. Its queue asks for two people."""
    ready_provider("payments", destination.url)
    destination.client.arm("error_before", status=429, times=4)
    return two_needed(Hold.objects.get(run=settled(started_run("refund"))))


def ensure_void(hold: Hold, second: object, why: str) -> None:
    with pytest.raises(ProposalVoid, match=why):
        settle_as(hold, CONFIRM, second)
    ended = ProposalEnd.objects.get()
    assert (ended.kind, ended.by) == ("void", None)
    assert not Decision.objects.exists()
    assert states(hold) == OPEN
    assert hold.proposal is None


def test_what_is_not_offered_any_more_is_not_confirmed(destination: RunningDestination) -> None:
    hold = keyed(destination)
    assert hold.operation is not None
    propose(hold, SEND_AGAIN)
    switched(hold.operation.provider, "paused")
    ensure_void(hold, seconder_of(hold.queue), "Dispatch to this provider is not on")


def test_what_rested_on_other_facts_is_not_confirmed(two: Hold, second: object) -> None:
    propose(two)
    Evidence.objects.create(operation=two.operation, kind="conflict", source="look-up")
    ensure_void(two, second, "has changed since")


def test_who_may_not_decide_any_more_has_proposed_in_vain(two: Hold, second: object) -> None:
    propose(two)
    remove_perm("reconciliation.decide", person(), two.queue)
    ensure_void(two, second, "reviewer_1 may not decide here any more")


def test_the_sweep_ends_what_is_void_and_whoever_proposed_it_hears_of_it(two: Hold) -> None:
    proposal = propose(two)
    escalate_holds()
    two.refresh_from_db()
    assert two.proposal == proposal
    assert two.tell_at is not None
    assert two.tell_at - database_now() <= PROPOSAL_AGAIN
    Evidence.objects.create(operation=two.operation, kind="conflict", source="look-up")
    Hold.objects.update(tell_at=Now())
    escalate_holds()
    assert states(two) == OPEN
    assert two.proposal is None
    ended = ProposalEnd.objects.get()
    assert (ended.kind, ended.by, ended.note) == ("void", None, CHANGED)
    (told,) = Notification.objects.filter(kind="not_confirmed")
    assert told.person == person()


def test_what_a_stop_bars_for_now_stays_proposed(destination: RunningDestination) -> None:
    hold = keyed(destination)
    assert hold.operation is not None
    propose(hold, SEND_AGAIN)
    switched(hold.operation.provider, "paused")
    escalate_holds()
    assert not ProposalEnd.objects.exists()
    switched(hold.operation.provider, "on")
    assert settle_as(hold, CONFIRM, seconder_of(hold.queue)).kind == "confirmed"


def test_one_that_cannot_be_looked_at_keeps_no_other_waiting(
    two: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("a contract that nobody can read")

    propose(two)
    monkeypatch.setattr(voiding, "ground_of", broken)
    assert escalate_holds() == 1
    assert not ProposalEnd.objects.exists()


def test_asking_once_more_and_hearing_the_same_voids_nothing(two: Hold, second: object) -> None:
    propose(two)
    Evidence.objects.create(operation=two.operation, kind="unavailable", source="look-up")
    settle_as(two, CONFIRM, second)
    assert states(two) == ("decided", "applied", "ready")


def test_another_may_decide_anew_where_a_proposal_is_void(two: Hold) -> None:
    propose(two)
    Evidence.objects.create(operation=two.operation, kind="conflict", source="look-up")
    other = owner_of(two.queue, "reviewer_2")
    propose(two, ABANDON, by=other)
    assert list(ProposalEnd.objects.values_list("kind", flat=True)) == ["void"]


def test_proof_that_arrives_ends_the_proposal_with_its_hold(
    destination: RunningDestination,
) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("apply_then_drop")
    destination.client.arm("lookup_unavailable", times=None)
    operation = Operation.objects.get(run=settled(started_run("replacement_worker")))
    hold = two_needed(Hold.objects.get(operation=operation))
    propose(hold, ABANDON)
    destination.client.disarm()
    ask_again(operation.pk)
    assert states(hold)[0] == "closed"
    assert "Proof arrived" in ProposalEnd.objects.get().note
    with pytest.raises(AlreadyDecided):
        settle_as(hold, CONFIRM, seconder_of(hold.queue))


def test_a_run_that_ends_ends_what_is_proposed_on_it(destination: RunningDestination) -> None:
    ready_provider("desk", destination.url, contract_version=None)
    run = settled(started_run("ticket_triage"))
    hold = two_needed(Hold.objects.get(run=run))
    propose(hold, kind=type(ABANDON)("fail_run"))
    cancel_run(run.pk, by="user:1 ada")
    assert states(hold)[0] == "closed"
    assert ProposalEnd.objects.get().kind == "void"


# --- what it needs ----------------------------------------------------------------------------


def looked_up_long_ago(destination: RunningDestination) -> Hold:
    ready_provider("machines", destination.url)
    destination.client.arm("drop_before")
    destination.client.arm("lookup_unavailable", times=None)
    run = settled(started_run("replacement_worker"))
    hold = Hold.objects.get(run=run)
    tamper("reconciliation_evidence", "observed_at = observed_at - interval '16 minutes'", "true")
    return hold


def test_what_rests_on_evidence_needs_the_provider_asked_within_a_quarter_of_an_hour(
    destination: RunningDestination,
) -> None:
    hold = looked_up_long_ago(destination)
    assert hold.operation is not None
    # The same words where it was never asked: that what it said is old would not be true of that.
    with pytest.raises(InvalidDecision, match="was not asked within the last 15 minutes"):
        decide(hold, APPLIED)
    ask_again(hold.operation.pk)  # it is still away, and that is all that can be known
    assert decide(hold, APPLIED).kind == "applied"


def test_what_rests_on_no_evidence_needs_none(destination: RunningDestination) -> None:
    assert decide(looked_up_long_ago(destination), ABANDON).kind == "abandon"
