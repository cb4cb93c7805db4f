"""Promise P8, in the database itself: the ledger is added to, never rewritten, never deleted.

Every statement here runs as the application's own role: no code of ours stands in between.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.models import Model, ProtectedError

from reconciliation.core.states import DecisionKind, OperationState
from reconciliation.models import (
    AuditEntry,
    BulkAction,
    BulkItem,
    CaseNote,
    Channel,
    ContractVersion,
    Decision,
    DecisionDraft,
    DecisionPoint,
    DecisionProposal,
    Delivery,
    Digest,
    DispatchStop,
    Evidence,
    Hold,
    LookUpPace,
    Message,
    Notification,
    Operation,
    PasswordReset,
    Profile,
    ProposalEnd,
    Provider,
    Rehearsal,
    Reminder,
    ReviewQueue,
    Sandbox,
    SavedView,
    Shift,
    Transmission,
)
from reconciliation.services.decisions import Answer, record_decision
from tests.destination import RunningDestination
from tests.factories import (
    NOTE,
    code_of,
    held_operation,
    open_hold_of,
    person,
    ready_provider,
    settled,
    started_run,
)
from workflows.models import Run, Tenant

pytestmark = pytest.mark.django_db

LEDGER: list[type[Model]] = [
    Operation,
    Transmission,
    Evidence,
    Hold,
    Decision,
    DecisionProposal,
    ProposalEnd,
    AuditEntry,
]


@pytest.fixture(autouse=True)
def ledger(destination: RunningDestination) -> None:
    """One write that was decided by `reviewer_1`, and one that was settled by the provider."""
    ready_provider("desk", destination.url)
    ready_provider("payments", destination.url)
    operation = held_operation(destination)
    hold = open_hold_of(operation)
    answer = Answer(
        DecisionKind.APPLIED, NOTE, hold.version, uuid4(), code_of(operation.pk), resource="c_1"
    )
    record_decision(hold.pk, person(), answer)
    proposal = DecisionProposal.objects.create(
        hold=hold,
        operation=operation,
        kind=DecisionKind.ABANDON,
        by=person(),
        by_name="reviewer_1",
        note=NOTE,
        hold_version=7,
        token=uuid4(),
        shown={},
        basis={},
    )
    ProposalEnd.objects.create(proposal=proposal, kind="void", note="It has changed.")
    assert settled(operation.run).state == "completed"
    assert settled(started_run("refund")).state == "completed"
    for model in LEDGER:
        assert model._default_manager.exists(), model
    # What is checked at the end of a transaction is checked now: the rest is a ledger's life.
    execute("SET CONSTRAINTS ALL IMMEDIATE")


def execute(statement: str, parameters: list[Any] | None = None) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def delete(table: str) -> None:
    execute(f"DELETE FROM {table}")  # noqa: S608 (the tests' own words)


def update(table: str, assignment: str, where: str = "true") -> None:
    execute(f"UPDATE {table} SET {assignment} WHERE {where}")  # noqa: S608


def rows(model: type[Model]) -> list[Any]:
    return list(model._default_manager.order_by("pk").values())


# --- nothing goes away ------------------------------------------------------------------------


@pytest.mark.parametrize("model", LEDGER)
def test_no_row_is_deleted(model: type[Model]) -> None:
    before, table = rows(model), model._meta.db_table
    with pytest.raises(IntegrityError, match=f"append-only: DELETE on {table} is refused"):
        delete(table)
    assert rows(model) == before


@pytest.mark.parametrize("model", LEDGER)
def test_no_table_is_emptied(model: type[Model]) -> None:
    table = model._meta.db_table
    with pytest.raises(DatabaseError, match=r"append-only: TRUNCATE|foreign key constraint"):
        execute(f"TRUNCATE {table}")
    with pytest.raises(IntegrityError, match="append-only: TRUNCATE"):
        execute(f"TRUNCATE {table} CASCADE")
    assert rows(model)


def test_emptying_what_the_ledger_hangs_on_does_not_empty_it() -> None:
    for model in (Run, Provider, ReviewQueue, Tenant, get_user_model()):
        with pytest.raises(IntegrityError, match="append-only: TRUNCATE"):
            execute(f"TRUNCATE {model._meta.db_table} CASCADE")


@pytest.mark.parametrize("model", LEDGER)
def test_no_row_is_deleted_through_the_orm(model: type[Model]) -> None:
    """A25: neither one by one nor in bulk."""
    row = model._default_manager.order_by("pk").first()
    assert row is not None
    # A row that others hang on is already refused before the database is asked.
    with pytest.raises((IntegrityError, ProtectedError)), transaction.atomic():
        row.delete()
    with pytest.raises((IntegrityError, ProtectedError)), transaction.atomic():
        model._default_manager.all().delete()
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        model._default_manager.all()._raw_delete(using="default")  # type: ignore[attr-defined]
    assert model._default_manager.filter(pk=row.pk).exists()


def test_deleting_what_the_ledger_hangs_on_is_refused() -> None:
    """A25: no cascade from a run, a provider or a reviewer takes history along."""
    before = {each: rows(each) for each in LEDGER}
    for model in (Run, Provider, ReviewQueue, Tenant, ContractVersion, get_user_model()):
        with pytest.raises(ProtectedError), transaction.atomic():
            model._default_manager.all().delete()
    assert {each: rows(each) for each in LEDGER} == before


def test_a_reviewer_who_decided_cannot_be_deleted_and_is_still_named() -> None:
    with pytest.raises(ProtectedError), transaction.atomic():
        person().delete()
    get_user_model().objects.filter(username="reviewer_1").update(username="renamed")
    decision = Decision.objects.get()
    assert decision.by_name == "reviewer_1"
    assert AuditEntry.objects.filter(actor__endswith=" reviewer_1").exists()


def test_the_database_itself_keeps_a_run_that_has_a_history() -> None:
    with pytest.raises(IntegrityError, match="foreign key constraint"):
        delete("workflows_run")


def test_a_contract_version_is_not_deleted_even_before_anything_was_sent_under_it() -> None:
    execute(
        "INSERT INTO reconciliation_contractversion (id, slug, version, document, created_at) "
        "SELECT %s, slug, 4000, document, now() FROM reconciliation_contractversion LIMIT 1",
        [uuid4()],
    )
    with pytest.raises(IntegrityError, match="append-only"):
        execute("DELETE FROM reconciliation_contractversion WHERE version = 4000")


# --- nothing is rewritten ---------------------------------------------------------------------


OTHER_VALUE = {
    "UUIDField": "gen_random_uuid()",
    "ForeignKey": "NULL",
    "OneToOneField": "NULL",
    "CharField": "'x'",
    "SlugField": "'x'",
    "TextField": "'x'",
    "JSONField": "to_jsonb(1)",
    "BooleanField": "NOT {}",
    "DateTimeField": "'2001-01-01'",
    "PositiveIntegerField": "COALESCE({}, 0) + 1",
    "BigIntegerField": "{} + 1000",
    "DecimalField": "COALESCE({}, 0) + 1",
    "BinaryField": r"'\x00'",
}


def changes(model: type[Model], *, but: tuple[str, ...] = ()) -> list[str]:
    """For each column but some, the assignment of another value."""
    return [
        f"{field.column} = {OTHER_VALUE[field.get_internal_type()].format(field.column)}"
        for field in model._meta.concrete_fields
        if field.column is not None and field.column not in but
    ]


FROZEN = [Evidence, Decision, DecisionProposal, ProposalEnd, AuditEntry, ContractVersion]


@pytest.mark.parametrize("model", FROZEN)
def test_what_was_recorded_is_never_changed(model: type[Model]) -> None:
    before, table = rows(model), model._meta.db_table
    for assignment in changes(model):
        with pytest.raises(IntegrityError, match=f"append-only: UPDATE on {table} is refused"):
            update(table, assignment)
    assert rows(model) == before


def test_a_transmission_that_has_ended_is_never_changed() -> None:
    before, table = rows(Transmission), Transmission._meta.db_table
    for assignment in changes(Transmission):
        with pytest.raises(IntegrityError, match=r"ended as \w+, and does not change"):
            update(table, assignment)
    assert rows(Transmission) == before


# What may change of an operation while it is not settled.
MOVES = (
    "state",
    "resource",
    "receipt",
    "send_again_at",
    "due_at",
    "turn_at",
    "settled_at",
    "first_sent_at",
    "replay_not_after",
)


LINKS = ("supersedes_id", "compensates_id")  # empty here


def test_the_identity_of_an_operation_is_never_changed() -> None:
    before, table = rows(Operation), Operation._meta.db_table
    for assignment in [
        *changes(Operation, but=(*MOVES, *LINKS, "proposal_id")),
        *(f"{link} = id" for link in LINKS),
    ]:
        with pytest.raises(IntegrityError, match=r"the identity of operation .* does not change"):
            update(table, assignment)
    with pytest.raises(IntegrityError, match=r"the identity of operation|is settled"):
        update(table, "proposal_id = id")
    assert rows(Operation) == before


def test_what_protects_an_operation_is_fixed_when_it_is_first_sent() -> None:
    for assignment in (
        "first_sent_at = now()",
        "first_sent_at = NULL",
        "replay_not_after = now() + interval '1 year'",
        "replay_not_after = NULL",
    ):
        with pytest.raises(IntegrityError, match=r"what protects operation .* was fixed"):
            update("reconciliation_operation", assignment, "replay_not_after IS NOT NULL")


def test_a_settled_operation_does_not_move() -> None:
    for state in set(OperationState) - {OperationState.VERIFIED}:
        with pytest.raises(IntegrityError, match=r"operation .* is settled"):
            update("reconciliation_operation", f"state = '{state}', settled_at = NULL")


@pytest.mark.parametrize(
    "assignment",
    ["resource = 're_other'", "receipt = NULL", "settled_at = '2001-01-01'", "due_at = now()"],
)
def test_what_settled_an_operation_does_not_change(assignment: str) -> None:
    with pytest.raises(IntegrityError):
        update("reconciliation_operation", assignment, "state = 'verified'")


def test_a_saved_change_of_identity_is_refused_too() -> None:
    operation = Operation.objects.order_by("pk")[0]
    operation.idempotency_key = "another"
    with pytest.raises(IntegrityError, match="the identity of operation"), transaction.atomic():
        operation.save()


def test_an_earlier_transmission_is_not_made_out_to_be_another_s() -> None:
    one, other = Operation.objects.order_by("pk")[:2]
    with pytest.raises(IntegrityError), transaction.atomic():
        Transmission.objects.filter(operation=one).update(operation=other)


def test_the_tables_that_are_named_here_are_all_there_are() -> None:
    """A new table of this app is part of the ledger, or is named here as none."""
    from django.apps import apps

    set_up = {Provider, ReviewQueue, ContractVersion, ReviewQueue.owners.through, DecisionPoint}
    switches = {DispatchStop, LookUpPace}  # who threw which is in the audit record
    rehearsing = {Sandbox, Rehearsal}  # append-only too (test_rehearsals)
    own = {Profile, DecisionDraft, PasswordReset}  # what is somebody's own
    # Around a case, and none of it decides; notes are append-only too (test_assigning).
    around = {CaseNote, Reminder, SavedView, BulkAction, BulkItem}
    telling = {Channel, Delivery, Digest, Message, Notification, Shift}  # what people are told
    every = set(apps.get_app_config("reconciliation").get_models(include_auto_created=True))
    others = {*set_up, *switches, *rehearsing, *around, *own, *telling}
    assert every == {*LEDGER, *others}
