"""Snoozing a held case, and being reminded of one: neither moves when it is due, or escalates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from reconciliation import access
from reconciliation.core.errors import CaseMoved, InvalidRequest
from reconciliation.core.review_work import SETTLED, why_not_remind, why_not_snooze
from reconciliation.core.states import HoldState
from reconciliation.models import Hold, Reminder
from reconciliation.services.audit import actor_of, add_entry
from workflows.failpoints import failpoint
from workflows.services.clock import database_now

log = structlog.get_logger(__name__)

# Longer is no snooze, and a case that nobody sees for months is a silent stop.
LONGEST = timedelta(days=30)
AT_ONCE = 500  # reminders that are told of in one go


def snooze(hold_id: UUID, by: User, until: datetime, *, bulk: UUID | None = None) -> bool:
    """Take a case out of everybody's default lists until then; it comes back by itself.

    Returns:
        False when it was snoozed until then already.

    Raises:
        PermissionDenied: it takes the right to decide it, or to assign it.
        InvalidRequest: `until` is past, or more than thirty days away.
        CaseMoved: it was settled meanwhile.
    """
    ensure_soon(until)
    return set_snoozed(hold_id, by, until, bulk)


def wake(hold_id: UUID, by: User) -> bool:
    """Bring a snoozed case back now; raises as `snooze` does, and False: it was not snoozed."""
    return set_snoozed(hold_id, by, None, None)


def set_snoozed(hold_id: UUID, by: User, until: datetime | None, bulk: UUID | None) -> bool:
    failpoint("before_snooze")
    with transaction.atomic():
        hold = (
            Hold.objects.select_for_update(of=("self",), no_key=True)
            .select_related("queue")
            .get(pk=hold_id)
        )
        refused = why_not_snooze(
            is_open=hold.state == HoldState.OPEN,
            may_decide=access.may_decide(by, hold),
            may_assign=access.may_assign(by, hold),
        )
        if refused == SETTLED:
            raise CaseMoved(refused)
        if refused:
            raise PermissionDenied(refused)
        if hold.snoozed_until == until:
            return False
        changed = Hold.objects.filter(pk=hold.pk, state=HoldState.OPEN).update(snoozed_until=until)
        assert changed == 1, "the row is locked"
        detail = {"hold": str(hold.pk)}
        if until is not None:
            detail["until"] = until.isoformat()
        if bulk is not None:
            detail["bulk"] = str(bulk)
        add_entry(actor_of(by), "snoozed" if until else "ended a snooze of", hold.subject, detail)
    failpoint("after_snooze")
    log.info("hold.snoozed", hold=str(hold_id), until=until, by=by.pk)
    return True


def ensure_soon(at: datetime) -> None:
    now = database_now()
    if at <= now:
        raise InvalidRequest("until", "Say until when, at a time that is not past.")
    if at > now + LONGEST:
        raise InvalidRequest("until", f"Say a time within {LONGEST.days} days.")


# --- reminders --------------------------------------------------------------------------------


def remind(hold_id: UUID, person: User, at: datetime) -> bool:
    """Remind a person of a case at a time; their earlier wish for it is moved there.

    It is nobody else's business, so it is not in the audit record.

    Returns:
        False when they are reminded then already.

    Raises:
        PermissionDenied: this person may not see the case.
        InvalidRequest: `at` is past, or more than thirty days away (`until`).
        CaseMoved: it was settled meanwhile.
    """
    ensure_soon(at)
    if hold_id not in access.seen_by(person, [hold_id]):
        raise PermissionDenied("You may not see this case.")
    is_open = Hold.objects.filter(pk=hold_id, state=HoldState.OPEN).exists()
    if refused := why_not_remind(is_open=is_open):
        raise CaseMoved(refused)
    mine = Reminder.objects.filter(hold=hold_id, person=person, ended_at=None)
    if mine.filter(at=at).exists():
        return False
    failpoint("before_remind")
    if not mine.update(at=at, told_at=None):
        try:
            with transaction.atomic():
                Reminder.objects.create(hold_id=hold_id, person=person, at=at)
        except IntegrityError:
            mine.update(at=at, told_at=None)  # made by another request of theirs meanwhile
    failpoint("after_remind")
    return True


def end_reminder(hold_id: UUID, person: User) -> bool:
    """The person has seen to it, or wants it no more; False when there is none."""
    mine = Reminder.objects.filter(hold=hold_id, person=person, ended_at=None)
    return mine.update(ended_at=Now()) == 1


def due_reminders() -> Sequence[Reminder]:
    """What people are to be told of now and were not told of yet, the longest due first.

    Whoever tells them calls `mark_told` in the transaction that writes the message down.
    """
    due = Reminder.objects.filter(
        at__lte=Now(), told_at=None, ended_at=None, hold__state=HoldState.OPEN
    )
    return list(due.select_related("hold", "person").order_by("at", "pk")[:AT_ONCE])


def mark_told(reminder: Reminder) -> bool:
    """False when another process told them, or the reminder was moved or ended meanwhile."""
    untold = Reminder.objects.filter(pk=reminder.pk, at=reminder.at, told_at=None, ended_at=None)
    return untold.update(told_at=Now()) == 1
