"""Decisions: one transaction each, checked again on arrival, and nothing written when refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from guardian.shortcuts import remove_perm
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from reconciliation.core.errors import AlreadyDecided, InvalidDecision, NotAllowed
from reconciliation.core.states import DecisionKind
from reconciliation.models import AuditEntry, Decision, Evidence, Hold, Operation, Provider
from reconciliation.sealing import seal
from reconciliation.services.audit import add_entry, first_broken_entry, hash_of
from reconciliation.services.decisions import MAX_NOTE, Answer, record_decision
from reconciliation.services.reconcile import ask_again
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
)
from workflows.core.errors import Conflict, IllegalTransition, UsageError
from workflows.models import Run
from workflows.models.ids import new_id
from workflows.services.claims import claim_run
from workflows.services.clock import database_now
from workflows.services.ownership import Keeper

pytestmark = pytest.mark.django_db

APPLIED, SEND_AGAIN = DecisionKind.APPLIED, DecisionKind.SEND_AGAIN
ABANDON, KEEP_HOLDING = DecisionKind.ABANDON, DecisionKind.KEEP_HOLDING
TRY_AGAIN, FAIL_RUN = DecisionKind.TRY_AGAIN, DecisionKind.FAIL_RUN


def answer_on(hold: Hold, kind: DecisionKind = APPLIED, **fields: Any) -> Answer:
    """What a careful person fills in."""
    given: dict[str, Any] = {
        "note": NOTE,
        "version": hold.version,
        "token": uuid4(),
        "code": code_of(hold.operation_id or hold.run_id),
        "resource": "c_1" if kind is APPLIED else "",
        "until": database_now() + timedelta(hours=2) if kind is KEEP_HOLDING else None,
    }
    return Answer(kind=kind, **(given | fields))


def decide(hold: Hold, kind: DecisionKind = APPLIED, by: Any = None, **fields: Any) -> Decision:
    return record_decision(hold.pk, by or person(), answer_on(hold, kind, **fields))


@pytest.fixture
def hold(destination: RunningDestination) -> Hold:
    """The open hold of a write whose answer was lost, at a provider without key and look-up."""
    ready_provider("desk", destination.url)
    return open_hold_of(held_operation(destination))


def keyed_hold(destination: RunningDestination) -> Hold:
    """The open hold of a write that was refused for now until the budget was spent."""
    ready_provider("payments", destination.url)
    destination.client.arm("error_before", status=429, times=4)
    settled(started_run("refund"))
    return open_hold_of(Operation.objects.get())


def run_hold(destination: RunningDestination) -> Hold:
    """The open hold of a run whose provider had no contract when it came to its write."""
    ready_provider("desk", destination.url, contract_version=None)
    settled(started_run("ticket_triage"))
    return Hold.objects.get(state="open")


def states(hold: Hold) -> tuple[str, str, str]:
    hold.refresh_from_db()
    run = Run.objects.get(pk=hold.run_id)
    operation = Operation.objects.filter(pk=hold.operation_id).first()
    return (hold.state, operation.state if operation else "", run.state)


def everything() -> tuple[Any, ...]:
    """Whatever a decision could write."""
    models = (Decision, Evidence, AuditEntry, Hold, Operation, Run)
    return tuple(list(model._default_manager.order_by("pk").values()) for model in models)


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
    assert "c_17" in run.result


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
    assert "not noted in the desk" in run.result


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
    assert offered == {"applied": True, "send_again": False, "abandon": True, "keep_holding": True}
    assert next(o for o in shown["options"] if o["kind"] == "send_again")["why_not"]


def test_a_decision_is_audited_without_its_note(hold: Hold) -> None:
    decision = decide(hold)
    entry = AuditEntry.objects.order_by("-seq")[0]
    assert (entry.verb, entry.object) == ("decided", f"operation:{hold.operation_id}")
    assert entry.actor == f"user:{person().pk} reviewer_1"
    assert entry.detail == {"decision": str(decision.pk), "kind": "applied", "hold": str(hold.pk)}
    assert first_broken_entry() is None


# --- what is refused, and that nothing is written then ----------------------------------------


def refused(hold: Hold, answer: Answer, error: type[Exception], by: Any = None) -> Any:
    before = everything()
    with pytest.raises(error) as caught:
        record_decision(hold.pk, by or person(), answer)
    assert everything() == before
    return caught.value


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"note": ""}, "note"),
        ({"note": "Seen it."}, "note"),
        ({"note": " " * 40}, "note"),
        ({"note": "x" * (MAX_NOTE + 1)}, "note"),
        ({"code": ""}, "code"),
        ({"code": "zzzzzz"}, "code"),
        ({"resource": ""}, "resource"),
        ({"resource": "   "}, "resource"),
    ],
)
def test_a_decision_that_lacks_something_is_refused_and_the_field_is_named(
    hold: Hold, changed: dict[str, Any], field: str
) -> None:
    error = refused(hold, answer_on(hold, **changed), InvalidDecision)
    assert error.field == field
    assert str(error)


def test_the_code_of_another_case_is_refused(hold: Hold) -> None:
    error = refused(hold, answer_on(hold, code=code_of(hold.run_id)), InvalidDecision)
    assert error.field == "code"


def test_the_code_is_read_as_people_type_it(hold: Hold) -> None:
    assert decide(hold, code=f"  {code_of(hold.operation_id or hold.run_id).upper()} ")


@pytest.mark.parametrize("until", [None, timedelta(0), timedelta(days=-1)])
def test_keeping_on_holding_needs_a_time_that_is_not_past(
    hold: Hold, until: timedelta | None
) -> None:
    when: datetime | None = None if until is None else database_now() + until
    error = refused(hold, answer_on(hold, KEEP_HOLDING, until=when), InvalidDecision)
    assert error.field == "until"


def test_without_the_right_nothing_is_decided(hold: Hold) -> None:
    refused(hold, answer_on(hold), PermissionDenied, by=person("viewer_1"))


def test_the_owner_of_another_queue_decides_nothing_here(
    hold: Hold, destination: RunningDestination
) -> None:
    other = ready_provider("payments", destination.url).default_queue
    assert other is not None
    refused(hold, answer_on(hold), PermissionDenied, by=owner_of(other, "reviewer_2"))


def test_a_right_that_was_taken_away_counts_at_the_moment_of_the_decision(hold: Hold) -> None:
    """A21: the page was open before."""
    remove_perm("reconciliation.decide", person(), hold.queue)
    refused(hold, answer_on(hold), PermissionDenied, by=person())


def test_an_account_that_was_closed_decides_nothing(hold: Hold) -> None:
    reviewer = person()
    reviewer.is_active = False
    reviewer.save()
    refused(hold, answer_on(hold), PermissionDenied, by=person())


def test_a_stale_version_is_refused_with_the_decision_that_was_first(hold: Hold) -> None:
    first = decide(hold, KEEP_HOLDING, by=owner_of(hold.queue, "reviewer_2"))  # type: ignore[arg-type]
    error = refused(hold, answer_on(hold, version=1), AlreadyDecided)
    assert error.decision == first
    assert "reviewer_2 decided first: keep holding" in str(error)


def test_the_second_of_two_reviewers_is_refused_with_the_first_one_s_decision(hold: Hold) -> None:
    """A19: both had the page open; nothing that the second wrote overwrites anything."""
    second = owner_of(hold.queue, "reviewer_2")  # type: ignore[arg-type]
    first = decide(hold, APPLIED)
    error = refused(hold, answer_on(hold, ABANDON), AlreadyDecided, by=second)
    assert error.decision == first
    assert states(hold) == ("decided", "applied", "ready")


def test_a_version_that_was_never_shown_is_refused(hold: Hold) -> None:
    assert refused(hold, answer_on(hold, version=2), AlreadyDecided).decision is None


def test_after_proof_has_closed_it_nothing_is_decided(destination: RunningDestination) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("lookup_unavailable", times=None)
    operation = held_operation(destination, "replacement_worker")
    hold = open_hold_of(operation)
    destination.client.disarm()
    ask_again(operation.pk)
    error = refused(hold, answer_on(hold), AlreadyDecided)
    assert "Proof arrived meanwhile" in str(error)


def test_submitting_twice_decides_once_and_gives_the_first(hold: Hold) -> None:
    """A20: two clicks land on one result."""
    answer = answer_on(hold)
    first = record_decision(hold.pk, person(), answer)
    before = everything()
    assert record_decision(hold.pk, person(), answer) == first
    assert everything() == before


def test_the_same_form_with_a_changed_mind_gives_the_first(hold: Hold) -> None:
    """A20: back, and again with the other choice: what is on record stays."""
    answer = answer_on(hold)
    first = record_decision(hold.pk, person(), answer)
    assert record_decision(hold.pk, person(), replace(answer, kind=ABANDON)) == first
    assert states(hold) == ("decided", "applied", "ready")


def test_a_token_that_was_used_elsewhere_is_refused_in_words(
    destination: RunningDestination,
) -> None:
    ready_provider("desk", destination.url)
    one, other = (open_hold_of(held_operation(destination)) for _ in range(2))
    token = uuid4()
    decide(one, token=token)
    with pytest.raises((Conflict, UsageError)), transaction.atomic():
        decide(other, token=token)


@pytest.mark.parametrize("kind", [SEND_AGAIN, TRY_AGAIN, FAIL_RUN])
def test_what_is_not_offered_is_refused(hold: Hold, kind: DecisionKind) -> None:
    expected = NotAllowed if kind is SEND_AGAIN else InvalidDecision
    error = refused(hold, answer_on(hold, kind), expected)
    assert str(error)


@pytest.mark.parametrize("kind", [APPLIED, SEND_AGAIN, ABANDON])
def test_a_held_run_takes_no_decision_about_an_operation(
    destination: RunningDestination, kind: DecisionKind
) -> None:
    hold = run_hold(destination)
    assert refused(hold, answer_on(hold, kind), InvalidDecision).field == "kind"


def test_a_run_with_an_unsettled_operation_is_not_ended(destination: RunningDestination) -> None:
    """Its outcome would never be asked for again."""
    ready_provider("desk", destination.url)
    operation = held_operation(destination)
    Hold.objects.filter(operation=operation).update(operation=None)
    Operation.objects.filter(pk=operation.pk).update(state="unknown")
    hold = Hold.objects.get()
    assert "not settled" in str(refused(hold, answer_on(hold, FAIL_RUN), NotAllowed))


def test_a_hold_that_does_not_exist_is_not_decided(hold: Hold) -> None:
    with pytest.raises(Hold.DoesNotExist):
        record_decision(uuid4(), person(), answer_on(hold))


# --- words that the database cannot keep ------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"resource": "x" * 301}, "resource"),
        ({"resource": "c_\x00"}, "resource"),
        ({"note": NOTE + "\x00"}, "note"),
        ({"note": NOTE + "\ud800"}, "note"),
    ],
)
def test_words_that_cannot_be_kept_are_refused_by_field(
    hold: Hold, changed: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidDecision) as caught, transaction.atomic():
        decide(hold, **changed)
    assert caught.value.field == field


def test_somebody_with_a_long_name_can_decide(hold: Hold) -> None:
    reviewer = person()
    reviewer.first_name, reviewer.last_name = "A" * 150, "B" * 150
    reviewer.save()
    with transaction.atomic():
        assert decide(hold, by=person()).by_name


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


# --- the chain of audit entries ---------------------------------------------------------------


def tamper(table: str, assignment: str, where: str) -> None:
    """Change a row behind the ledger's back, as whoever owns the database could."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        cursor.execute(f"UPDATE {table} SET {assignment} WHERE {where}")  # noqa: S608
        cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def five_entries() -> None:
    for number in range(1, 6):
        add_entry("user:1 ada", "decided", f"operation:{number}", {"kind": "applied"})


def test_an_untouched_chain_has_no_broken_entry() -> None:
    assert first_broken_entry() is None
    five_entries()
    assert first_broken_entry() is None
    assert [entry.seq for entry in AuditEntry.objects.order_by("seq")] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "assignment",
    [
        "actor = 'user:2 mallory'",
        "verb = 'looked at'",
        "object = 'operation:9'",
        """detail = '{"kind": "abandon"}'""",
        "previous_hash = repeat('0', 64)",
        "hash = repeat('0', 64)",
        "seq = 33",
        pytest.param(
            "at = '2001-01-01'",
        ),
    ],
)
def test_a_changed_entry_is_found(assignment: str) -> None:
    five_entries()
    tamper("reconciliation_auditentry", assignment, "seq = 3")
    assert first_broken_entry() == 3


def test_a_changed_entry_with_a_hash_made_to_fit_is_found_at_the_one_after() -> None:
    five_entries()
    entry = AuditEntry.objects.get(seq=3)
    entry.actor = "user:2 mallory"
    made_to_fit = f"actor = '{entry.actor}', hash = '{hash_of(entry)}'"
    tamper("reconciliation_auditentry", made_to_fit, "seq = 3")
    assert first_broken_entry() == 4


@pytest.mark.parametrize(("missing", "found"), [(1, 1), (3, 3), (4, 4)])
def test_a_missing_entry_is_found(missing: int, found: int) -> None:
    five_entries()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE reconciliation_auditentry DISABLE TRIGGER USER")
        cursor.execute("DELETE FROM reconciliation_auditentry WHERE seq = %s", [missing])
        cursor.execute("ALTER TABLE reconciliation_auditentry ENABLE TRIGGER USER")
    assert first_broken_entry() == found


def test_an_entry_that_was_made_up_in_between_is_found() -> None:
    five_entries()
    tamper("reconciliation_auditentry", "seq = seq + 1", "seq = 5")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO reconciliation_auditentry "
            "SELECT 5, at, 'user:2 mallory', verb, object, detail, previous_hash, hash "
            "FROM reconciliation_auditentry WHERE seq = 6"
        )
    assert first_broken_entry() == 5


def test_holding_and_deciding_add_to_one_chain(hold: Hold) -> None:
    decide(hold, KEEP_HOLDING)
    hold.refresh_from_db()
    decide(hold, ABANDON)
    verbs = list(AuditEntry.objects.order_by("seq").values_list("verb", flat=True))
    assert verbs == ["held", "decided", "decided"]
    assert first_broken_entry() is None
