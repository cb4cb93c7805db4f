"""What tests of notifications share: people with mailboxes, channels, and what workers would do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import F

from reconciliation.core.channels import ChannelKind
from reconciliation.models import Channel, Hold, Message, Notification, ReviewQueue, Shift
from reconciliation.selectors.letters import write
from reconciliation.services.addressing import pass_on
from reconciliation.services.channels import Typed, save_channel
from reconciliation.services.delivering import deliver_due, due_messages
from reconciliation.services.escalating import escalate_holds
from tests.factories import administrator, owner_of

# 32 bytes in base64: a key of the tests.
SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


def with_mail(user: Any) -> Any:
    user.email = f"{user.username}@example.com"
    user.save(update_fields=["email"])
    return user


def owner(queue: ReviewQueue, name: str = "reviewer_1") -> Any:
    return with_mail(owner_of(queue, name))


def channel(queue: ReviewQueue, kind: ChannelKind, address: str, **fields: Any) -> Channel:
    """A queue's channel, as an administrator sets it up."""
    made = Channel(kind=kind, queue=queue, **fields)
    secret = SECRET if kind is ChannelKind.WEBHOOK else ""
    save_channel(made, Typed(address, secret), by=administrator())
    return made


def always_on_call(queue: ReviewQueue, name: str) -> Any:
    """Somebody who is on call for `queue` day and night, and owns it not."""
    user = owner(queue, name)
    queue.owners.remove(user)
    Shift.objects.create(
        queue=queue, person=user, weekdays="0123456", starts="00:00", ends="00:00", zone="UTC"
    )
    return user


def told() -> None:
    """What the sweeps and tasks of workers do now."""
    escalate_holds()
    pass_on()
    for message in due_messages():
        deliver_due(message, write)


def aged(hold: Hold, by: timedelta) -> None:
    """Let so much time have passed for a hold; and for what was told before."""
    Hold.objects.filter(pk=hold.pk).update(
        opened_at=F("opened_at") - by, due_at=F("due_at") - by, tell_at=F("tell_at") - by
    )
    Message.objects.update(created_at=F("created_at") - by)


def reached(kind: str, **fields: Any) -> list[str]:
    """By whose channels the notifications of `kind` go."""
    rows = Notification.objects.filter(kind=kind, **fields)
    names = [
        delivery.channel.person.username if delivery.channel.person else str(delivery.channel.queue)
        for row in rows
        for delivery in row.deliveries.select_related("channel__person", "channel__queue")
    ]
    return sorted(names)
