"""How a person stands to a hold: whether they may decide it, and what bars them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciliation.access.acting import deny, may, may_decide
from reconciliation.access.parts import Parts, parts_in
from reconciliation.core import standing
from reconciliation.core.standing import Standing
from reconciliation.models import Hold

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def standing_of(user: User, hold: Hold, parts: Parts | None = None) -> Standing:
    """How `user` stands to a hold, whose run, queue, operation and open proposal come with it;
    `parts` as `parts_in` says, where that was asked already."""
    parts = parts or parts_in(hold)
    return Standing(
        decides=may_decide(user, hold),
        seconds=may(user, "second", hold),
        started=parts.started(user),
        proposed=hold.proposal is not None and hold.proposal.by_id == user.pk,
        approved=parts.approved(user),
    )


def why_not_decide(user: User, hold: Hold, parts: Parts | None = None) -> str:
    """Why this person may not decide or propose; empty when they may. `parts` as `standing_of`."""
    return standing.why_not_decide(standing_of(user, hold, parts))


def ensure_may_decide(user: User, hold: Hold) -> None:
    """Raises `PermissionDenied`: this person may not decide this hold."""
    deny(standing.why_not_decide(standing_of(user, hold)))


def ensure_may_confirm(user: User, hold: Hold) -> None:
    """Raises `PermissionDenied`: this person may neither confirm nor refuse what is proposed."""
    deny(standing.why_not_confirm(standing_of(user, hold)))


def ensure_may_withdraw(user: User, hold: Hold) -> None:
    """Raises `PermissionDenied`: what is proposed is not theirs."""
    deny(standing.why_not_withdraw(standing_of(user, hold)))
