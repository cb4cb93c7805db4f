"""Confirming, refusing and taking back what one person has proposed: each once, under the locks.

To confirm is to decide: rights, facts and offers are asked anew, and the proposal is void where
they have changed. Then the decision is recorded with both names, and only then anything moves.
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F

from reconciliation import access
from reconciliation.core.errors import AlreadyDecided, InvalidDecision, ProposalVoid
from reconciliation.core.states import DecisionKind, HoldState, ProposalEndKind
from reconciliation.models import Decision, DecisionProposal, Hold, ProposalEnd
from reconciliation.services.answers import (
    OTHER_CASE,
    Answer,
    Verdict,
    VerdictGiven,
    check_verdict,
)
from reconciliation.services.decisions import Deciding, decide
from reconciliation.services.drafts import forget
from reconciliation.services.locking import ensure_unchanged, locked
from reconciliation.services.offers import ensure_offered, ground_of
from reconciliation.services.proposals import end, end_if_void
from workflows.failpoints import failpoint


def settle_proposal(hold_id: UUID, user: User, given: VerdictGiven) -> ProposalEnd:
    """Confirm, refuse or withdraw the open proposal of a hold.

    Returns:
        How it ended, with `proposal.decision` where it was confirmed; of a form that was submitted
        before, what it recorded then.

    Raises:
        PermissionDenied: this person may not: it is their own, or not theirs, or no right.
        InvalidDecision: something is missing, or the provider must be asked again first.
        AlreadyDecided: it has ended, or the case has; carries what came first.
        ProposalVoid: what it rested on has changed; that is on record, and nothing has moved.
    """
    failpoint("before_decision")
    with transaction.atomic():
        ended = settled_under_locks(hold_id, user, given)
    failpoint("after_decision")
    if isinstance(ended, ProposalVoid):
        raise ended
    return ended


def settled_under_locks(
    hold_id: UUID, user: User, given: VerdictGiven
) -> ProposalEnd | ProposalVoid:
    hold = locked(hold_id)
    before = submitted_before(hold, user, given.token)
    if before is not None:
        return before
    proposal = open_proposal(hold, given.version)
    ensure_may(user, hold, given.verdict)
    check_verdict(hold, given)
    if given.verdict is Verdict.CONFIRM:
        return confirm(hold, proposal, user, given)
    kind = ProposalEndKind.REFUSED if given.verdict is Verdict.REFUSE else ProposalEndKind.WITHDRAWN
    ended = end(proposal, kind, by=user, note=given.note, token=given.token)
    Hold.objects.filter(pk=hold.pk).update(proposal=None, version=F("version") + 1)
    forget(user, hold.case_id)
    return ended


def submitted_before(hold: Hold, user: User, token: UUID) -> ProposalEnd | None:
    """What this very form has recorded; raises `InvalidDecision` where that was something else."""
    found = ProposalEnd.objects.filter(token=token).select_related("proposal").first()
    if found is None and not any(
        model.objects.filter(token=token).exists() for model in (Decision, DecisionProposal)
    ):
        return None
    if found is None or (found.by_id, found.proposal.hold_id) != (user.pk, hold.pk):
        raise InvalidDecision("token", OTHER_CASE)
    return found


def open_proposal(hold: Hold, version: int) -> DecisionProposal:
    """Raises `AlreadyDecided`: none is open, or another one than was read."""
    if hold.state == HoldState.OPEN and hold.proposal is not None and hold.version == version:
        return hold.proposal
    last = (
        ProposalEnd.objects.filter(proposal__hold=hold)
        .select_related("proposal")
        .order_by("-proposal__hold_version")
        .first()
    )
    if hold.state == HoldState.OPEN and last is not None:
        who = f" by {last.by_name}" if last.by_name else ""
        raise AlreadyDecided(f"The proposal was {last.kind}{who} meanwhile.", last.proposal)
    ensure_unchanged(hold, version)
    raise AlreadyDecided("There is no proposal on this case.")


def ensure_may(user: User, hold: Hold, verdict: Verdict) -> None:
    if verdict is Verdict.WITHDRAW:
        access.ensure_may_withdraw(user, hold)
    else:
        access.ensure_may_confirm(user, hold)


def confirm(
    hold: Hold, proposal: DecisionProposal, user: User, given: VerdictGiven
) -> ProposalEnd | ProposalVoid:
    ground = ground_of(hold)
    void = end_if_void(ground)
    if void:
        return ProposalVoid(f"Nothing was recorded: the proposal is void. {void}")
    kind = DecisionKind(proposal.kind)
    ensure_offered(ground, kind)
    ended = end(proposal, ProposalEndKind.CONFIRMED, by=user, note=given.note, token=given.token)
    answer = Answer(
        kind=kind,
        note=proposal.note,
        version=hold.version,
        token=given.token,
        code=given.code,
        resource=proposal.resource,
    )
    decide(ground, Deciding(proposal.by, answer, proposal, user))
    for each in (user, proposal.by):
        forget(each, hold.case_id)
    return ended
