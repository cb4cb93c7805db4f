"""A record that contradicts an operation comes at the very moment at which somebody settles it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from reconciliation.core.classify import classify
from reconciliation.core.matching import Found, compare
from reconciliation.core.states import DecisionKind, EvidenceKind
from reconciliation.models import Evidence, Hold, Operation, Provider
from reconciliation.services import transmit as transmitting
from reconciliation.services.decisions import record_decision
from reconciliation.services.duplicates import keep_double
from reconciliation.services.providers import contract_of
from reconciliation.services.records import add_record_evidence, intended_by
from reconciliation.services.write_step import execute_write, settle
from tests.claiming import claim_at_write, expire_lease
from tests.deciding import answer_on
from tests.destination import RunningDestination
from tests.factories import (
    advanced,
    held_operation,
    open_hold_of,
    person,
    ready_provider,
    started_run,
)
from tests.racing import beside, wait_until_blocked
from tests.sending import about_to_send, effects, the_operation
from tests.waiting import LIMIT_SECONDS
from workflows.models import Run
from workflows.services import kinds
from workflows.services.claims import Claim, claim_run
from workflows.services.clock import database_now
from workflows.services.executor import take
from workflows.services.ownership import Keeper
from workflows.services.run_view import RunView

pytestmark = pytest.mark.usefixtures("committed_db")


def show(operation: Operation, resource: str, **fields: Any) -> None:
    """Let a look-up show a record of `operation`."""
    record = Found(resource=resource, operation=str(operation.pk), fields=fields)
    comparison = compare(intended_by(operation), record, marker_required=True)
    with transaction.atomic():
        add_record_evidence(operation, EvidenceKind.LOOKUP, record, comparison, "look-up")


CONFLICTS: dict[str, Callable[[Operation], Any]] = {
    "a second record": lambda operation: show(operation, "re_another"),
    "one that does not fit": lambda operation: show(operation, operation.resource, amount=1),
    "what the duplicate finder has found": lambda operation: keep_double(
        operation, ("re_1", "re_2")
    ),
}


def about_to_settle() -> Claim:
    """A worker whose write was answered, and has moved nothing since."""
    claim = claim_at_write(started_run())
    execute_write(claim, RunView(claim))
    assert the_operation().state == "applied"
    return claim


@pytest.mark.parametrize("name", CONFLICTS)
def test_what_comes_just_before_it_is_settled_holds_it(
    name: str, destination: RunningDestination
) -> None:
    ready_provider("payments", destination.url)
    claim = about_to_settle()
    with beside() as do:
        with transaction.atomic():
            CONFLICTS[name](the_operation())
            settling = do(lambda: take(claim, Keeper()))
            wait_until_blocked(settling)
        settling.result(timeout=LIMIT_SECONDS)
    operation = the_operation()
    assert (operation.state, operation.run.state) == ("held", "held")
    assert Hold.objects.get().reason == "conflict"
    assert effects(destination) == 1


@pytest.mark.parametrize("name", CONFLICTS)
def test_what_comes_when_it_was_decided_to_settle_it_is_decided_anew(
    name: str, destination: RunningDestination
) -> None:
    """Between what a worker knows and its commit."""
    ready_provider("payments", destination.url)
    claim = about_to_settle()
    settling = settle(claim, the_operation())
    assert isinstance(settling, kinds.Done)
    CONFLICTS[name](the_operation())
    with pytest.raises(kinds.Overtaken), transaction.atomic():
        settling.also()
    take(claim, Keeper())
    operation = the_operation()
    assert (operation.state, operation.run.state) == ("held", "held")
    assert Hold.objects.get().reason == "conflict"


@pytest.mark.parametrize("name", CONFLICTS)
def test_what_comes_just_after_it_was_settled_opens_a_hold_of_its_own(
    name: str, destination: RunningDestination
) -> None:
    ready_provider("payments", destination.url)
    claim = about_to_settle()
    seen = the_operation()
    with beside() as do:
        with transaction.atomic():
            take(claim, Keeper())
            showing = do(lambda: CONFLICTS[name](seen))
            wait_until_blocked(showing)
        showing.result(timeout=LIMIT_SECONDS)
    operation = the_operation()
    assert (operation.state, operation.run.state) == ("verified", "completed")
    assert Hold.objects.get().reason == "conflict_later"


def test_of_two_records_that_come_at_once_the_second_finds_the_first(
    destination: RunningDestination,
) -> None:
    ready_provider("machines", destination.url)
    operation = about_to_send(started_run("replacement_worker")).operation
    with beside() as do:
        with transaction.atomic():
            show(operation, "m_1")
            second = do(lambda: show(operation, "m_2"))
            wait_until_blocked(second)
        second.result(timeout=LIMIT_SECONDS)
    kinds = Evidence.objects.order_by("recorded_at", "id").values_list("kind", flat=True)
    assert list(kinds) == ["lookup", "conflict"]
    assert Provider.objects.get().contradicted_at is not None


def test_an_answer_and_whoever_gives_its_send_up_do_not_lock_each_other_out(
    destination: RunningDestination,
) -> None:
    """Sends first, then their operation: for both."""
    ready_provider("payments", destination.url)
    sender = about_to_send(started_run())
    outcome = sender.transmit()
    expire_lease(sender.operation.run)
    later = claim_run(sender.operation.run_id, Keeper().worker)
    assert later is not None
    proves = classify(outcome.report, contract_of(sender.operation))
    with beside() as do:
        with transaction.atomic():
            transmitting.close(sender.transmission, outcome, proves, database_now())
            giving_up = do(lambda: transmitting.give_up_lost_sends(the_operation(), later))
            wait_until_blocked(giving_up)
            sender.record(outcome)
        giving_up.result(timeout=LIMIT_SECONDS)
    assert [row.state for row in sender.operation.transmissions.all()] == ["acknowledged"]


# --- people -----------------------------------------------------------------------------------


def test_a_record_of_what_was_given_up_meanwhile_opens_a_hold_of_its_own(
    destination: RunningDestination,
) -> None:
    ready_provider("desk", destination.url)
    operation = held_operation(destination)
    hold = open_hold_of(operation)
    with beside() as do:
        with transaction.atomic():
            record_decision(hold.pk, person(), answer_on(hold, DecisionKind.ABANDON))
            showing = do(lambda: show(operation, "t_1"))
            wait_until_blocked(showing)
        showing.result(timeout=LIMIT_SECONDS)
    assert advanced(Run.objects.get()).state == "completed"
    (later,) = Hold.objects.filter(state="open")
    assert (later.reason, the_operation().state) == ("conflict_later", "abandoned")
