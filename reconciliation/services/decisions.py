"""Recording a person's decision on a hold: one transaction, checked again on arrival.

The decision carries the hold's version that was read: of two reviewers the second is told who
decided what and when, and nothing is lost. A form's one-time token makes submitting twice decide
once. Whether a decision is safe is `core.options`' to say, with the facts as they are now. Where
the queue asks for two people, the first one's decision is a proposal (`services.proposals`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from reconciliation import access
from reconciliation.core.errors import AlreadyDecided, InvalidDecision
from reconciliation.core.facts import CONFLICT_LATER, HoldReason
from reconciliation.core.states import (
    DecisionKind,
    EvidenceKind,
    HoldState,
    OperationState,
)
from reconciliation.models import Decision, DecisionProposal, Evidence, Hold, Operation
from reconciliation.services.answers import OTHER_CASE, Answer, check_answer
from reconciliation.services.audit import actor_of, add_entry
from reconciliation.services.drafts import forget
from reconciliation.services.locking import ensure_unchanged, locked
from reconciliation.services.offers import (
    Ground,
    ensure_as_shown,
    ensure_offered,
    ground_of,
    needs_second,
    what_was_shown,
)
from reconciliation.services.proposals import end_if_void, propose
from workflows.core.states import RunState
from workflows.failpoints import failpoint
from workflows.models import Run
from workflows.services import hints
from workflows.services.waits import cancel_open

log = structlog.get_logger(__name__)

__all__ = ["Answer", "record_decision"]


def record_decision(hold_id: UUID, user: User, answer: Answer) -> Decision | DecisionProposal:
    """Record a decision and move operation and run by it; or propose it, where it takes two.

    Returns:
        The decision, or the proposal, by which nothing has moved; of a form that was submitted
        before, what it recorded then.

    Raises:
        PermissionDenied: this person may not decide this hold.
        InvalidDecision: something the decision needs is missing, or is known now and was not
            when the form was read; names the field.
        AlreadyDecided: somebody decided or proposed first; carries theirs.
        NotAllowed: the decision is not offered now; says why.
    """
    failpoint("before_decision")
    with transaction.atomic():
        hold = locked(hold_id)
        access.ensure_may_decide(user, hold)
        before = submitted_before(hold, user, answer.token)
        if before is not None:
            return before
        ground = ground_of(hold)
        end_if_void(ground)
        ensure_unchanged(hold, answer.version)
        check_answer(hold, answer)
        ensure_as_shown(ground, answer.basis)
        ensure_offered(ground, answer.kind)
        if needs_second(hold, answer.kind):
            recorded: Decision | DecisionProposal = propose(ground, user, answer)
        else:
            recorded = decide(ground, Deciding(user, answer))
        forget(user, hold.case_id)
    failpoint("after_decision")
    return recorded


def submitted_before(hold: Hold, user: User, token: UUID) -> Decision | DecisionProposal | None:
    """What this very form has recorded; raises `InvalidDecision` where that was something else."""
    for model in (Decision, DecisionProposal):
        found = model.objects.filter(token=token).first()
        if found is None:
            continue
        if (found.by_id, found.hold_id) != (user.pk, hold.pk):
            raise InvalidDecision("token", OTHER_CASE)
        return found
    return None


@dataclass(frozen=True)
class Deciding:
    """Who decides what; with `proposal` it was proposed by `by` and is confirmed by `second`."""

    by: User
    answer: Answer
    proposal: DecisionProposal | None = None
    second: User | None = None

    @property
    def in_words(self) -> str:
        names = [name_of(each) for each in (self.by, self.second) if each is not None]
        return " and ".join(names)


def decide(ground: Ground, given: Deciding) -> Decision:
    """Write the decision and do what it says, in the caller's transaction."""
    decision = write(ground, given)
    act(ground.hold, decision)
    hold = ground.hold
    log.info("hold.decided", hold=str(hold.pk), run=str(hold.run_id), kind=given.answer.kind)
    return decision


def write(ground: Ground, given: Deciding) -> Decision:
    """Write decision, evidence and audit entry."""
    hold, answer = ground.hold, given.answer
    decision = Decision.objects.create(
        hold=hold,
        operation=hold.operation,
        kind=answer.kind,
        by=given.by,
        by_name=name_of(given.by),
        note=answer.note.strip(),
        evidence=stated(hold, given),
        resource=answer.resource.strip(),
        until=answer.until if answer.kind is DecisionKind.KEEP_HOLDING else None,
        hold_version=hold.version,
        token=answer.token,
        shown=what_was_shown(ground),
        proposal=given.proposal,
        second=given.second,
        second_name=name_of(given.second) if given.second else "",
    )
    detail = {"decision": str(decision.pk), "kind": str(answer.kind), "hold": str(hold.pk)}
    if given.proposal is not None:
        detail |= {"proposal": str(given.proposal.pk), "proposed_by": actor_of(given.by)}
    add_entry(actor_of(given.second or given.by), "decided", subject_of(hold), detail)
    return decision


def subject_of(hold: Hold) -> str:
    """What a hold is called in the audit record."""
    return f"operation:{hold.operation_id}" if hold.operation_id else f"run:{hold.run_id}"


def stated(hold: Hold, given: Deciding) -> Evidence | None:
    """What people state about the outcome, as evidence; some decisions state nothing."""
    kind = given.answer.kind
    if hold.operation is None or kind not in (DecisionKind.APPLIED, DecisionKind.SEND_AGAIN):
        return None
    applied = kind is DecisionKind.APPLIED
    result_accepted = (
        hold.operation.state == OperationState.POSTCONDITION_FAILED
        or hold.reason == HoldReason.NOT_VERIFIABLE
    )
    return Evidence.objects.create(
        operation=hold.operation,
        kind=EvidenceKind.OPERATOR,
        completes=applied,
        denies=not applied,
        postcondition=True if applied and result_accepted else None,
        resource=given.answer.resource.strip() if applied else "",
        source=given.in_words[:320],
        by=given.by,
    )


def act(hold: Hold, decision: Decision) -> None:
    """Do what the decision says, in its transaction."""
    kind = DecisionKind(decision.kind)
    if kind is DecisionKind.KEEP_HOLDING:
        Hold.objects.filter(pk=hold.pk).update(
            due_at=decision.until, tell_at=Now(), version=F("version") + 1
        )
        return
    Hold.objects.filter(pk=hold.pk).update(
        state=HoldState.DECIDED, closed_at=Now(), version=F("version") + 1, proposal=None
    )
    if hold.reason == CONFLICT_LATER:
        return  # its operation is settled, and its run has gone on
    if hold.operation is not None:
        move_operation(hold.operation, kind)
    move_run(hold.held_run, kind)


def move_operation(operation: Operation, kind: DecisionKind) -> None:
    def abandoned() -> bool:
        return Operation.objects.move(operation, OperationState.ABANDONED)

    moves: dict[DecisionKind, Callable[[], bool]] = {
        DecisionKind.APPLIED: lambda: applied(operation),
        DecisionKind.SEND_AGAIN: lambda: send_again(operation),
        DecisionKind.ABANDON: abandoned,
        # What comes in its place the run's own write step opens (`services.following`).
        DecisionKind.REPLACE: abandoned,
        DecisionKind.UNDO: abandoned,
    }
    if not moves[kind]():
        raise AlreadyDecided("The operation has moved meanwhile; nothing was recorded.")


def applied(operation: Operation) -> bool:
    """It took effect; the worker that goes on checks the result, where the contract can."""
    if operation.state == OperationState.POSTCONDITION_FAILED:
        return True  # the run goes on with what the person accepted as the result
    return Operation.objects.move(operation, OperationState.APPLIED)


def send_again(operation: Operation) -> bool:
    was_sent = operation.transmissions.exists()
    target = OperationState.UNKNOWN if was_sent else OperationState.INTENDED
    return Operation.objects.move(operation, target, send_again_at=Now())


def move_run(run: Run, kind: DecisionKind) -> None:
    if kind is DecisionKind.FAIL_RUN:
        failure = {"reason": "decided", "message": "A person ended it."}
        moved = Run.objects.move(run, RunState.FAILED, failure=failure)
        cancel_open([run.pk])
    else:
        # What was tried before the decision does not count against what comes after it.
        moved = Run.objects.move(run, RunState.READY, failure=None, failures=0, losses=0)
    if not moved:
        raise AlreadyDecided("The run has moved meanwhile; nothing was recorded.")
    hints.run_is_ready(run.pk)


def name_of(user: User) -> str:
    return user.get_full_name() or user.get_username()
