"""Opening and closing holds, and which queue they go to."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db.models import Q
from django.db.models.functions import Now

from reconciliation.core.facts import CONFLICT_LATER, HOLD_SENTENCES, LATER, Facts, HoldReason
from reconciliation.core.states import HoldState, OperationState
from reconciliation.models import Hold, Operation, ReviewQueue
from reconciliation.services.audit import add_entry
from reconciliation.services.proposals import end_as_void
from reconciliation.services.telling import tell_opened, tell_proven
from workflows.core.states import RunState
from workflows.core.words import storable
from workflows.models import Run
from workflows.services.claims import Claim
from workflows.services.clock import database_now
from workflows.services.kinds import Overtaken

log = structlog.get_logger(__name__)

# A hold that no queue takes is still due: an administrator sees it first.
DUE_WITHOUT_QUEUE = timedelta(hours=1)


def open_operation_hold(
    operation: Operation, reason: HoldReason, missing: tuple[str, ...], said: str = ""
) -> Hold:
    """Hold an operation for a person, in the caller's transaction, which also holds its run.

    Args:
        said: what is told in place of the reason's own sentence.
    """
    target = (
        OperationState.POSTCONDITION_FAILED
        if reason is HoldReason.POSTCONDITION_FAILED
        else OperationState.HELD
    )
    if target is OperationState.POSTCONDITION_FAILED and operation.state != OperationState.APPLIED:
        ensure_moved(Operation.objects.move(operation, OperationState.APPLIED))
    ensure_moved(Operation.objects.move(operation, target, due_at=None))
    sentence = said or str(HOLD_SENTENCES[reason])
    message = not_ready(missing) if reason is HoldReason.NOT_READY else sentence
    queue = queue_for(operation.run.tenant_id, operation)
    return open_hold(operation.run_id, operation, queue, reason, message)


def not_ready(missing: tuple[str, ...]) -> str:
    lacks = "; ".join(missing)
    return f"{HOLD_SENTENCES[HoldReason.NOT_READY]} Missing: {lacks}."


def open_run_hold(claim: Claim, reason: str, message: str) -> None:
    """Hold a run's step for a person, in the transaction that moves the run."""
    open_hold(claim.run, None, queue_for(claim.tenant, None), reason, message)


def locked_state(operation: Operation) -> OperationState:
    """The state that it has by now; its row stays locked, and is before the audit record is.

    Whoever adds what a provider shows comes through here first. So of two records that come at
    once the second one finds the first, and whoever settles it meanwhile finds them
    (`ensure_nothing_new`) or is found to have settled it.
    """
    rows = Operation.objects.select_for_update(no_key=True).filter(pk=operation.pk)
    return OperationState(rows.values_list("state", flat=True).get())


def ensure_nothing_new(operation: Operation, facts: Facts) -> None:
    """Make sure that nothing is known of an operation but what was decided from; the caller's move
    of it keeps its row locked.

    Raises:
        Overtaken: it is to be decided anew.
    """
    if operation.evidence.count() != len(facts.known):
        raise Overtaken


def open_later_conflict(operation: Operation) -> None:
    """Hold a settled operation, which the caller has locked, for a person: a record contradicts it.
    Its run is not moved; a hold for the same that is open already is enough."""
    open_ones = operation.holds.filter(state=HoldState.OPEN, reason=CONFLICT_LATER)
    if not open_ones.exists():
        queue = queue_for(operation.run.tenant_id, operation)
        open_hold(operation.run_id, operation, queue, CONFLICT_LATER, str(LATER))


def open_hold(
    run: UUID, operation: Operation | None, queue: ReviewQueue | None, reason: str, message: str
) -> Hold:
    hold = Hold.objects.create(
        run_id=run,
        operation=operation,
        queue=queue,
        reason=reason,
        message=storable(message, 1000),
        due_at=due_in(queue),
        provider_id=operation.provider_id if operation else None,
        amount=operation.amount if operation else None,
        window_ends_at=operation.replay_not_after if operation else None,
    )
    subject = f"operation:{operation.pk}" if operation else f"run:{run}"
    add_entry("system", "held", subject, {"hold": str(hold.pk), "reason": str(reason)})
    tell_opened(hold)
    log.info("hold.opened", hold=str(hold.pk), run=str(run), reason=str(reason))
    return hold


def due_in(queue: ReviewQueue | None) -> datetime:
    return database_now() + (queue.due_after if queue else DUE_WITHOUT_QUEUE)


def queue_for(tenant: UUID, operation: Operation | None) -> ReviewQueue | None:
    """The queue that takes it: the most specific by tenant, provider and action."""
    takes = Q(tenant=None) | Q(tenant=tenant)
    if operation is None:
        queues = ReviewQueue.objects.filter(takes, provider=None, action="")
    else:
        queues = ReviewQueue.objects.filter(
            takes,
            Q(provider=None) | Q(provider_id=operation.provider_id),
            Q(action="") | Q(action=operation.action),
        )
    found = max(queues, key=specificity, default=None)
    own = operation.provider.default_queue if operation else None
    if own is not None and own.tenant_id not in (None, tenant):
        own = None
    # A queue that takes anything comes after the provider's own.
    return found if found and (own is None or any(specificity(found))) else own


def specificity(queue: ReviewQueue) -> tuple[bool, bool, bool]:
    return (bool(queue.action), queue.provider_id is not None, queue.tenant_id is not None)


def why_closed(hold: Hold) -> str:
    """What closed a hold that nobody has decided, in a few words."""
    run = hold.operation.run if hold.operation else hold.held_run
    if run.state == RunState.CANCELLED:
        return "The run was cancelled"
    if hold.operation and hold.reason == HoldReason.AUTHORISATION_LAPSED:
        return "It was approved again"
    return "Proof arrived" if hold.operation else "The run has moved on"


def close_by_proof(operation: Operation) -> bool:
    """Close the open hold of an operation whose outcome was proven; False when it has none."""
    # Locked before the audit record, for which whoever has it may be waiting.
    open_ones = Hold.objects.filter(operation=operation, state=HoldState.OPEN)
    hold = open_ones.select_for_update(no_key=True).first()
    if hold is None:
        return False
    holds = Hold.objects.filter(pk=hold.pk, state=HoldState.OPEN)
    end_as_void(holds, "Proof arrived, and the hold was closed by it.")
    closed = holds.update(state=HoldState.CLOSED, closed_at=Now())
    if closed:
        add_entry("system", "hold closed by proof", f"operation:{operation.pk}", {})
        tell_proven(hold)
    return bool(closed)


def ensure_moved(moved: bool) -> None:
    if not moved:
        raise RuntimeError("an operation was moved by somebody who does not hold its run")


def run_of(operation: Operation) -> Run:
    """The operation's run, locked before the operation (lock order)."""
    return Run.objects.select_for_update(no_key=True).get(pk=operation.run_id)
