"""Several workers sweep at the same moment: each cause is told of once, by one message."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from django.db.models.functions import Now

from reconciliation.core.channels import ChannelKind
from reconciliation.models import Delivery, Hold, Message, Notification
from reconciliation.selectors.letters import write
from reconciliation.services.addressing import pass_on
from reconciliation.services.delivering import deliver, due_messages
from reconciliation.services.escalating import escalate_holds
from tests.factories import many_held, ready_provider
from tests.racing import at_once
from tests.receiving import Receiver, http_receiver
from tests.telling import channel, told

pytestmark = pytest.mark.usefixtures("committed_db")

ROUNDS, SWEEPS = 10, 4


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with http_receiver() as found:
        yield found


def test_sweeps_at_the_same_moment_tell_each_cause_once(receiver: Receiver) -> None:
    provider = ready_provider("desk")
    assert provider.default_queue is not None
    channel(provider.default_queue, ChannelKind.SLACK, receiver.url, per_minute=60)
    for number in range(1, ROUNDS + 1):
        many_held(3, provider)
        Hold.objects.filter(tell_at__lte=Now()).update(due_at=Now())
        given = at_once(*[escalate_holds] * SWEEPS)
        assert sum(given) == 3
        given = at_once(*[pass_on] * SWEEPS)
        assert not [each for each in given if isinstance(each, Exception)]
        for message in due_messages():
            given = at_once(*[partial(deliver, message, write)] * SWEEPS)
            assert sorted(given) == [False] * (SWEEPS - 1) + [True]
        told()
        assert Notification.objects.filter(addressed_at=None).count() == 0
        assert Delivery.objects.count() == Notification.objects.count() == 3 * number
    assert Delivery.objects.filter(message=None).count() == 0
    assert Message.objects.filter(state="sent").count() == len(receiver.got)
    assert len(receiver.got) == 3 * ROUNDS
