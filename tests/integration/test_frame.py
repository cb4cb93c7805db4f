"""What stands around every page is what its reader may see, and takes one question."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.db.models.functions import Now
from guardian.shortcuts import assign_perm

from reconciliation import access
from reconciliation.models import Channel, DispatchStop, Hold, Provider, ReviewQueue
from reconciliation.selectors.frame import Frame, frame_of
from tests.factories import administrator, many_held, owner_of, person, ready_provider, tenant
from tests.statements import statements
from workflows.rights import rights_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def provider() -> Provider:
    """Something of each kind is stopped and fails; `reviewer_1` owns its queue."""
    here, elsewhere = ready_provider("desk"), tenant("southbay")
    many_held(3, here)
    Hold.objects.filter(pk=Hold.objects.latest("pk").pk).update(tenant=elsewhere)
    stops: list[dict[str, Any]] = [
        {"state": "off", "tenant": elsewhere, "until": Now() + timedelta(hours=1)},
        {"state": "off", "tenant": tenant(), "action": "x", "until": Now() - timedelta(hours=1)},
        {"state": "paused", "provider": here, "action": "comments.create"},
        {"state": "paused", "tenant": tenant(), "until": Now() + timedelta(hours=1)},
    ]
    for age, stop in enumerate(stops):
        DispatchStop.objects.create(
            by="user:1 ada", reason="-", at=Now() - timedelta(minutes=age), **stop
        )
    queue, other = ReviewQueue.objects.get(), ReviewQueue.objects.create(slug="x", name="Another")
    since = {"failing_since": Now(), "problem": "It is away."}
    Channel.objects.create(kind="webhook", queue=queue, stopped_at=Now(), **since)
    Channel.objects.create(kind="webhook", queue=other, **since)
    Channel.objects.create(kind="slack", queue=queue)
    Channel.objects.create(kind="email", person=person("reviewer_2"), **since)
    return here


def everywhere() -> User:
    user: User = person("everywhere")
    for label, codename in (("workflows", "view_tenant"), ("reconciliation", "view_reviewqueue")):
        right = Permission.objects.get(content_type__app_label=label, codename=codename)
        user.user_permissions.add(right)
    return user


def of_one_tenant() -> User:
    user: User = person("of_one_tenant")
    assign_perm("workflows.view_tenant", user, tenant())
    return user


def owner_without_the_right() -> User:
    user: User = person("owner")
    ReviewQueue.objects.get(name="Another").owners.add(user)
    return user


def gone() -> User:
    user: User = owner_of(ReviewQueue.objects.get(name="Another"), "gone")
    user.is_active = False
    user.save()
    return user


READERS = {
    "an owner": person,
    "of a channel": lambda: person("reviewer_2"),
    "everywhere": everywhere,
    "of one tenant": of_one_tenant,
    "an owner without the right": owner_without_the_right,
    "an administrator": administrator,
    "a stranger": lambda: person("stranger"),
    "one that is gone": gone,
}


@pytest.mark.parametrize("reader", READERS)
def test_it_is_what_the_reader_may_see(provider: Provider, reader: str) -> None:
    user = User.objects.get(pk=READERS[reader]().pk)
    rights_of(user)
    with statements() as sent:
        frame = frame_of(user)
    assert len(sent) == 1
    assert frame.needs_you == access.open_holds(user).count()
    stops = access.visible_stops(user).order_by("-at")[:3]
    assert list(map(told, frame.stops)) == list(map(told, stops))
    failing = access.visible_channels(user).filter(failing_since__isnull=False)
    assert sorted(map(said, frame.failing)) == sorted(map(said, failing))


def test_an_owner_is_told_something_of_each(provider: Provider) -> None:
    frame = frame_of(User.objects.get(pk=person().pk))
    assert frame.needs_you > 0
    assert [stop.covers for stop in frame.stops] == [
        "action comments.create at Desk",
        "tenant Northwind",
    ]
    assert [str(channel) for channel in frame.failing] != []


def test_nobody_has_none_of_it() -> None:
    assert frame_of(AnonymousUser()) == Frame()


def told(stop: DispatchStop) -> tuple[object, ...]:
    return stop.covers, stop.state, stop.by_name, stop.at, stop.until, stop.reason


def said(channel: Channel) -> tuple[object, ...]:
    return str(channel), channel.problem, channel.failing_since, channel.stopped_at is None
