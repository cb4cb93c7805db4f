"""What somebody reads before they review a contract that a provider was seen to break."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.urls import reverse

from reconciliation import access
from reconciliation.core.facts import HoldReason
from reconciliation.core.states import HoldState
from reconciliation.models import Hold, Provider
from reconciliation.provider_pages import HeldRow, ReviewPage
from reconciliation.services.contradictions import may_review
from workflows.pages import Link

ROWS = 10
NOT_YOURS = "You may not set this provider up. Whoever may reviews what broke its contract."


def review_page(provider: Provider, user: User) -> ReviewPage:
    """The contradiction of `provider`, which comes from `access.provider_for`."""
    held = access.visible_holds(user).filter(
        state=HoldState.OPEN,
        reason=HoldReason.CONTRACT_CONTRADICTED,
        operation__provider=provider,
    )
    at = provider.contradicted_at
    return ReviewPage(
        name=provider.name,
        slug=provider.slug,
        contradicted_at=at,
        contradiction=provider.contradiction,
        shown=at.isoformat() if at else "",
        trust=provider.replay_trust,
        held=held.count(),
        rows=tuple(
            held_row(hold)
            for hold in held.select_related("operation").order_by("opened_at", "pk")[:ROWS]
        ),
        why_not="" if may_review(user, provider) else NOT_YOURS,
    )


def held_row(hold: Hold) -> HeldRow:
    assert hold.operation is not None, "the reason is one of operations"
    url = reverse("operation", args=[hold.operation.pk])
    return HeldRow(Link(hold.operation.summary, url), since=hold.opened_at)
