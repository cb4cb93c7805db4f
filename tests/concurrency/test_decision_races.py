"""Two people at once, on connections of their own: one decision counts, one chain records it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.db import transaction

from reconciliation.core.errors import AlreadyDecided
from reconciliation.core.states import DecisionKind
from reconciliation.models import AuditEntry, Decision, Operation
from reconciliation.services import reconcile as reconciling
from reconciliation.services.audit import add_entry, first_broken_entry
from reconciliation.services.decisions import record_decision
from tests.deciding import answer_on
from tests.destination import RunningDestination
from tests.factories import held_operation, open_hold_of, owner_of, person, ready_provider, settled
from tests.racing import at_once, beside, wait_until_blocked
from tests.waiting import LIMIT_SECONDS
from workflows.services.results import result_of

pytestmark = pytest.mark.usefixtures("committed_db")

# --- decisions --------------------------------------------------------------------------------

REPEATS = 20


def decide_together(operation: Operation, first: Any, second: Any) -> Decision:
    hold = open_hold_of(operation)
    given = at_once(
        lambda: record_decision(hold.pk, first, answer_on(hold, DecisionKind.APPLIED)),
        lambda: record_decision(hold.pk, second, answer_on(hold, DecisionKind.ABANDON)),
    )
    (recorded,) = Decision.objects.filter(hold=hold)
    (told,) = (each for each in given if isinstance(each, AlreadyDecided))
    assert told.decision == recorded
    assert recorded in given
    return recorded


def test_of_two_decisions_at_the_same_moment_one_counts_and_the_other_is_told(
    destination: RunningDestination,
) -> None:
    """A19: never two, never none, and never a success for the one that was not recorded."""
    provider = ready_provider("desk", destination.url)
    assert provider.default_queue is not None
    second = owner_of(provider.default_queue, "reviewer_2")
    for _ in range(REPEATS):
        operation = held_operation(destination)
        recorded = decide_together(operation, person(), second)
        operation.refresh_from_db()
        was_applied = recorded.kind == "applied"
        assert operation.state == ("applied" if was_applied else "abandoned")
        run = settled(operation.run)
        assert run.state == "completed"
        assert ("noted as c_1" in result_of(run)) is was_applied
    assert Decision.objects.count() == REPEATS
    assert first_broken_entry() is None


def test_two_clicks_at_the_same_moment_decide_once_and_give_the_same(
    destination: RunningDestination,
) -> None:
    """A20."""
    ready_provider("desk", destination.url)
    for _ in range(5):
        hold = open_hold_of(held_operation(destination))
        answer = answer_on(hold, DecisionKind.APPLIED)
        given = at_once(*[partial(record_decision, hold.pk, person(), answer)] * 4)
        assert given == [Decision.objects.get(hold=hold)] * 4


def test_a_decision_waits_for_proof_that_is_being_written_and_is_then_refused(
    destination: RunningDestination,
) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("lookup_unavailable", times=None)
    operation = held_operation(destination, "replacement_worker")
    hold = open_hold_of(operation)
    destination.client.disarm()
    reviewer = person()
    with beside() as do:
        with transaction.atomic():
            reconciling.ask_again(operation.pk)
            deciding = do(
                lambda: record_decision(hold.pk, reviewer, answer_on(hold, DecisionKind.ABANDON))
            )
            wait_until_blocked(deciding)
        with pytest.raises(AlreadyDecided, match="Proof arrived meanwhile"):
            deciding.result(timeout=LIMIT_SECONDS)
    operation.refresh_from_db()
    assert operation.state == "applied"
    assert not Decision.objects.exists()


# --- the record of records --------------------------------------------------------------------


def test_entries_from_many_at_once_make_one_unbroken_chain() -> None:
    def add(actor: int) -> None:
        for number in range(5):
            with transaction.atomic():
                add_entry(f"user:{actor}", "decided", f"operation:{number}", {"n": number})

    given = at_once(*(lambda actor=actor: add(actor) for actor in range(8)))
    assert given == [None] * 8
    assert list(AuditEntry.objects.order_by("seq").values_list("seq", flat=True)) == list(
        range(1, 41)
    )
    assert first_broken_entry() is None


def test_an_entry_that_is_rolled_back_leaves_no_gap() -> None:
    with beside() as do:
        with transaction.atomic():
            add_entry("user:1", "decided", "operation:1", {})
            waiting = do(_add_one)
            wait_until_blocked(waiting)
            transaction.set_rollback(True)
        waiting.result(timeout=LIMIT_SECONDS)
    assert AuditEntry.objects.get().seq == 1
    assert first_broken_entry() is None


def _add_one() -> None:
    with transaction.atomic():
        add_entry("user:2", "decided", "operation:2", {})
