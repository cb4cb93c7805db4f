"""The end of what is kept of notifications: what goes, and what is still needed."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from reconciliation.core.channels import MessageState
from reconciliation.core.states import HoldState
from reconciliation.models import Channel, Delivery, Hold, Message, Notification
from reconciliation.services.forgetting import forget_told
from tests.factories import many_held, ready_provider
from workflows.models.ids import id_at, new_id

pytestmark = pytest.mark.django_db

LONG_AGO, LATELY = timedelta(days=91), timedelta(days=89)


@pytest.fixture
def hold() -> Hold:
    """One that is over."""
    (held,) = many_held(1, ready_provider("desk"))
    Hold.objects.update(state=HoldState.CLOSED, closed_at=Now())
    return held


@pytest.fixture
def channel(hold: Hold) -> Channel:
    return Channel.objects.create(kind="email", queue=hold.queue, address="desk@example.com")


def told(hold: Hold | None, ago: timedelta, *to: Message | None, channel: Channel) -> Notification:
    """What was told so long ago: a delivery for each of `to`, None where it has not left yet."""
    pk = UUID(int=id_at(timezone.now() - ago).int | (new_id().int & (1 << 76) - 1))
    row = Notification.objects.create(
        pk=pk, kind="opened", cause=str(pk), hold=hold, addressed_at=Now()
    )
    for message in to:
        Delivery.objects.create(notification=row, channel=channel, message=message)
    return row


def sent(channel: Channel, state: MessageState = MessageState.SENT) -> Message:
    ended = Now() if state != MessageState.WAITING else None
    return Message.objects.create(channel=channel, state=state, ended_at=ended)


def test_what_was_told_long_ago_goes_with_how_it_got_there(hold: Hold, channel: Channel) -> None:
    for _ in range(3):
        told(hold, LONG_AGO, sent(channel), channel=channel)
    told(None, LONG_AGO, channel=channel)  # of a switch, and it reached nobody
    assert forget_told() == 4
    assert not any(model.objects.exists() for model in (Notification, Delivery, Message))
    assert forget_told() == 0


def test_what_is_still_needed_stays(hold: Hold, channel: Channel) -> None:
    kept = [
        told(hold, LATELY, sent(channel), channel=channel),
        told(hold, LONG_AGO, sent(channel, MessageState.WAITING), channel=channel),
        told(hold, LONG_AGO, None, channel=channel),
    ]
    new = told(hold, LONG_AGO, channel=channel)
    Notification.objects.filter(pk=new.pk).update(addressed_at=None)
    assert forget_told() == 0
    assert Notification.objects.count() == len([*kept, new])


def test_of_an_open_case_everything_stays_so_that_nothing_is_told_twice(
    hold: Hold, channel: Channel
) -> None:
    Hold.objects.update(state=HoldState.OPEN, closed_at=None)
    told(hold, LONG_AGO, sent(channel), channel=channel)
    assert forget_told() == 0


def test_a_summary_goes_with_the_last_of_what_it_told(hold: Hold, channel: Channel) -> None:
    summary = sent(channel)
    told(hold, LONG_AGO, summary, channel=channel)
    recent = told(hold, LATELY, summary, channel=channel)
    assert forget_told() == 1
    assert list(Delivery.objects.values_list("notification", "message")) == [
        (recent.pk, summary.pk)
    ]
