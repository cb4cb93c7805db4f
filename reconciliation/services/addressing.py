"""From what is to be told to messages that leave: duties of the sweep, each in a transaction.

A new notification is addressed to channels once; what waits for a channel becomes a message: each
by itself while they are few, a summary when they are many. A message once made is delivered at
least once (`delivering`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q
from django.db.models.functions import Now

from reconciliation.core.channels import Lately, MessageState, Portion, portion
from reconciliation.models import Channel, Delivery, Message, Notification
from reconciliation.services.recipients import AddressBook
from workflows.failpoints import failpoint
from workflows.services import hints
from workflows.services.clock import database_now

log = structlog.get_logger(__name__)

# As many as may come of one outage: what comes together is to be told of together.
BATCH = 1000
MINUTE = timedelta(minutes=1)


def pass_on() -> int:
    """A duty of the sweep: address what is new, make messages of it, hint at what is due."""
    done = address_new() + compose_waiting()
    due = Message.objects.filter(next_at__lte=Now()).order_by("next_at").first()
    if due is not None:  # whoever takes it goes on with what else is due
        hints.send("reconciliation.tasks.deliver", due.pk)
    return done


def address_new() -> int:
    """Address the notifications that nobody has addressed; return how many."""
    if not Notification.objects.filter(addressed_at=None).exists():
        return 0
    failpoint("before_addressed")
    with transaction.atomic():
        new = list(
            Notification.objects.select_for_update(of=("self",), skip_locked=True)
            .select_related("hold__run", "hold__event", "hold__assignee", "provider", "person")
            .select_related("channel")
            .filter(addressed_at=None)
            .order_by("pk")[:BATCH]
        )
        address(new, AddressBook(database_now()))
    failpoint("after_addressed")
    return len(new)


def address(new: Sequence[Notification], book: AddressBook) -> None:
    deliveries: list[Delivery] = []
    by_number: dict[int, list[UUID]] = defaultdict(list)  # by how many channels that work
    for notification in new:
        channels = {channel.pk: channel for channel in book.channels_for(notification)}
        deliveries += (Delivery(notification=notification, channel=c) for c in channels.values())
        reached = sum(channel.works for channel in channels.values())
        by_number[reached].append(notification.pk)
        if not reached:
            log.warning("notification.reached_nobody", cause=notification.cause)
    Delivery.objects.bulk_create(deliveries)
    for number, rows in by_number.items():
        Notification.objects.filter(pk__in=rows).update(addressed_at=Now(), reached=number)


def compose_waiting() -> int:
    """Make messages of what waits for channels that work; return how many."""
    waiting = Delivery.objects.filter(message=None)
    if not waiting.exists():
        return 0
    # While one of its messages is under way, the rest wait, and may become a summary: what fails
    # would fail for each of them.
    under_way = Message.objects.filter(channel=OuterRef("pk"), state=MessageState.WAITING)
    named = Channel.objects.filter(
        Exists(waiting.filter(channel=OuterRef("pk"))),
        ~Exists(under_way),
        enabled=True,
        stopped_at=None,
    )
    return sum(compose(channel) for channel in named)


def compose(channel: Channel) -> int:
    """Make what waits for `channel` into messages, as its rate allows; return how many."""
    failpoint("before_composed")
    with transaction.atomic():
        held = Channel.objects.select_for_update(skip_locked=True).filter(pk=channel.pk).first()
        waiting = list(
            Delivery.objects.filter(channel=channel, message=None)
            .order_by("pk")
            .values_list("pk", flat=True)[:BATCH]
        )
        made = 0
        if held is not None:
            match portion(len(waiting), lately(channel), held.per_minute):
                case Portion.EACH:
                    made = sum(make(channel, [delivery], False) for delivery in waiting)
                case Portion.TOGETHER:
                    made = make(channel, waiting, True)
                case Portion.NOTHING:
                    pass
    failpoint("after_composed")
    return made


def make(channel: Channel, deliveries: list[UUID], is_summary: bool) -> int:
    message = Message.objects.create(channel=channel, is_summary=is_summary, next_at=Now())
    Delivery.objects.filter(pk__in=deliveries).update(message=message)
    return 1


def lately(channel: Channel) -> Lately:
    """What was made for it within the last minute; what was worth nothing any more left no mark."""
    rows = Message.objects.filter(channel=channel, created_at__gt=Now() - MINUTE)
    counted = rows.exclude(state=MessageState.DROPPED).aggregate(
        messages=Count("pk"), summaries=Count("pk", filter=Q(is_summary=True))
    )
    return Lately(**counted)
