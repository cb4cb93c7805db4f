"""Channels over a real mail server and a real HTTP receiver: what arrives, fails and stops."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from pytest_django import Settings
from standardwebhooks import Webhook

from reconciliation.core.channels import MOST_ATTEMPTS, ChannelKind
from reconciliation.core.errors import InvalidChannel
from reconciliation.models import (
    AuditEntry,
    Channel,
    Hold,
    Message,
    Notification,
    Provider,
    ReviewQueue,
)
from reconciliation.selectors.letters import write
from reconciliation.services.addressing import pass_on
from reconciliation.services.channels import Typed, check_channel, save_channel
from reconciliation.services.delivering import deliver, send_test
from reconciliation.services.telling import tell_opened
from tests.factories import administrator, many_held, ready_provider
from tests.receiving import Mailbox, Receiver, http_receiver, mail_server
from tests.telling import SECRET, channel, owner, told

pytestmark = pytest.mark.django_db


@pytest.fixture
def mailbox(settings: Settings) -> Iterator[Mailbox]:
    with mail_server() as box:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", box.port
        settings.EMAIL_USE_TLS = False
        yield box


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with http_receiver() as found:
        yield found


@pytest.fixture
def hold() -> Hold:
    (held,) = many_held(1, ready_provider("desk"))
    Hold.objects.update(tell_at=None)
    return held


@pytest.fixture
def queue(hold: Hold) -> ReviewQueue:
    assert hold.queue is not None
    return hold.queue


def ready_again() -> Provider:
    return Provider.objects.get(slug="desk")


def due_again() -> None:
    """Let the pause of what waits be over."""
    Message.objects.filter(next_at__isnull=False).update(next_at=Now())


def test_an_e_mail_arrives_with_its_id_and_without_headers_of_others(
    mailbox: Mailbox, hold: Hold, queue: ReviewQueue, settings: Settings
) -> None:
    settings.ROMULUS_ENVIRONMENT = "Production"
    owner(queue)
    assert hold.operation is not None
    tell_opened(hold)
    told()
    (got,) = mailbox.stored
    assert (got["To"], got["From"]) == ("reviewer_1@example.com", settings.DEFAULT_FROM_EMAIL)
    assert got["Subject"] == f"[Production] Held: {hold.operation.summary}"
    assert got["Message-ID"] == f"<{Message.objects.get().pk}@localhost>"
    assert got["Auto-Submitted"] == "auto-generated"
    assert got.get_content_type() == "multipart/alternative"
    assert "It was sent" in mailbox.text()
    assert Channel.objects.get().used_at is not None


def test_a_webhook_is_signed_as_its_receiver_checks_it(
    receiver: Receiver, hold: Hold, queue: ReviewQueue
) -> None:
    channel(queue, ChannelKind.WEBHOOK, receiver.url)
    tell_opened(hold)
    told()
    ((headers, body),) = receiver.got
    document = Webhook(SECRET).verify(body, headers)
    message = Message.objects.get()
    assert headers["webhook-id"] == str(message.pk) == document["data"]["id"]
    assert (document["type"], message.state, message.attempts) == ("romulus.opened", "sent", 1)


def test_slack_gets_a_text(receiver: Receiver, hold: Hold, queue: ReviewQueue) -> None:
    channel(queue, ChannelKind.SLACK, receiver.url)
    tell_opened(hold)
    told()
    (document,) = receiver.documents
    assert document["text"].startswith("*Held: Refund order 0*\n")
    assert "Not known: " in document["text"]


def test_what_fails_is_tried_again_under_the_same_id_and_seen_meanwhile(
    receiver: Receiver, hold: Hold, queue: ReviewQueue
) -> None:
    made = channel(queue, ChannelKind.WEBHOOK, receiver.url)
    receiver.status, receiver.headers = 503, {"Retry-After": "120"}
    tell_opened(hold)
    told()
    made.refresh_from_db()
    message = Message.objects.get()
    assert (message.state, made.problem) == ("waiting", "It answered 503.")
    assert made.failing_since is not None
    assert message.next_at is not None
    assert message.next_at > message.created_at + timedelta(seconds=110)
    told()  # it is not due
    assert len(receiver.got) == 1

    receiver.status = 200
    due_again()
    told()
    ids = {headers["webhook-id"] for headers, _ in receiver.got}
    made.refresh_from_db()
    assert (len(receiver.got), len(ids)) == (2, 1)
    assert (made.failing_since, made.problem, Message.objects.get().state) == (None, "", "sent")


@pytest.mark.parametrize("lasting", [True, False])
def test_a_channel_that_is_dead_stops_keeps_what_waits_and_goes_on_after_a_test(
    receiver: Receiver, hold: Hold, queue: ReviewQueue, lasting: bool
) -> None:
    made = channel(queue, ChannelKind.SLACK, receiver.url)
    receiver.status = 404 if lasting else 500
    tell_opened(hold)
    told()
    if not lasting:
        Message.objects.update(attempts=MOST_ATTEMPTS - 1, next_at=Now())
        told()
    made.refresh_from_db()
    assert made.stopped_at is not None
    assert Message.objects.get().next_at is None
    assert AuditEntry.objects.filter(verb="channel stopped").exists()
    assert Notification.objects.filter(kind="stopped", queue=queue).exists()
    # What comes meanwhile waits for it too, and a test that fails changes nothing.
    (later,) = many_held(1, ready_again())
    tell_opened(later)
    told()
    assert Notification.objects.get(hold=later).reached == 0
    admin = administrator()
    assert send_test(made, admin, write).state == "failed"
    made.refresh_from_db()
    assert made.stopped_at is not None

    receiver.status = 200
    receiver.got.clear()
    assert send_test(made, admin, write).state == "sent"
    told()
    told()  # while one is under way the rest wait
    texts = [document["text"].splitlines()[0] for document in receiver.documents]
    assert texts == ["*A test message*", "*Held: Refund order 0*", "*Held: Refund order 0*"]
    made.refresh_from_db()
    assert (made.stopped_at, made.failing_since) == (None, None)


def test_a_new_address_starts_a_stopped_channel_again(
    receiver: Receiver, hold: Hold, queue: ReviewQueue
) -> None:
    made = channel(queue, ChannelKind.SLACK, "http://127.0.0.1:9/gone")
    tell_opened(hold)
    told()
    Message.objects.update(attempts=MOST_ATTEMPTS, next_at=Now())
    told()
    made.refresh_from_db()
    assert made.stopped_at is not None
    save_channel(made, Typed(receiver.url), by=administrator())
    told()
    assert len(receiver.got) == 1
    made.refresh_from_db()
    assert made.works


def test_a_mailbox_that_is_refused_stops_and_others_go_on(
    mailbox: Mailbox, hold: Hold, queue: ReviewQueue
) -> None:
    owner(queue)
    mailbox.answer = "550 no such user"
    tell_opened(hold)
    told()
    stopped = Channel.objects.get()
    assert stopped.stopped_at is not None
    assert stopped.problem == "The mail server refuses this mailbox (550)."


def test_a_mail_server_that_is_away_loses_nothing(
    mailbox: Mailbox, hold: Hold, queue: ReviewQueue, settings: Settings
) -> None:
    owner(queue)
    settings.EMAIL_PORT = 9
    tell_opened(hold)
    told()
    waiting = Message.objects.get()
    assert (waiting.state, waiting.attempts) == ("waiting", 1)
    assert waiting.problem == "The mail server could not be spoken to (ConnectionRefusedError)."
    settings.EMAIL_PORT = mailbox.port
    due_again()
    told()
    assert mailbox.stored[0]["Message-ID"] == f"<{waiting.pk}@localhost>"


def test_a_fault_of_our_own_is_seen_and_tried_again(
    receiver: Receiver, hold: Hold, queue: ReviewQueue
) -> None:
    made = channel(queue, ChannelKind.SLACK, receiver.url)
    tell_opened(hold)
    pass_on()

    def broken(_: Message) -> None:
        raise KeyError("a template's own")

    assert deliver(Message.objects.get().pk, broken)
    made.refresh_from_db()
    assert made.problem == "Romulus could not send it (KeyError): see its log."
    due_again()
    told()
    assert len(receiver.got) == 1


def test_a_message_is_taken_by_one_at_a_time(
    receiver: Receiver, hold: Hold, queue: ReviewQueue
) -> None:
    channel(queue, ChannelKind.SLACK, receiver.url)
    tell_opened(hold)
    told()
    assert not deliver(Message.objects.get().pk, write)
    assert len(receiver.got) == 1


# --- setting up -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "typed", "field"),
    [
        ("slack", Typed(), "address"),
        ("slack", Typed("http://10.0.0.7/hook"), "address"),
        ("slack", Typed("http://169.254.169.254/latest"), "address"),
        ("slack", Typed("http://localhost:5432/"), "address"),
        ("slack", Typed("ftp://example.com/"), "address"),
        ("webhook", Typed("https://203.0.113.7/hook"), "secret"),
        ("webhook", Typed("https://203.0.113.7/hook", "whsec_c2hvcnQ="), "secret"),
        ("webhook", Typed("https://203.0.113.7/hook", "no base64 at all!"), "secret"),
        ("email", Typed(), "address"),
        ("email", Typed("desk@example.com\r\nBcc: all@example.com"), "address"),
        ("email", Typed("Desk <desk@example.com>, all@example.com"), "address"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_field(
    queue: ReviewQueue, settings: Settings, kind: str, typed: Typed, field: str
) -> None:
    settings.ROMULUS_ALLOWED_ADDRESSES = ["notifications=203.0.113.0/24"]
    with pytest.raises(InvalidChannel) as refused:
        check_channel(Channel(kind=kind, queue=queue), typed)
    assert refused.value.field == field


def test_a_channel_is_of_a_queue_or_of_a_person(queue: ReviewQueue) -> None:
    for whose in ({}, {"queue": queue, "person": administrator()}):
        with pytest.raises(InvalidChannel) as refused:
            check_channel(Channel(kind="email", **whose), Typed("desk@example.com"))
        assert refused.value.field == "queue"


def test_an_address_that_turned_private_is_not_called(
    receiver: Receiver, hold: Hold, queue: ReviewQueue, settings: Settings
) -> None:
    """It was allowed when it was saved; whoever answers the name may answer otherwise later."""
    channel(queue, ChannelKind.SLACK, receiver.url)
    settings.ROMULUS_ALLOWED_ADDRESSES = []
    tell_opened(hold)
    told()
    assert not receiver.got
    problem = "It did not answer: its address is not one that may be called."
    assert Channel.objects.get().problem == problem


def test_what_is_sealed_is_nowhere_in_the_open(receiver: Receiver, queue: ReviewQueue) -> None:
    made = channel(queue, ChannelKind.WEBHOOK, receiver.url)
    save_channel(made, Typed(secret=SECRET[:-4] + "AAA="), by=administrator())
    assert "s3cret-part" not in made.address
    entries: list[Any] = list(AuditEntry.objects.filter(object=f"channel:{made.pk}"))
    assert len(entries) == 2
    told_there = str([entry.detail for entry in entries])
    assert "s3cret" not in told_there
    assert "whsec" not in told_there
    assert "MDEy" not in told_there
    assert b"s3cret" not in bytes(made.address_sealed)
