"""Asking for the same action again, after its approval lapsed before the write."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from workflows.core.errors import NotEntitled, ProposalIsOver
from workflows.core.proposals import ProposalState
from workflows.failpoints import failpoint
from workflows.models import Proposal
from workflows.models.ids import new_id
from workflows.rights import holds
from workflows.services import audit, renewals
from workflows.services.answers import end_proposal, locked
from workflows.services.authorising import person
from workflows.services.clock import database_now


def ask_again(proposal_id: UUID, user: User) -> Proposal:
    """Ask for the same action again, after its approval lapsed before the write.

    Returns:
        The new proposal; the open one, where somebody has asked already.

    Raises:
        NotEntitled: this person may not control the tenant's runs.
        ProposalIsOver: no write waits for it.
    """
    first = Proposal.objects.only("tenant_id", "run_id", "root").get(pk=proposal_id)
    failpoint("before_ask_again")
    with transaction.atomic():
        old = locked(first)
        if not holds(user, "workflows.control_runs", old.tenant):
            raise NotEntitled("Whoever may control the tenant's runs asks for this again.")
        newest = Proposal.objects.filter(root=old.root).order_by("-id")[0]
        if newest.state == ProposalState.OPEN and newest.expires_at > database_now():
            return newest
        if newest.state == ProposalState.OPEN:
            end_proposal(newest, ProposalState.EXPIRED)
        if old.root not in renewals.wanted([old.root]):
            raise ProposalIsOver("No write waits for this approval.")
        made = asked_anew(old, user, database_now())
        audit.record(audit.actor_of(user), "asked again", f"proposal:{made.pk}", of=str(old.root))
    failpoint("after_ask_again")
    return made


def asked_anew(old: Proposal, user: User, now: datetime) -> Proposal:
    """The same, byte for byte, for as long as it counted before."""
    made = Proposal.objects.get(pk=old.pk)
    lasts = old.expires_at - old.created_at
    made.pk = new_id()
    made._state.adding = True
    made.asked_by = str(person(user))
    made.created_at, made.expires_at = now, now + lasts
    made.state, made.ended_at, made.followed_at = ProposalState.OPEN, None, None
    made.used_by = made.used_at = None
    made.save(force_insert=True)
    return made
