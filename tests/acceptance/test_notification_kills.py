"""A worker that dies between the commit of a hold and its message loses nothing, and whoever gets a
message twice can tell that it is the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db.models.functions import Now

from reconciliation.core.channels import ChannelKind
from reconciliation.models import Message, Notification, ReviewQueue
from tests.destination import RunningDestination
from tests.factories import ready_provider, started_run
from tests.receiving import Receiver, http_receiver
from tests.telling import channel
from tests.waiting import wait_for
from tests.workers import Crew

pytestmark = pytest.mark.processes


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with http_receiver() as found:
        yield found


@pytest.mark.parametrize(
    ("failpoint", "times"),
    [
        ("before_addressed", 1),
        ("after_composed", 1),
        ("message_taken", 1),
        # It has left and nothing was written down: nobody can know, so it is sent again.
        ("message_sent", 2),
    ],
)
def test_killed_on_the_way_from_a_hold_to_its_message_it_arrives_all_the_same(
    workers: Crew,
    destination: RunningDestination,
    receiver: Receiver,
    failpoint: str,
    times: int,
) -> None:
    ready_provider("desk", destination.url)
    channel(ReviewQueue.objects.get(), ChannelKind.WEBHOOK, receiver.url)
    destination.client.arm("apply_then_drop")
    doomed = workers.start(failpoint=failpoint)
    started_run("ticket_triage")
    doomed.wait_until_dead()
    assert Notification.objects.get().kind == "opened"
    # What the dead one had taken is free again after a minute.
    Message.objects.update(next_at=Now())

    workers.start()
    wait_for(lambda: Message.objects.filter(state="sent").exists(), "the message is sent")
    assert Message.objects.count() == 1
    ids = [headers["webhook-id"] for headers, _ in receiver.got]
    assert ids == [str(Message.objects.get().pk)] * times
