"""Decisions that are refused: checked again on arrival, and nothing is written then."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core.exceptions import PermissionDenied
from django.db import transaction
from guardian.shortcuts import remove_perm

from reconciliation.core.errors import AlreadyDecided, InvalidDecision, NotAllowed
from reconciliation.core.states import DecisionKind
from reconciliation.models import AuditEntry, Decision, Evidence, Hold, Operation
from reconciliation.services.answers import MAX_NOTE
from reconciliation.services.decisions import Answer, record_decision
from reconciliation.services.offers import ground_of
from reconciliation.services.reconcile import ask_again
from tests.claiming import ONCE, acts, raising
from tests.deciding import (
    ABANDON,
    APPLIED,
    FAIL_RUN,
    KEEP_HOLDING,
    SEND_AGAIN,
    TRY_AGAIN,
    answer_on,
    decide,
    run_hold,
    states,
)
from tests.destination import RunningDestination
from tests.factories import (
    NOTE,
    administrator,
    advanced,
    code_of,
    held_operation,
    open_hold_of,
    owner_of,
    person,
    ready_provider,
    tenant,
)
from workflows.core.definitions import Child, Workflow
from workflows.core.errors import Conflict, UsageError
from workflows.models import Run
from workflows.registry import registry
from workflows.services.clock import database_now
from workflows.services.run_view import RunView
from workflows.services.runs import start
from workflows.services.stopping import cancel_run

pytestmark = pytest.mark.django_db

grieving = Workflow("tests.grieving")


@grieving.children(join="any_failure", on_failure="hold")
def bring_up(run: RunView) -> list[Child]:
    return [Child(ONCE.name, {"act": "act"})]


def everything() -> tuple[Any, ...]:
    """Whatever a decision could write."""
    models = (Decision, Evidence, AuditEntry, Hold, Operation, Run)
    return tuple(list(model._default_manager.order_by("pk").values()) for model in models)


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


def test_after_the_run_was_cancelled_nothing_is_decided(destination: RunningDestination) -> None:
    hold = run_hold(destination)
    cancel_run(hold.run_id, by="ada")
    error = refused(hold, answer_on(hold, TRY_AGAIN), AlreadyDecided)
    assert str(error) == "The run was cancelled meanwhile, and the hold was closed by it."
    assert Run.objects.get().state == "cancelled"


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


def test_a_join_that_failed_is_not_tried_again_and_its_run_may_be_ended() -> None:
    """What it joins has ended: it would fail for ever, a person's decision each time."""
    registry.add(grieving)
    registry.add(ONCE)
    acts["act"] = raising(ValueError("no such order"))
    parent = advanced(start(grieving.name, {}, tenant=tenant()))
    advanced(parent.children.get())
    assert advanced(parent).state == "held"
    hold = Hold.objects.get()
    error = refused(hold, answer_on(hold, TRY_AGAIN), NotAllowed, by=administrator())
    assert "The runs that it started have ended" in str(error)
    again = next(offer for offer in ground_of(hold).offers if offer.kind is TRY_AGAIN)
    assert "starting a new one" in again.what_helps
    decide(hold, FAIL_RUN, by=administrator())
    assert states(hold) == ("decided", "", "failed")


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
