"""Asking a provider because a person wants to know: once, however often it is pressed."""

from __future__ import annotations

from datetime import timedelta

import structlog
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from reconciliation import access
from reconciliation.core.states import HoldState
from reconciliation.models import AuditEntry, Hold, Operation
from reconciliation.services.audit import actor_of, add_entry
from reconciliation.services.reconcile import ask_again, can_be_asked
from workflows.failpoints import failpoint

log = structlog.get_logger(__name__)

# A second press within this joins the first, even before that is answered.
JOINS = timedelta(seconds=10)
VERB = "asked"


def may_ask(operation: Operation, hold: Hold | None, user: User) -> bool:
    """Whether asking is of use, and this person's: of an open hold, those who may decide it, or
    confirm what is proposed.

    What is not held Romulus asks about by itself.
    """
    return hold is not None and access.may_review(user, hold) and can_be_asked(operation)


def ask_for(operation: Operation, user: User) -> bool:
    """Ask the provider what became of a held operation, and follow what it says.

    The question is on record before it is asked. Holds no transaction while the provider answers;
    takes up to the contract's timeout, and a provider that cannot be asked leaves evidence that
    says so. Returns False when it joined a question that was asked
    within ten seconds, or when there is nothing to ask.

    Raises:
        PermissionDenied: this person may neither decide the hold nor confirm what is proposed.
    """
    failpoint("before_ask")
    with transaction.atomic():
        Operation.objects.select_for_update(of=("self",), no_key=True).get(pk=operation.pk)
        hold = Hold.objects.filter(operation=operation, state=HoldState.OPEN).first()
        if hold is not None:
            access.ensure_may_review(user, hold)
        if hold is None or not can_be_asked(operation) or asked_lately(operation):
            return False
        add_entry(actor_of(user), VERB, f"operation:{operation.pk}", {"hold": str(hold.pk)})
    failpoint("after_ask")
    log.info("operation.asked", operation=str(operation.pk))
    ask_again(operation.pk)
    return True


def asked_lately(operation: Operation) -> bool:
    return AuditEntry.objects.filter(
        object=f"operation:{operation.pk}", verb=VERB, at__gt=Now() - JOINS
    ).exists()
