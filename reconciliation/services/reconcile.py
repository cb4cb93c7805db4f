"""Finding out what became of an operation without a worker holding its run: asking and waking.

Asking is reading, so it needs no lease; it goes on while dispatch is off (promise P13). Nothing is
ever sent here: when a send is the next move, the run is made ready, and the worker that claims it
sends under its fence.

What the database takes back, such as the victim of a deadlock, is written again as it was: an
answer is evidence, and nobody is asked a second time for it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar
from uuid import UUID

import structlog
from django.db import transaction

from reconciliation.adapters.base import Adapter, Prepared, Unavailable, Verified
from reconciliation.core.decide import decide
from reconciliation.core.facts import (
    WAIT_SENTENCES,
    Advance,
    Hold,
    LookUp,
    Move,
    Verify,
    Wait,
    WaitReason,
)
from reconciliation.core.matching import Fit, Found, compare
from reconciliation.core.states import EvidenceKind, OperationState
from reconciliation.models import Evidence, Operation
from reconciliation.sealing import unseal
from reconciliation.services.facts import load_facts
from reconciliation.services.holds import close_by_proof, open_operation_hold, run_of
from reconciliation.services.ledger import WITH_PROVIDER
from reconciliation.services.pacing import at_pace, count_turn, leave_alone
from reconciliation.services.providers import adapter_of, contract_of, is_in_scope
from reconciliation.services.records import add_record_evidence, intended_by
from workflows.core.durations import moment
from workflows.core.states import RunState
from workflows.core.words import storable
from workflows.failpoints import failpoint
from workflows.models import Run
from workflows.services import hints
from workflows.services.clock import database_now
from workflows.services.taken_back import again_if_taken_back

log = structlog.get_logger(__name__)

Answered = TypeVar("Answered")

# How long a process that took a due reconciliation has for it before another one may take it.
TAKEN = timedelta(seconds=60)
DUE_BATCH = 100
MOST_RECORDS = 10  # kept of one look-up: two that differ are a conflict already
# What waits for dispatch is looked at now and then all the same, however long its window is: a
# switch that was thrown at the very moment of parking must not leave it lying.
LOOK_AGAIN = timedelta(seconds=60)


def load(operation: UUID) -> Operation:
    return Operation.objects.select_related(*WITH_PROVIDER).get(pk=operation)


def hint_due_operations() -> int:
    """A duty of the sweep: hint at operations that are to be looked at now."""
    due = Operation.objects.filter(due_at__lte=database_now()).order_by("due_at")
    found = list(due.values_list("pk", flat=True)[:DUE_BATCH])
    for operation in found:
        hints.send("reconciliation.tasks.reconcile", operation)
    return len(found)


def reconcile(operation_id: UUID) -> None:
    """Look at a due operation: ask what is to be asked now, then wake, hold or rest.

    Does nothing when it is not due, or another process has taken it.
    """
    now = database_now()
    failpoint("before_take")
    taken = Operation.objects.filter(pk=operation_id, due_at__lte=now).update(due_at=now + TAKEN)
    if not taken:
        return
    failpoint("after_take")
    operation = load(operation_id)
    with structlog.contextvars.bound_contextvars(
        run=str(operation.run_id), operation=str(operation.pk)
    ):
        ask_and_follow(operation)


def ask_and_follow(operation: Operation, *, asked: bool = False) -> None:
    """Ask until there is nothing to ask now, then follow what is known.

    Args:
        asked: it was just looked up; the turn of that is good for checking what was found.
    """
    while True:
        facts = load_facts(operation)
        move = decide(facts, database_now())
        if isinstance(move, LookUp) or (isinstance(move, Verify) and not asked):
            move = at_pace(operation, facts, move)
        match move:
            case LookUp():
                look_up(operation)
                asked = True
            case Verify(resource):
                verify(operation, resource)
                asked = False
            case _:
                follow(operation, move, facts.missing)
                return


def ask_again(operation_id: UUID) -> None:
    """Look an operation up now because a person asks, and follow what is found.

    Also for a held operation: proof that arrives closes its hold by itself. It waits for no turn,
    but counts as one: whatever has none yet comes after it.
    """
    operation = load(operation_id)
    if can_be_asked(operation):
        count_turn(operation)
        look_up(operation)
        ask_and_follow(operation, asked=True)


def can_be_asked(operation: Operation) -> bool:
    settled = OperationState(operation.state).is_settled
    return contract_of(operation).look_up is not None and not settled


def follow(operation: Operation, move: Move, missing: tuple[str, ...]) -> None:
    """Write what follows from a move that asks nothing: one transaction, run before operation.

    An operation that was brought forward since it was loaded stays due: the move was decided from
    facts that have changed, such as a switch that was thrown meanwhile.
    """
    again_if_taken_back(partial(write_move, operation, move, missing))


def write_move(loaded: Operation, move: Move, missing: tuple[str, ...]) -> None:
    failpoint("before_follow", loaded.step)
    with transaction.atomic():
        run = run_of(loaded)
        operation = (
            Operation.objects.select_for_update(of=("self",), no_key=True)
            .select_related(*WITH_PROVIDER)
            .get(pk=loaded.pk)
        )
        still = operation.due_at in (None, loaded.due_at)
        if still and run.state == RunState.HELD:
            follow_held(run, operation, move)
        elif still and run.state == RunState.WAITING:
            follow_parked(run, operation, move, missing)
        # Else a worker has the run and looks for itself, or the run is over.
    failpoint("after_follow", loaded.step)


def follow_held(run: Run, operation: Operation, move: Move) -> None:
    """A held operation stays with its person, unless the effect is proven now.

    A run that is held for another reason, such as workers that it ended, stays held.
    """
    if isinstance(move, Advance | Wait) and proven(operation) and close_by_proof(operation):
        if operation.state == OperationState.HELD:
            Operation.objects.move(operation, OperationState.APPLIED, due_at=None)
        wake(run)
    else:
        changes: dict[str, datetime | None] = {"due_at": None}
        if isinstance(move, Wait) and move.reason is WaitReason.AT_PACE:
            changes |= parked_until(move.until, move.reason)  # it is still to be asked about
        Operation.objects.filter(pk=operation.pk).update(**changes)


def proven(operation: Operation) -> bool:
    return operation.evidence.filter(completes=True).exists()


def follow_parked(run: Run, operation: Operation, move: Move, missing: tuple[str, ...]) -> None:
    match move:
        case Wait(until, reason):
            Operation.objects.filter(pk=operation.pk).update(**parked_until(until, reason))
            # What it waited for may be over, and it waits for something else now.
            failure = {"reason": str(reason), "message": wait_message(until, reason)}
            Run.objects.unchanged(run).update(failure=failure)
        case Hold(reason):
            hold = open_operation_hold(operation, reason, missing)
            failure = {"reason": str(reason), "message": hold.message}
            moved = Run.objects.move(run, RunState.HELD, failure=failure)
            assert moved, "the run is locked"
        case _:
            Operation.objects.filter(pk=operation.pk).update(due_at=None)
            wake(run)


def parked_until(until: datetime | None, reason: WaitReason) -> dict[str, datetime]:
    """What is written of an operation that waits: when it is looked at, and its turn, if any."""
    due = look_again_at(until, reason)
    return {"due_at": due, "turn_at": due} if reason is WaitReason.AT_PACE else {"due_at": due}


def wait_message(until: datetime | None, reason: WaitReason) -> str:
    if reason is not WaitReason.AT_PACE or until is None:
        return WAIT_SENTENCES[reason]
    return f"{WAIT_SENTENCES[reason]} Its turn is at {moment(until, database_now())}."


def look_again_at(until: datetime | None, reason: WaitReason) -> datetime:
    """When what waits until then, or for somebody, is looked at next."""
    again = database_now() + LOOK_AGAIN
    if until is None:
        return again
    return min(until, again) if reason is WaitReason.DISPATCH else until


def wake(run: Run) -> None:
    """Make a waiting or held run ready; whoever claims it decides anew from the facts."""
    moved = Run.objects.move(run, RunState.READY, failure=None)
    assert moved, "the run is locked"
    hints.run_is_ready(run.pk)


# --- asking -----------------------------------------------------------------------------------


def look_up(operation: Operation) -> None:
    """Ask the provider for its records of the operation, and keep the answer as evidence."""
    asked_at = database_now()
    answer = asked(
        operation,
        lambda adapter, seconds: adapter.look_up(
            operation.action,
            operation.pk,
            seconds,
            Prepared.from_bytes(unseal(operation.request_sealed)),
        ),
    )
    again_if_taken_back(partial(keep_answer, operation, answer, asked_at))
    log.info("operation.looked_up", answered=not isinstance(answer, Unavailable))


def keep_answer(
    operation: Operation, answer: list[Found] | Unavailable, asked_at: datetime
) -> None:
    failpoint("before_found", operation.step)
    with transaction.atomic():
        if isinstance(answer, Unavailable):
            add_unavailable(operation, answer, "look-up", asked_at)
        else:
            add_found(operation, answer, asked_at)
    failpoint("after_found", operation.step)


def verify(operation: Operation, resource: str) -> None:
    """Ask whether the result is as it should be, and keep the answer as evidence."""
    again_if_taken_back(partial(keep_check, operation, check_result(operation, resource)))


def check_result(operation: Operation, resource: str) -> Evidence:
    """Ask the same; the answer is evidence that is not kept yet."""
    asked_at = database_now()
    answer = asked(
        operation, lambda adapter, seconds: adapter.verify(operation.action, resource, seconds)
    )
    if isinstance(answer, Unavailable):
        return unavailable(operation, answer, "result check", asked_at)
    return verification(operation, resource, answer, asked_at)


def keep_check(operation: Operation, checked: Evidence) -> None:
    failpoint("before_checked", operation.step)
    checked.save(force_insert=True)
    failpoint("after_checked", operation.step)


def asked(
    operation: Operation, question: Callable[[Adapter, float], Answered | Unavailable]
) -> Answered | Unavailable:
    """Ask through the provider's adapter. A question that cannot be asked is not answered."""
    contract = contract_of(operation)
    if not is_in_scope(operation):
        return Unavailable("the provider is set up for another account, address or credential")
    try:
        adapter = adapter_of(operation.provider, contract)
        answer = question(adapter, contract.timeout.total_seconds())
    except Exception as error:
        log.exception("operation.not_asked")
        return Unavailable(f"it could not be asked ({type(error).__name__})")
    if isinstance(answer, Unavailable) and (answer.throttled or answer.retry_after_seconds):
        again_if_taken_back(partial(leave_alone, operation.provider, answer.retry_after_seconds))
    return answer


def add_found(operation: Operation, records: list[Found], asked_at: datetime) -> None:
    """Keep what a look-up found. Only a record that itself carries our marker is ours."""
    intended = intended_by(operation)
    ours = [
        (record, comparison)
        for record in records
        if (comparison := compare(intended, record, marker_required=True)).fit is not Fit.NOT_OURS
    ]
    for record, comparison in ours[:MOST_RECORDS]:
        add_record_evidence(
            operation, EvidenceKind.LOOKUP, record, comparison, "look-up", observed_at=asked_at
        )
    if records and not ours:
        others = f"it showed {len(records)} records of others: it does not follow the filter"
        add_unavailable(operation, Unavailable(others), "look-up", asked_at)
    elif not records:
        Evidence.objects.create(
            operation=operation,
            kind=EvidenceKind.ABSENCE,
            source="look-up",
            observed_at=asked_at,
            detail_redacted="no record carries our ID",
        )


def verification(
    operation: Operation, resource: str, answer: Verified, asked_at: datetime
) -> Evidence:
    return Evidence(
        operation=operation,
        kind=EvidenceKind.LOOKUP,
        completes=False,
        postcondition=answer.met,
        resource=resource,
        source="result check",
        observed_at=asked_at,
        detail_redacted=storable(answer.detail, 1000),
    )


def add_unavailable(
    operation: Operation, answer: Unavailable, source: str, asked_at: datetime
) -> None:
    unavailable(operation, answer, source, asked_at).save(force_insert=True)


def unavailable(
    operation: Operation, answer: Unavailable, source: str, asked_at: datetime
) -> Evidence:
    return Evidence(
        operation=operation,
        kind=EvidenceKind.UNAVAILABLE,
        source=source,
        observed_at=asked_at,
        retry_after_at=after(answer.retry_after_seconds),
        detail_redacted=storable(answer.detail, 1000),
    )


def after(seconds: float | None) -> datetime | None:
    return database_now() + timedelta(seconds=seconds) if seconds else None
