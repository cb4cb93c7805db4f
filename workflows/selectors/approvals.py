"""The list of proposals that a person may see: those that ask, or all, the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.urls import reverse

from workflows.approval_pages import ApprovalsPage, Outcome, ProposalRow
from workflows.core.boundary.subjects import Subject, is_among
from workflows.core.proposals import ProposalState
from workflows.core.words import seen
from workflows.models import Proposal, Tenant
from workflows.pages import Filter, Pager
from workflows.selectors.paging import address, as_uuid, newest_first
from workflows.selectors.words import money
from workflows.services.authorising import person

ALL = "all"
OWN = "You have proposed it, or it is yours otherwise."
NOT_YOURS = "You may look at it, and others answer it."


def approvals_page(
    user: User,
    visible: QuerySet[Proposal],
    approving: QuerySet[Tenant],
    *,
    show: str = "",
    before: str = "",
    after: str = "",
    outcomes: Sequence[Outcome] = (),
) -> ApprovalsPage:
    """A page of the proposals that `user` may see.

    Args:
        visible: the proposals that this person may see.
        approving: the tenants for which they may answer.
        show: `all`, or anything else for those that wait for an answer.
        outcomes: of those that were just approved together.
    """
    everything = show == ALL
    visible = visible.select_related("tenant")
    # One whose time is over is settled by its run, if that still waits; nobody can answer it.
    asking = visible.filter(state=ProposalState.OPEN, expires_at__gt=Now())
    rows = visible if everything else asking
    found, newer, older = newest_first(rows, as_uuid(before), as_uuid(after))
    mine = set(approving.values_list("pk", flat=True))
    url, here = reverse("approvals"), {"show": ALL if everything else ""}
    return ApprovalsPage(
        rows=tuple(row_of(each, user, mine) for each in found),
        views=(
            Filter("Ask now", url, current=not everything),
            Filter("All", address(url, {"show": ALL}), current=everything),
        ),
        pager=Pager(
            newer=address(url, here | {"after": str(found[0].pk)}) if newer and found else "",
            older=address(url, here | {"before": str(found[-1].pk)}) if older and found else "",
        ),
        open_only=not everything,
        outcomes=tuple(outcomes),
    )


def row_of(proposal: Proposal, user: User, approving: set[UUID]) -> ProposalRow:
    why_not = why_not_picked(proposal, user, approving)
    token = f"{proposal.pk} {proposal.parameters_digest} {uuid4()}"
    behalf = proposal.on_behalf_of
    return ProposalRow(
        id=proposal.pk,
        url=url_of(proposal),
        title=seen(proposal.summary),
        target="" if proposal.target in proposal.summary else seen(proposal.target),
        amount=money(proposal.amount, proposal.currency),
        who=Subject.parse(proposal.proposed_by).title,
        on_behalf_of=Subject.parse(behalf).title if behalf else "",
        state=proposal.state,
        asked_at=proposal.created_at,
        expires_at=proposal.expires_at,
        ended_at=proposal.ended_at,
        pick="" if why_not else token,
        why_not=why_not,
    )


def why_not_picked(proposal: Proposal, user: User, approving: set[UUID]) -> str:
    """What shows without asking further; the service asks for everything."""
    if proposal.state != ProposalState.OPEN:
        return "It is settled."
    if proposal.tenant_id not in approving:
        return NOT_YOURS
    named = (proposal.proposed_by, proposal.on_behalf_of, proposal.asked_by)
    proposers = (Subject.parse(text) for text in named if text)
    return OWN if is_among(person(user), proposers) else ""


def url_of(proposal: Proposal) -> str:
    return reverse("approval", args=[proposal.pk])
