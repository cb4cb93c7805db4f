"""Turning a provider's dispatch on, to pause, or off: new writes stop at once, nothing else (P13).

Lock order: the provider before its operations, as a send that is about to begin takes them.
"""

from __future__ import annotations

import structlog
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models.functions import Now

from reconciliation.core.errors import InvalidDecision
from reconciliation.core.facts import Dispatch
from reconciliation.core.states import OperationState
from reconciliation.models import Operation, Provider
from reconciliation.services.audit import actor_of, add_entry
from workflows.core.states import RunState
from workflows.failpoints import failpoint

log = structlog.get_logger(__name__)

MIN_REASON, MAX_REASON = 10, 1000  # characters
PARKED = (OperationState.INTENDED, OperationState.UNKNOWN)


def set_dispatch(provider: Provider, state: Dispatch, by: User, reason: str) -> bool:
    """Set what is sent to `provider` from now on; False when it was so already.

    A send that has begun goes on; the next one asks again. When dispatch is turned on, whatever
    waited for that is looked at: its outcome is asked for before anything is sent.

    Raises:
        PermissionDenied: this person may not turn this provider's dispatch off and on.
        InvalidDecision: the reason is missing or too long.
    """
    if not by.has_perm("reconciliation.pause_dispatch", provider):
        raise PermissionDenied("You may not turn this provider's dispatch off and on.")
    reason = reason.strip()
    if not MIN_REASON <= len(reason) <= MAX_REASON:
        raise InvalidDecision(
            "reason", f"Write a reason of {MIN_REASON} to {MAX_REASON:,} characters."
        )
    failpoint("before_switch")
    with transaction.atomic():
        switched = switch(provider, state, by, reason)
    failpoint("after_switch")
    return switched


def switch(provider: Provider, state: Dispatch, by: User, reason: str) -> bool:
    locked = Provider.objects.select_for_update(no_key=True).get(pk=provider.pk)
    if locked.dispatch == state:
        return False
    Provider.objects.filter(pk=provider.pk).update(dispatch=state)
    detail = {"from": locked.dispatch, "to": str(state), "reason": reason}
    add_entry(actor_of(by), "set dispatch", f"provider:{locked.slug}", detail)
    if state is Dispatch.ON:
        bring_forward(locked)
    log.info("dispatch.set", provider=locked.slug, state=str(state))
    return True


def bring_forward(provider: Provider) -> None:
    """Let the sweep look at every operation that waits for this provider."""
    Operation.objects.filter(
        provider=provider, state__in=PARKED, run__state=RunState.WAITING
    ).update(due_at=Now())
