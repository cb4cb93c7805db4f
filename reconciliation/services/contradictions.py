"""A provider that breaks its contract: repeats to it stop, until somebody has reviewed that.

The review ends the stop and sends nothing. What the contract says of repeats was seen to be wrong,
so the trust in it goes with the stop: a rehearsal has to show it again, or somebody to accept it
in writing again (probe before trust).
"""

from __future__ import annotations

from datetime import datetime

import structlog
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction

from reconciliation.core.errors import ContradictionMoved
from reconciliation.models import AuditEntry, Operation, Provider
from reconciliation.services.answers import check_note
from reconciliation.services.audit import actor_of, add_entry
from reconciliation.services.telling import tell_contradicted
from workflows.core.changes import changes_between
from workflows.core.words import who
from workflows.failpoints import failpoint
from workflows.rights import holds
from workflows.services.clock import database_now

log = structlog.get_logger(__name__)

REVIEWED = "reviewed contradiction"
CLEARED = {"contradicted_at": None, "contradiction": "", "replay_trust": ""}


def contradict(operation: Operation, what: str) -> None:
    """The provider broke its contract: nothing is repeated to it until somebody reviews that.

    The latest counts, so that a review never ends a stop for something that it has not seen.
    """
    provider = locked(operation.provider)
    now = database_now()
    Provider.objects.filter(pk=provider.pk).update(contradicted_at=now, contradiction=what[:300])
    if provider.contradicted_at is None:
        tell_contradicted(provider, now)
    detail = {"provider": provider.slug, "said": what[:300]}
    add_entry("system", "contract contradicted", f"operation:{operation.pk}", detail)
    log.error("contract.contradicted", operation=str(operation.pk), provider=provider.slug)


def may_review(user: User, provider: Provider) -> bool:
    """Whoever may set it up: they answer for what its contract says."""
    return holds(user, "reconciliation.configure", provider)


def ensure_may_review(user: User, provider: Provider) -> None:
    """Raises `PermissionDenied`: this person may not review what broke its contract."""
    if not may_review(user, provider):
        raise PermissionDenied(f"You may not set {provider} up, so others review its contract.")


def review_contradiction(
    provider: Provider, shown: datetime | None, *, by: User, note: str
) -> None:
    """End the stop of repeats to `provider`, and the trust in what its contract says of them.

    Args:
        shown: when it was contradicted, as whoever reviews it was shown.

    Raises:
        PermissionDenied: this person may not.
        InvalidDecision: the note is missing or too long.
        ContradictionMoved: somebody was first, or it has broken its contract once more since.
    """
    ensure_may_review(by, provider)
    check_note(note)
    failpoint("before_contract_review")
    with transaction.atomic():
        row = locked(provider)
        # Nothing was contradicted at no time: a form that was not filled in here clears nothing.
        same = Provider.objects.filter(pk=row.pk, contradicted_at=shown).exclude(
            contradicted_at=None
        )
        if not same.update(**CLEARED):
            raise ContradictionMoved(why_moved(row))
        before = {name: getattr(row, name) for name in CLEARED}
        detail = {"changes": changes_between(before, CLEARED), "reason": note.strip()}
        add_entry(actor_of(by), REVIEWED, subject_of(row), detail)
        log.info("contract.reviewed", provider=row.slug, by=actor_of(by))
    failpoint("after_contract_review")


def locked(provider: Provider) -> Provider:
    """The provider as it is now, which stays so until the caller's transaction ends; what only
    refers to it goes on."""
    return Provider.objects.select_for_update(no_key=True).get(pk=provider.pk)


def why_moved(provider: Provider) -> str:
    if provider.contradicted_at is not None:
        return (
            f"{provider} has broken its contract once more since you opened this form, and nothing "
            "was recorded. It is shown as it is now: read it, then review that."
        )
    last = AuditEntry.objects.filter(object=subject_of(provider), verb=REVIEWED).last()
    if last is None:
        return f"{provider} was not seen to break its contract: there is nothing to review."
    return (
        f"{who(last.actor)} has reviewed it already, on {last.at:%Y-%m-%d %H:%M} UTC. Nothing else "
        "was recorded."
    )


def subject_of(provider: Provider) -> str:
    return f"provider:{provider.slug}"
