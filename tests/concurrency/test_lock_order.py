"""Nobody locks rows once the audit record is locked, which is the last: no deadlock comes of it.

Each act here meets somebody who has a row, and who goes on to the record as soon as the act waits.
Many rows of one table are locked in the order of their IDs.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from reconciliation.core.facts import CONFLICT_LATER, Dispatch
from reconciliation.models import AuditEntry, Hold, Operation
from reconciliation.services.audit import add_entry
from reconciliation.services.dispatch import set_dispatch
from reconciliation.services.holds import close_by_proof, open_hold
from reconciliation.services.ledger import ensure_held
from reconciliation.services.locking import locked
from reconciliation.services.telling import tell_proven
from tests.claiming import HOLDING, ONCE, attempts, claimed, raising, ready_run
from tests.deciding import TRY_AGAIN, propose, two_needed
from tests.destination import RunningDestination
from tests.events import HOLDING as WAITING
from tests.events import let_deadline_come, swept
from tests.factories import (
    administrator,
    advanced,
    held_operation,
    many_runs,
    open_hold_of,
    ready_provider,
    started_run,
    tenant,
)
from tests.racing import beside, wait_until_blocked
from tests.waiting import LIMIT_SECONDS
from workflows.core.definitions import Child, Workflow
from workflows.models import Run
from workflows.models.ids import new_id
from workflows.registry import registry
from workflows.services.changes import changes_of
from workflows.services.claims import Claim, hold
from workflows.services.ending import end_cancelled
from workflows.services.run_view import RunView
from workflows.services.runs import start
from workflows.services.stopping import cancel_run

pytestmark = pytest.mark.usefixtures("committed_db")

family = Workflow("tests.family_of_two")


@family.children()
def bring_up(run: RunView) -> list[Child]:
    return [Child(run.input["child"], {"act": "act", "correlation": name}) for name in "ab"]


def meet(rows: QuerySet[Any], act: Callable[[], Any]) -> Any:
    """Do `act` while another has `rows`, who goes on to the record as soon as `act` waits."""
    with beside() as do:
        with transaction.atomic():
            assert list(rows.select_for_update(no_key=True))
            acting = do(act)
            wait_until_blocked(acting)
            add_entry("user:1 ada", "claimed", "run:1", {})
        return acting.result(timeout=LIMIT_SECONDS)


def with_children(child: Workflow) -> Run:
    """A run that waits for two of `child`, which are ready."""
    registry.add(child)
    registry.add(family)
    return advanced(start(family.name, {"child": child.name}, tenant=tenant()))


def proposed(destination: RunningDestination) -> Hold:
    """A held write of which somebody has proposed a decision: to end that is an entry, too."""
    ready_provider("desk", destination.url)
    held = two_needed(open_hold_of(held_operation(destination)))
    propose(held)
    return held


def test_a_case_that_is_closed_by_proof(destination: RunningDestination) -> None:
    held = proposed(destination)
    assert held.operation is not None
    operation = held.operation

    def prove() -> bool:
        with transaction.atomic():
            return close_by_proof(operation)

    assert meet(Hold.objects.filter(pk=held.pk), prove)
    held.refresh_from_db()
    assert held.state == "closed"


def test_the_cases_of_a_run_that_ends() -> None:
    """Its own, of which something is proposed."""
    run = advanced(ready_run(HOLDING, raising(ValueError("no"))))
    held = Hold.objects.get(run=run)
    held.queue = ready_provider("desk").default_queue
    held.save()
    propose(two_needed(held), TRY_AGAIN)
    meet(Hold.objects.filter(pk=held.pk), partial(cancel_run, run.pk, by="ada"))
    run.refresh_from_db()
    held.refresh_from_db()
    assert (run.state, held.state) == ("cancelled", "closed")


def test_runs_whose_end_different_people_have_asked_for() -> None:
    """Of the first a case is closed, on record; the second one has children to be asked."""
    first = advanced(ready_run(HOLDING, raising(ValueError("no"))))
    second = with_children(ONCE)
    for run, by in ((first, "ada"), (second, "bob")):
        Run.objects.filter(pk=run.pk).update(cancel_asked_at=Now(), cancel_asked_by=by)
    assert meet(second.children.all(), end_cancelled) == 2
    assert set(second.children.values_list("cancel_asked_by", flat=True)) == {"bob"}
    (closed,) = AuditEntry.objects.filter(verb__startswith="hold closed")
    assert closed.detail["by"] == "ada"


def test_a_child_whose_case_is_opened_looks_at_its_siblings_after_that() -> None:
    parent = with_children(WAITING)
    one, other = parent.children.order_by("parent_index")
    for child in (one, other):
        assert advanced(child).state == "waiting"
    let_deadline_come(other)
    assert swept(other).state == "held"
    # As where its parent was not to be had at that moment.
    Run.objects.filter(pk=other.pk).update(end_seen_at=None)
    let_deadline_come(one)
    meet(Run.objects.filter(pk=other.pk), partial(swept, one))
    assert [child.state for child in parent.children.all()] == ["held", "held"]
    assert {state for _, _, state in attempts(one)} == {"committed"}
    assert not parent.children.filter(end_seen_at=None).exists()


def beside_it(operation: Operation) -> Operation:
    """Another one that waits as it does; made before it, as far as the time of that says."""
    other = Operation.objects.get(pk=operation.pk)
    other.pk = new_id()
    (other.run,) = many_runs(1, "waiting", failure=operation.run.failure)
    other.idempotency_key = str(other.pk)
    other.created_at -= timedelta(hours=1)
    other.save(force_insert=True)
    return other


def test_dispatch_that_is_turned_on_locks_what_waited_in_the_order_of_the_ids() -> None:
    provider = ready_provider("payments", dispatch=Dispatch.OFF)
    first = Operation.objects.get(run=advanced(started_run()))
    second = beside_it(first)
    turn_on = partial(set_dispatch, provider, Dispatch.ON, administrator(), "It is mended now.")

    with beside() as do:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL deadlock_timeout = '1h'")  # it is not the victim
            rows = Operation.objects.select_for_update(no_key=True)
            rows.get(pk=first.pk)
            turning = do(turn_on)
            wait_until_blocked(turning)
            rows.get(pk=second.pk)
            # Somebody holds it, meanwhile.
            Operation.objects.filter(pk=first.pk).update(state="held", due_at=None)
        assert turning.result(timeout=LIMIT_SECONDS)
    assert Operation.objects.get(pk=first.pk).due_at is None
    assert Operation.objects.get(pk=second.pk).due_at is not None


@pytest.mark.parametrize(
    "lock",
    [
        lambda claim, _: hold(claim),
        lambda claim, _: ensure_held(claim),
        lambda _, held: locked(held.pk),
        lambda _, held: changes_of(held.queue, ["name"]),
    ],
    ids=["settling", "sending", "deciding", "setting up"],
)
def test_what_only_refers_to_a_locked_row_goes_on(
    lock: Callable[[Claim, Hold], object],
) -> None:
    """References are checked at the commit, when the audit record is locked already."""
    queue = ready_provider("desk").default_queue
    claim = claimed(ready_run())
    with transaction.atomic():
        held = open_hold(claim.run, None, queue, "step_failed", "A test.")

    def refer() -> None:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '10s'")
            open_hold(claim.run, None, queue, CONFLICT_LATER, "A test.")
            tell_proven(held)

    with beside() as do, transaction.atomic():
        lock(claim, held)
        do(refer).result(timeout=LIMIT_SECONDS)
