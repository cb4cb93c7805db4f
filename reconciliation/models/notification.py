"""What people are told, and how: the outbox of notifications, and the channels they leave by.

A `Notification` is written in the transaction of what it tells, once for each cause. Later it is
addressed: a `Delivery` for each channel that it is for. What waits for a channel leaves as a
`Message`: one delivery, or many as one summary. So nothing is lost by a process that dies, and
nothing is told twice for one cause; a message may arrive twice, under the same ID.
"""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from reconciliation.core.channels import ChannelKind, MessageState
from reconciliation.core.digests import Every
from reconciliation.models.hold import Hold
from reconciliation.models.provider import Provider
from reconciliation.models.queue import ReviewQueue
from workflows.models.ids import new_id

MOST_PER_MINUTE = 60


class Channel(models.Model):
    """A way to tell a queue's people, or one person.

    An e-mail channel of a person without an address leads to that of their account.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    kind = models.CharField(max_length=8)
    queue = models.ForeignKey(
        ReviewQueue, on_delete=models.PROTECT, null=True, blank=True, related_name="channels"
    )
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="channels",
    )
    # A mailbox; of others what people see of an address that is kept sealed: it may be a secret.
    address = models.CharField(max_length=200, blank=True, default="")
    address_sealed = models.BinaryField(default=b"", blank=True)
    secret_sealed = models.BinaryField(default=b"", blank=True)
    per_minute = models.PositiveSmallIntegerField(
        default=6, validators=[MinValueValidator(1), MaxValueValidator(MOST_PER_MINUTE)]
    )
    enabled = models.BooleanField(default=True)
    failing_since = models.DateTimeField(null=True)
    problem = models.CharField(max_length=300, blank=True, default="")
    stopped_at = models.DateTimeField(null=True)
    used_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="channel_kind_known",
                condition=Q(kind__in=[kind.value for kind in ChannelKind]),
            ),
            models.CheckConstraint(
                name="channel_of_a_queue_or_a_person",
                condition=Q(queue__isnull=False, person__isnull=True)
                | Q(queue__isnull=True, person__isnull=False),
            ),
            models.UniqueConstraint(
                name="channel_account_email_once",
                fields=["person"],
                condition=Q(kind=ChannelKind.EMAIL, address=""),
            ),
        ]
        indexes = [
            # The banner on each page, and what is held back meanwhile.
            models.Index(
                name="channel_failing",
                fields=["failing_since"],
                condition=Q(failing_since__isnull=False),
            )
        ]

    def __str__(self) -> str:
        person = self.person
        name = person.get_full_name() or person.get_username() if person else ""
        whose = self.queue.name if self.queue else name
        return f"{CHANNEL_NAMES[ChannelKind(self.kind)]} of {whose}"

    @property
    def works(self) -> bool:
        return self.enabled and self.stopped_at is None

    @property
    def mailbox(self) -> str:
        """Where its e-mail goes."""
        return self.address or (self.person.email if self.person else "")


CHANNEL_NAMES = {
    ChannelKind.EMAIL: "E-mail",
    ChannelKind.WEBHOOK: "Webhook",
    ChannelKind.SLACK: "Slack",
}


class Notification(models.Model):
    """Something that people are to be told, once for each `cause`."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    kind = models.CharField(max_length=16)
    cause = models.CharField(max_length=200, unique=True)
    hold = models.ForeignKey(
        Hold, on_delete=models.PROTECT, null=True, related_name="notifications"
    )
    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, null=True, related_name="+")
    queue = models.ForeignKey(ReviewQueue, on_delete=models.PROTECT, null=True, related_name="+")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, null=True, related_name="+")
    # The one person it is for; null: those whom `rung` says.
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+"
    )
    rung = models.CharField(max_length=16, blank=True, default="")
    says = models.JSONField(default=dict)  # what cannot be read from the rows later; no payload
    at = models.DateTimeField(db_default=Now())
    addressed_at = models.DateTimeField(null=True)
    reached = models.PositiveSmallIntegerField(default=0)  # by how many channels that worked

    class Meta:
        indexes = [
            models.Index(
                name="notification_new", fields=["id"], condition=Q(addressed_at__isnull=True)
            )
        ]


class Message(models.Model):
    """What leaves by a channel; its ID is the same at each try."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="messages")
    is_summary = models.BooleanField(default=False)
    state = models.CharField(max_length=8, default=MessageState.WAITING)
    created_at = models.DateTimeField(db_default=Now())
    attempts = models.PositiveSmallIntegerField(default=0)
    # When it is tried next; null while it is not: it is over, or its channel has stopped.
    next_at = models.DateTimeField(null=True)
    problem = models.CharField(max_length=300, blank=True, default="")
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="message_state_known",
                condition=Q(state__in=[state.value for state in MessageState]),
            ),
            models.CheckConstraint(
                name="message_ended_iff_ended_at",
                condition=Q(state=MessageState.WAITING, ended_at__isnull=True)
                | (~Q(state=MessageState.WAITING) & Q(ended_at__isnull=False)),
            ),
        ]
        indexes = [
            models.Index(
                name="message_due", fields=["next_at"], condition=Q(next_at__isnull=False)
            ),
            models.Index(
                name="message_waiting",
                fields=["channel"],
                condition=Q(state=MessageState.WAITING),
            ),
            # The rate of a channel, and its messages for people.
            models.Index(name="message_of_channel", fields=["channel", "-created_at"]),
        ]


class Delivery(models.Model):
    """One notification for one channel; `message` once it leaves."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    notification = models.ForeignKey(
        Notification, on_delete=models.CASCADE, related_name="deliveries"
    )
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    message = models.ForeignKey(
        Message, on_delete=models.CASCADE, null=True, related_name="deliveries"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(name="delivery_once", fields=["notification", "channel"])
        ]
        indexes = [
            models.Index(
                name="delivery_waiting",
                fields=["channel", "id"],
                condition=Q(message__isnull=True),
            )
        ]


class Digest(models.Model):
    """That a person wants a summary of what waits for them, and when."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="digest"
    )
    every = models.CharField(max_length=4, choices=[(each.value, each.value) for each in Every])
    at = models.TimeField()
    zone = models.CharField(max_length=64)
    next_at = models.DateTimeField(db_index=True)
