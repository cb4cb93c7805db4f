"""What was told to whom, whether it arrived, and who is on call; as one person may see it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.urls import reverse

from reconciliation import access
from reconciliation.access import SHOWN_WITH
from reconciliation.channels import mail
from reconciliation.core.rota import changes_at
from reconciliation.core.standing import MAY_NOT
from reconciliation.models import Channel, Delivery, Hold, Message, Notification, Shift
from reconciliation.notification_pages import (
    ChannelRow,
    DutyRow,
    MessageRow,
    NotificationsPage,
    UnreachedRow,
)
from reconciliation.pages import Owner
from reconciliation.selectors.letters import OF_HOLDS
from reconciliation.selectors.queue import subject_of, url_of
from reconciliation.selectors.words import name_of
from reconciliation.services.rota import on_call_at, rota_of
from workflows.pages import Link, Pager
from workflows.selectors.paging import address, as_uuid, newest_first

CHANNELS_SHOWN, UNREACHED_SHOWN = 50, 5
SHIFTS_SHOWN = 1000  # a rota has some ten shifts, and there are tens of queues

# What is told of something else than a hold.
OTHERS = {
    "contradicted": "A provider broke its contract",
    "dispatch": "Dispatch was switched",
    "stopped": "A channel stopped",
    "digest": "Digest",
    "test": "Test",
}
TITLES = {str(kind): title for kind, (title, _) in OF_HOLDS.items()} | OTHERS


def notifications_page(
    user: User, now: datetime, *, before: str = "", after: str = ""
) -> NotificationsPage:
    """The channels and messages that are `user`'s to see to, and who is on call for what."""
    channels = access.visible_channels(user)
    sent = Message.objects.filter(channel__in=channels.values("pk"))
    rows, newer, older = newest_first(told(sent), as_uuid(before), as_uuid(after))
    unreached = list(reached_nobody(user))
    holds = holds_seen(user, [row.hold_id for row in (*rows, *unreached)])  # type: ignore[attr-defined]
    return NotificationsPage(
        channels=tuple(channel_row(each, user) for each in shown_channels(channels)),
        messages=tuple(message_row(row, holds) for row in rows),
        on_call=duties(user, now),
        unreached=tuple(unreached_row(row, holds) for row in unreached),
        mailbox=user.email if mail.is_set_up() else "",
        no_mail=mail.NO_SERVER if not mail.is_set_up() else "",
        pager=pager(rows, newer=newer, older=older),
    )


# --- channels ---------------------------------------------------------------------------------


def shown_channels(channels: QuerySet[Channel]) -> list[Channel]:
    with_names = channels.select_related("queue", "person")
    return list(with_names.order_by("failing_since", "-used_at", "pk")[:CHANNELS_SHOWN])


def channel_row(channel: Channel, user: User) -> ChannelRow:
    setup = reverse("admin:reconciliation_channel_change", args=[channel.pk])
    may = user.is_staff and user.has_perm("reconciliation.change_channel")
    return ChannelRow(
        name=str(channel),
        address=channel.address or channel.mailbox,
        state=state_of(channel),
        since=channel.stopped_at or channel.failing_since,
        problem=channel.problem,
        used_at=channel.used_at,
        setup_url=setup if may else "",
    )


def state_of(channel: Channel) -> str:
    if channel.stopped_at is not None:
        return "stopped"
    if not channel.enabled:
        return "off"
    return "failing" if channel.failing_since is not None else "works"


# --- messages ---------------------------------------------------------------------------------


def told(messages: QuerySet[Message]) -> QuerySet[Message]:
    """With what each tells of first, and of how much: a summary may tell of a thousand things."""
    own = Delivery.objects.filter(message=OuterRef("pk"))
    first = own.order_by("pk")
    number = own.order_by().values("message").annotate(number=Count("pk")).values("number")
    return messages.select_related("channel__queue", "channel__person").annotate(
        kind=Subquery(first.values("notification__kind")[:1]),
        hold_id=Subquery(first.values("notification__hold")[:1]),
        number=Subquery(number),
    )


def holds_seen(user: User, wanted: Iterable[UUID | None]) -> dict[UUID, Hold]:
    """Of the `wanted` holds those that `user` may see still."""
    named = [pk for pk in wanted if pk is not None]
    found = access.visible_holds(user).filter(pk__in=named).select_related(*SHOWN_WITH)
    return {hold.pk: hold for hold in found}


def about(pk: UUID | None, holds: Mapping[UUID, Hold]) -> Link | None:
    hold = holds.get(pk) if pk else None
    return Link(subject_of(hold), url_of(hold)) if hold else None


def message_row(row: Message, holds: Mapping[UUID, Hold]) -> MessageRow:
    kind, hold, number = row.kind, row.hold_id, row.number  # type: ignore[attr-defined]
    return MessageRow(
        what=f"Summary of {number}" if row.is_summary else TITLES.get(kind, kind),
        about=None if row.is_summary else about(hold, holds),
        count=number,
        channel=str(row.channel),
        state=row.state,
        created_at=row.created_at,
        attempts=row.attempts,
        problem=row.problem,
    )


def reached_nobody(user: User) -> QuerySet[Notification]:
    """The newest notifications that went by no channel: for administrators, who set those up."""
    if not user.is_superuser:
        return Notification.objects.none()
    lost = Notification.objects.filter(addressed_at__isnull=False, reached=0)
    return lost.order_by("-pk")[:UNREACHED_SHOWN]


def unreached_row(row: Notification, holds: Mapping[UUID, Hold]) -> UnreachedRow:
    return UnreachedRow(TITLES.get(row.kind, row.kind), about(row.hold_id, holds), row.at)


def pager(rows: list[Message], *, newer: bool, older: bool) -> Pager:
    here = reverse("notifications")
    if not rows:
        return Pager(newer=here if newer or older else "")
    return Pager(
        newer=address(here, {"after": str(rows[0].pk)}) if newer else "",
        older=address(here, {"before": str(rows[-1].pk)}) if older else "",
    )


# --- who is on call ---------------------------------------------------------------------------


def duties(user: User, now: datetime) -> tuple[DutyRow, ...]:
    """For the queues that have a rota and that `user` may see. One query."""
    theirs = Shift.objects.filter(queue__in=access.visible_queues(user))
    shifts = access.marked_deciders(theirs, "person", "queue")
    ordered = shifts.select_related("queue", "person").order_by("queue__name", "queue", "pk")
    return tuple(
        duty_row(name, list(rows), now)
        for (name, _), rows in groupby(
            ordered[:SHIFTS_SHOWN], key=lambda shift: (shift.queue.name, shift.queue_id)
        )
    )


def duty_row(queue: str, shifts: list[Any], now: datetime) -> DutyRow:
    able = {shift.person_id for shift in shifts if shift.decides}
    people = tuple(
        Owner(name_of(person), barred="" if person.pk in able else MAY_NOT)
        for person in on_call_at(shifts, now)
    )
    return DutyRow(queue, people, changes_at(rota_of(shifts), now))
