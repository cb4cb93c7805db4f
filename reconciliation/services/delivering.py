"""Handing messages over, at least once, and what follows when a channel fails.

A message is taken for a minute, sent outside any transaction, and then written down as sent. A
process that dies in between leaves it to be sent again, under the same ID: whoever gets it may know
it for the same. A channel that fails is tried ever more seldom, then stopped, with the reason; a
test message that arrives starts it again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import structlog
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, QuerySet, Value
from django.db.models.functions import Coalesce, Now

from reconciliation.channels import mail
from reconciliation.channels.posting import ALLOWED_AS, post_slack, post_webhook
from reconciliation.core.addresses import allowed_for
from reconciliation.core.channels import ChannelKind, MessageState, Outcome, pause_after
from reconciliation.core.errors import InvalidProvider
from reconciliation.core.letters import Letter
from reconciliation.core.notifications import Kind
from reconciliation.models import Channel, Delivery, Message, Notification
from reconciliation.sealing import unseal
from reconciliation.services.audit import actor_of, add_entry
from reconciliation.services.telling import tell_stopped
from workflows.failpoints import failpoint
from workflows.services.clock import database_now

log = structlog.get_logger(__name__)

Writer = Callable[[Message], Letter | None]
"""Writes a message as things are now; None when nothing of it is worth telling any more."""

# Longer than any channel takes to give up.
TAKEN_FOR = timedelta(seconds=60)
# Of one hint: what is left is hinted at again.
MOST_AT_ONCE = 50
NOTHING_LEFT = "Nothing of it waited any more."

# A mail server that hangs holds up one thread of a worker, never all: the rest have runs to do.
_sending = threading.Lock()


def deliver_due(first: UUID, write: Writer) -> int:
    """Deliver `first`, and then what else is due; return how many were tried.

    Does nothing while this process delivers already.
    """
    if not _sending.acquire(blocking=False):
        return 0
    try:
        tried = int(deliver(first, write))
        for message in due_messages():
            tried += int(deliver(message, write))
        return tried
    finally:
        _sending.release()


def due_messages() -> list[UUID]:
    due = Message.objects.filter(next_at__lte=Now()).order_by("next_at")
    return list(due.values_list("pk", flat=True)[:MOST_AT_ONCE])


def deliver(message_id: UUID, write: Writer) -> bool:
    """Try a message that is due; False when it is not, or another process has it."""
    due = Message.objects.filter(pk=message_id, next_at__lte=Now())
    if not due.update(next_at=Now() + TAKEN_FOR, attempts=F("attempts") + 1):
        return False
    failpoint("message_taken")
    message = Message.objects.select_related("channel__person", "channel__queue").get(pk=message_id)
    outcome = tried(message, write)
    if outcome is None:
        end(message, MessageState.DROPPED, NOTHING_LEFT)
        return True
    failpoint("message_sent")
    record(message, outcome)
    return True


def tried(message: Message, write: Writer) -> Outcome | None:
    """What came of writing and sending it; None when there was nothing to send.

    A fault of our own is a failure like any other: seen, tried again, and in the end the reason
    why the channel has stopped. Else it would be a silent one.
    """
    try:
        letter = write(message)
        return handed_over(message.channel, letter) if letter else None
    except Exception as error:
        log.exception("message.not_sent", message=str(message.pk))
        return Outcome(f"Romulus could not send it ({type(error).__name__}): see its log.")


def handed_over(channel: Channel, letter: Letter) -> Outcome:
    """What came of handing `letter` to `channel` once."""
    if channel.kind == ChannelKind.EMAIL:
        if not channel.mailbox:
            return Outcome("The account has no e-mail address.", lasting=True)
        return mail.send_mail(channel.mailbox, letter)
    try:
        address = unseal(channel.address_sealed).decode()
        secret = unseal(channel.secret_sealed).decode() if channel.secret_sealed else ""
        allowed = allowed_for(ALLOWED_AS, settings.ROMULUS_ALLOWED_ADDRESSES)
    except InvalidToken:
        return Outcome("It was sealed with a key that is not here: set its address up again.", True)
    except InvalidProvider as error:
        return Outcome(str(error)[:300])
    if channel.kind == ChannelKind.SLACK:
        return post_slack(address, allowed, letter)
    return post_webhook(address, secret, allowed, letter, database_now())


# --- what follows -----------------------------------------------------------------------------


def record(message: Message, outcome: Outcome) -> None:
    """Write down what came of a try, with what it says of the channel."""
    failpoint("before_recorded")
    with transaction.atomic():
        channel = Channel.objects.select_for_update().get(pk=message.channel_id)
        if not outcome.problem:
            end(message, MessageState.SENT)
            go_on(channel)
        else:
            log.warning("channel.failed", channel=str(channel.pk), problem=outcome.problem)
            fail(message, channel, outcome)
    failpoint("after_recorded")


def end(message: Message, state: MessageState, problem: str = "") -> None:
    waiting(message).update(state=state, next_at=None, ended_at=Now(), problem=problem)


def waiting(message: Message) -> QuerySet[Message]:
    return Message.objects.filter(pk=message.pk, state=MessageState.WAITING)


def go_on(channel: Channel) -> None:
    """It took a message: whatever was wrong is over."""
    Channel.objects.filter(pk=channel.pk).update(failing_since=None, problem="", used_at=Now())
    if channel.stopped_at is not None:
        start_again(channel, "system")


def start_again(channel: Channel, by: str) -> None:
    """Use a channel that has stopped, or fails, as if it were new: what waited for it goes out."""
    Channel.objects.filter(pk=channel.pk).update(failing_since=None, stopped_at=None, problem="")
    if channel.stopped_at is not None:
        add_entry(by, "channel started again", subject_of(channel), {})
    held_back = Message.objects.filter(channel=channel, state=MessageState.WAITING)
    held_back.update(next_at=Now(), attempts=0)


def fail(message: Message, channel: Channel, outcome: Outcome) -> None:
    problem = outcome.problem[:300]
    if is_test(message):
        end(message, MessageState.FAILED, problem)
        return
    since = Coalesce(F("failing_since"), Now())
    Channel.objects.filter(pk=channel.pk).update(failing_since=since, problem=problem)
    pause = pause_after(message.attempts, outcome)
    next_at = Now() + Value(pause) if pause else None
    waiting(message).update(next_at=next_at, problem=problem)
    if pause is None and channel.stopped_at is None:
        stop(channel, problem)


def stop(channel: Channel, problem: str) -> None:
    """Use `channel` no more until somebody has seen to it; what waits for it is kept."""
    now = database_now()
    Channel.objects.filter(pk=channel.pk).update(stopped_at=now)
    Message.objects.filter(channel=channel, state=MessageState.WAITING).update(next_at=None)
    add_entry("system", "channel stopped", subject_of(channel), {"reason": problem})
    log.error("channel.stopped", channel=str(channel.pk), problem=problem)
    if channel.queue is not None:
        channel.problem = problem
        tell_stopped(channel, channel.queue, now)


def is_test(message: Message) -> bool:
    return message.deliveries.filter(notification__kind=Kind.TEST).exists()


def subject_of(channel: Channel) -> str:
    return f"channel:{channel.pk}"


# --- a test -----------------------------------------------------------------------------------


def send_test(channel: Channel, by: User, write: Writer) -> Message:
    """Send a test message now, whatever waits; return what came of it.

    One that arrives starts a channel that was stopped; one that does not is not tried again.
    """
    failpoint("before_test")
    with transaction.atomic():
        message = Message.objects.create(channel=channel, next_at=Now())
        notification = Notification.objects.create(
            kind=Kind.TEST,
            cause=f"test:{message.pk}",
            channel=channel,
            says={"by": by.get_username()},
            addressed_at=Now(),
            reached=1,
        )
        Delivery.objects.create(notification=notification, channel=channel, message=message)
        add_entry(actor_of(by), "tested channel", subject_of(channel), {})
    failpoint("after_test")
    deliver(message.pk, write)
    message.refresh_from_db()
    return message
