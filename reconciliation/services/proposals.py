"""Proposing a decision that takes two people; nothing moves until somebody else confirms it.

A proposal and its end are rows that never change. It is open while its hold points at it, and void
as soon as what it rested on has changed: that is seen under the hold's lock, by whoever comes next;
at the latest the sweep (`escalating`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import structlog
from django.contrib.auth.models import User
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from reconciliation import access
from reconciliation.core.states import DecisionKind, ProposalEndKind
from reconciliation.models import DecisionProposal, Hold, ProposalEnd
from reconciliation.services.audit import actor_of, add_entry
from reconciliation.services.offers import Ground, basis_of, what_was_shown
from reconciliation.services.telling import tell_not_confirmed, tell_proposed

if TYPE_CHECKING:
    from reconciliation.services.answers import Answer

log = structlog.get_logger(__name__)

CHANGED = "What is known has changed since it was proposed."


def propose(ground: Ground, user: User, answer: Answer) -> DecisionProposal:
    """Write the proposal, in the caller's transaction, which has checked it like a decision."""
    hold = ground.hold
    proposal = DecisionProposal.objects.create(
        hold=hold,
        operation=hold.operation,
        kind=answer.kind,
        by=user,
        by_name=user.get_full_name() or user.get_username(),
        note=answer.note.strip(),
        resource=answer.resource.strip(),
        hold_version=hold.version,
        token=answer.token,
        shown=what_was_shown(ground),
        basis=basis_of(ground),
    )
    Hold.objects.filter(pk=hold.pk).update(
        proposal=proposal, version=F("version") + 1, tell_at=Now()
    )
    detail = {"proposal": str(proposal.pk), "kind": str(answer.kind), "hold": str(hold.pk)}
    add_entry(actor_of(user), "proposed", subject_of(proposal), detail)
    tell_proposed(proposal, access.confirmers_of(hold, user, ground.parts))
    log.info("hold.proposed", hold=str(hold.pk), run=str(hold.run_id), kind=answer.kind)
    return proposal


def why_void(ground: Ground, proposal: DecisionProposal) -> str:
    """Why an open proposal cannot be confirmed any more; empty while it can be.

    The hold's queue and the proposal's author come with them.
    """
    offer = next((each for each in ground.offers if each.kind == proposal.kind), None)
    if offer is None or not offer.allowed:
        return f"It is not offered any more. {offer.why_not if offer else ''}".strip()
    if proposal.basis != basis_of(ground):
        return CHANGED
    if access.why_not_decide(proposal.by, ground.hold, ground.parts):
        return f"{proposal.by_name} may not decide here any more."
    return ""


def end_if_void(ground: Ground) -> str:
    """End the open proposal of a locked hold if it is void; return why, or "" when none was."""
    hold = ground.hold
    why = why_void(ground, hold.proposal) if hold.proposal is not None else ""
    if why:
        end_as_void(Hold.objects.filter(pk=hold.pk), why)
        hold.proposal = None
    return why


def end_as_void(holds: QuerySet[Hold], why: str) -> None:
    """End what is proposed on `holds`, whose facts have changed, in the caller's transaction."""
    for hold in holds.filter(proposal__isnull=False).select_related("proposal"):
        assert hold.proposal is not None
        end(hold.proposal, ProposalEndKind.VOID, note=why)
        Hold.objects.filter(pk=hold.pk).update(proposal=None)


def end(
    proposal: DecisionProposal,
    kind: ProposalEndKind,
    *,
    by: User | None = None,
    note: str = "",
    token: UUID | None = None,
) -> ProposalEnd:
    """Write what became of a proposal, on record."""
    ended = ProposalEnd.objects.create(
        proposal=proposal,
        kind=kind,
        by=by,
        by_name=(by.get_full_name() or by.get_username()) if by else "",
        note=note.strip(),
        token=token,
    )
    detail = {
        "proposal": str(proposal.pk),
        "kind": str(DecisionKind(proposal.kind)),
        "hold": str(proposal.hold_id),
    }
    actor = actor_of(by) if by else "system"
    add_entry(actor, f"proposal {kind}", subject_of(proposal), detail)
    if kind in (ProposalEndKind.REFUSED, ProposalEndKind.VOID):
        tell_not_confirmed(proposal)
    log.info("proposal.ended", hold=str(proposal.hold_id), end=str(kind))
    return ended


def subject_of(proposal: DecisionProposal) -> str:
    if proposal.operation_id is not None:
        return f"operation:{proposal.operation_id}"
    return f"run:{proposal.hold.run_id}"
