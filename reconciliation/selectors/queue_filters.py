"""What an address asks of the queue, as conditions on holds. Each is one `Q`, so that a list, its
counts and any number of saved views are read in one query each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, QuerySet

from reconciliation import access
from reconciliation.core.queue_views import (
    AGES,
    ME,
    NOBODY,
    UNKNOWN_REASONS,
    Looked,
    Tab,
    View,
)
from reconciliation.core.review_work import NoteKind
from reconciliation.models import CaseNote, Reminder
from reconciliation.pages import CLOSING
from reconciliation.services.providers import whose_key_is_trusted


def condition(looked: Looked, user: User, now: datetime) -> Q:
    """The holds, of those that `user` may see, that `looked` shows at `now`."""
    found = of_tab(looked.tab, user)
    if looked.view is not None:
        found &= VIEWS[looked.view](user, now)
    if looked.hides_snoozed:
        found &= Q(snoozed_until=None) | Q(snoozed_until__lte=now)
    return found & of_filters(looked, user, now)


def of_tab(tab: Tab, user: User) -> Q:
    match tab:
        case Tab.MINE:
            return Q(assignee=user)
        case Tab.TEAM:
            return Q(queue__in=access.team_queues(user))
        case Tab.ALL:
            return Q()


def of_filters(looked: Looked, user: User, now: datetime) -> Q:
    found = Q()
    if looked.queue:
        found &= Q(queue__slug=looked.queue)
    if looked.provider:
        found &= Q(operation__provider__slug=looked.provider)
    if looked.tenant:
        found &= Q(tenant__slug=looked.tenant)
    if looked.reason:
        found &= Q(reason=looked.reason)
    if looked.assignee:
        found &= of_assignee(looked.assignee, user)
    if looked.age:
        found &= Q(opened_at__lte=now - AGES[looked.age])
    if looked.amount:
        found &= Q(amount__gte=Decimal(looked.amount))
    return found


def of_assignee(assignee: str, user: User) -> Q:
    match assignee:
        case str(me) if me == ME:
            return Q(assignee=user)
        case str(nobody) if nobody == NOBODY:
            return Q(assignee=None)
        case _:
            return Q(assignee=int(assignee))


# --- system views -----------------------------------------------------------------------------


def asked(user: User) -> Exists:
    """Somebody asked `user` about it, and nobody has answered."""
    return Exists(open_questions().filter(to=user))


def open_questions() -> QuerySet[CaseNote]:
    return CaseNote.objects.filter(hold=OuterRef("pk"), kind=NoteKind.QUESTION, answer__isnull=True)


def reminded(user: User, now: datetime) -> Exists:
    due = Reminder.objects.filter(hold=OuterRef("pk"), person=user, ended_at=None, at__lte=now)
    return Exists(due)


def closing(now: datetime) -> Q:
    """Where the key is not relied on, no protection ends."""
    soon = Q(window_ends_at__gt=now, window_ends_at__lte=now + CLOSING)
    return soon & Q(provider__in=whose_key_is_trusted())


VIEWS: dict[View, Callable[[User, datetime], Q]] = {
    View.UNKNOWN: lambda _, __: Q(operation__isnull=False, reason__in=UNKNOWN_REASONS),
    View.CLOSING: lambda _, now: closing(now),
    View.OVERDUE: lambda _, now: Q(due_at__lte=now),
    View.UNASSIGNED: lambda _, __: Q(assignee=None),
    View.ASKED: lambda user, _: Q(asked(user)),
    View.REMINDED: lambda user, now: Q(reminded(user, now)),
    View.SNOOZED: lambda _, now: Q(snoozed_until__gt=now),
    View.SECOND: lambda _, __: Q(proposal__isnull=False),
}
