"""Saying what was wrong with a decision that is in force: a row beside it, which moves nothing.

A decision is never edited, and what it let start is not called back by software: an effect may be
out, a step may have read it. Where something can still be done there is a decision for it: on the
hold that comes next, by cancelling the run, or at the provider. The correction says so on record,
and both stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import structlog
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F

from reconciliation import access
from reconciliation.core.errors import InvalidDecision, NotAllowed
from reconciliation.core.states import DecisionKind
from reconciliation.models import Decision, DecisionProposal, Hold, ProposalEnd
from reconciliation.services.answers import OTHER_CASE, check_code, check_note
from reconciliation.services.audit import actor_of, add_entry
from reconciliation.services.drafts import forget
from reconciliation.services.locking import last_decision, locked
from workflows.failpoints import failpoint

log = structlog.get_logger(__name__)

NOTHING_TO_CORRECT = "No decision is in force on this case: there is nothing to correct."


@dataclass(frozen=True)
class CorrectionGiven:
    """What was wrong, as it was filled in; the fields are as in `Answer`."""

    note: str
    token: UUID
    code: str


def correct(hold_id: UUID, user: User, given: CorrectionGiven) -> Decision:
    """Record a correction of the decision in force on a hold.

    Returns:
        The correction; of a form that was submitted before, the one it recorded then.

    Raises:
        PermissionDenied: this person may not decide this hold.
        InvalidDecision: note or code is missing.
        NotAllowed: nothing was decided.
    """
    failpoint("before_decision")
    with transaction.atomic():
        hold = locked(hold_id)
        access.ensure_may_decide(user, hold)
        before = Decision.objects.filter(token=given.token, by=user, hold=hold).first()
        if before is not None:
            return before
        ensure_new(given.token)
        decision = last_decision(hold)
        if decision is None:
            raise NotAllowed(NOTHING_TO_CORRECT)
        check_note(given.note)
        check_code(hold, given.code)
        correction = write(hold, decision, user, given)
    failpoint("after_decision")
    return correction


def ensure_new(token: UUID) -> None:
    used = (
        Decision.objects.filter(token=token).exists(),
        DecisionProposal.objects.filter(token=token).exists(),
        ProposalEnd.objects.filter(token=token).exists(),
    )
    if any(used):
        raise InvalidDecision("token", OTHER_CASE)


def write(hold: Hold, decision: Decision, user: User, given: CorrectionGiven) -> Decision:
    correction = Decision.objects.create(
        hold=hold,
        operation=hold.operation,
        kind=DecisionKind.CORRECTION,
        by=user,
        by_name=user.get_full_name() or user.get_username(),
        note=given.note.strip(),
        hold_version=hold.version,
        token=given.token,
        shown={"corrects": str(decision.pk), "kind": decision.kind, "by": decision.by_name},
        corrects=decision,
    )
    # The next reader of the case reads it with this one.
    Hold.objects.filter(pk=hold.pk).update(version=F("version") + 1)
    subject = f"operation:{hold.operation_id}" if hold.operation_id else f"run:{hold.run_id}"
    detail = {"decision": str(correction.pk), "corrects": str(decision.pk), "hold": str(hold.pk)}
    add_entry(actor_of(user), "corrected", subject, detail)
    forget(user, hold.case_id)
    log.info("decision.corrected", hold=str(hold.pk), run=str(hold.run_id))
    return correction
