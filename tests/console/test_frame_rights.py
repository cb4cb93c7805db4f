"""The frame's one statement says what the query sets of `access` say, whoever asks.

It is written by hand, so every kind of person is shown a world in which each rule counts.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from guardian.shortcuts import assign_perm

from reconciliation import access
from reconciliation.models import Channel, DispatchStop, Hold, ReviewQueue, SavedView, Shift
from reconciliation.selectors.frame import VIEWS_SHOWN, Frame, frame_of
from reconciliation.selectors.overview_needs import hold_counts, theirs
from reconciliation.selectors.queue_filters import condition
from reconciliation.selectors.queue_tabs import saved_for
from tests.factories import administrator, many_held, person, ready_provider, tenant
from workflows.core.words import listed
from workflows.models import Run
from workflows.rights import holds
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

READER = "somebody"


@pytest.fixture(autouse=True)
def world() -> None:
    """Two queues, two tenants and two people, and for each of them something of every kind."""
    tenant("southbay")
    for provider in (ready_provider("payments"), ready_provider("machines")):
        holds = many_held(8, provider)
        Run.objects.filter(holds__in=holds[4:]).update(tenant=tenant("southbay"))
        hold_them(holds)
    hold_them(many_held(8, provider), queue=None)
    for queue in (*ReviewQueue.objects.all(), ReviewQueue.objects.create(slug="z", name="A")):
        of_queue(queue)
    for name in (READER, "another"):
        of_person(person(name))
    give_the_rota_rights()
    for where in ({}, {"tenant": tenant()}, {"tenant": tenant("southbay")}):
        stop(**where)
        stop(**where, provider=provider, until=database_now() + timedelta(hours=1))
        stop(**where, action="refunds.create", until=database_now() - timedelta(hours=1))


def give_the_rota_rights() -> None:
    """By themselves, by a group, and on another queue than theirs."""
    assign_perm("reconciliation.decide", person("day"), queue_of("payments"))
    assign_perm("reconciliation.view_reviewqueue", person("night"), queue_of("payments"))
    nights = Group.objects.create(name="nights")
    person("night").groups.add(nights)
    assign_perm("reconciliation.decide", nights, queue_of("machines"))


def hold_them(holds: list[Hold], **fields: Any) -> None:
    """Of each tenant one that is the reader's, one that they snoozed and one whose window ends."""
    now, reader = database_now(), person(READER)
    for place, hold in enumerate(holds):
        kinds: list[dict[str, Any]] = [
            {"assignee": reader},
            {"assignee": reader, "snoozed_until": now + timedelta(hours=1)},
            {"window_ends_at": now + timedelta(minutes=place + 30)},
            {"state": "closed", "assignee": reader, "closed_at": now},
        ]
        tenant_id = Run.objects.get(pk=hold.run_id).tenant_id
        Hold.objects.filter(pk=hold.pk).update(tenant=tenant_id, **fields, **kinds[place % 4])


def of_queue(queue: ReviewQueue) -> None:
    Channel.objects.create(
        kind="slack", queue=queue, failing_since=database_now(), problem=f"of {queue.slug}"
    )
    SavedView.objects.create(name=f"of {queue.slug}", queue=queue, query="tab=mine", made_by="x")
    for name in ("day", "night"):
        Shift.objects.create(
            queue=queue, person=person(name), weekdays="0123456", starts="00:00", ends="00:00"
        )


def of_person(user: User) -> None:
    Channel.objects.create(
        kind="slack", person=user, failing_since=database_now(), problem=f"of {user.username}"
    )
    Channel.objects.create(kind="webhook", person=user, problem="of one that works")
    SavedView.objects.create(name=f"of {user.username}", person=user, made_by="x")


def stop(**fields: Any) -> None:
    DispatchStop.objects.create(state="off", by="system", reason=f"{sorted(fields)}", **fields)


# --- kinds of people --------------------------------------------------------------------------


def queue_of(slug: str) -> ReviewQueue:
    return ReviewQueue.objects.get(slug=slug)


def with_nothing() -> User:
    found: User = person(READER)
    return found


def with_tenant() -> User:
    assign_perm("workflows.view_tenant", person(READER), tenant())
    return with_nothing()


def with_queue() -> User:
    assign_perm("reconciliation.view_reviewqueue", with_tenant(), queue_of("payments"))
    return with_nothing()


def with_queue_alone() -> User:
    assign_perm("reconciliation.view_reviewqueue", person(READER), queue_of("payments"))
    return with_nothing()


def who_decides() -> User:
    assign_perm("reconciliation.decide", with_queue(), queue_of("payments"))
    return with_nothing()


def who_owns() -> User:
    queue_of("payments").owners.add(with_queue())
    return with_nothing()


def who_owns_and_sees_nothing() -> User:
    for queue in ReviewQueue.objects.all():
        queue.owners.add(with_nothing())
    return with_nothing()


def in_a_group() -> User:
    group = Group.objects.create(name="a team")
    for right, subject in (
        ("workflows.view_tenant", tenant("southbay")),
        ("reconciliation.view_reviewqueue", queue_of("machines")),
        ("reconciliation.decide", queue_of("machines")),
    ):
        assign_perm(right, group, subject)
    who_owns().groups.add(group)
    return with_nothing()


def with_rights_everywhere() -> User:
    names = ("view_tenant", "view_reviewqueue", "decide")
    rights = Permission.objects.filter(
        codename__in=names, content_type__app_label__in=("workflows", "reconciliation")
    )
    with_nothing().user_permissions.add(*rights)
    return with_nothing()


def whose_account_is_closed() -> User:
    User.objects.filter(pk=who_owns().pk).update(is_active=False)
    return with_nothing()


def who_administers() -> User:
    found: User = administrator(READER + "_else")
    Hold.objects.filter(assignee=with_nothing()).update(assignee=found)
    return found


PEOPLE: list[Callable[[], User]] = [
    with_nothing,
    with_tenant,
    with_queue,
    with_queue_alone,
    who_decides,
    who_owns,
    who_owns_and_sees_nothing,
    in_a_group,
    with_rights_everywhere,
    whose_account_is_closed,
    who_administers,
]


# --- what they are shown ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", PEOPLE, ids=lambda kind: kind.__name__)
def test_the_frame_says_what_the_query_sets_say(kind: Callable[[], User]) -> None:
    user, now = kind(), database_now()
    frame = frame_of(user, now)
    # The rights are read anew.
    user = User.objects.get(pk=user.pk)
    holds = access.open_holds(user)
    assert frame.needs_you == holds.count()
    assert [view.count for view in frame.views[: len(VIEWS_SHOWN)]] == [
        str(holds.filter(condition(looked, user, now)).count())
        for _, looked in VIEWS_SHOWN.values()
    ]
    assert told(frame) == as_told(user)


def told(frame: Frame) -> dict[str, list[Any]]:
    return {
        "stops": [(each.covers, each.by_name, each.reason, each.until) for each in frame.stops],
        "failing": [(str(each), each.problem, each.failing_since) for each in frame.failing],
        "saved": [view.text for view in frame.views[len(VIEWS_SHOWN) :]],
        "on call": [(duty.queue, duty.people, duty.powerless) for duty in frame.on_call],
    }


def as_told(user: User) -> dict[str, list[Any]]:
    stops = access.visible_stops(user).order_by("-at")[:3]
    channels = access.visible_channels(user).filter(failing_since__isnull=False)
    team = access.team_queues(user).filter(shifts__isnull=False).distinct().order_by("name", "pk")
    return {
        "stops": [(each.covers, each.by_name, each.reason, each.until) for each in stops],
        "failing": [
            (str(each), each.problem, each.failing_since)
            for each in channels.order_by("-failing_since")[:3]
        ],
        "saved": [view.name for view in saved_for(user).order_by("name", "pk")[:5]],
        "on call": [(queue.name, "day and night", powerless_in(queue)) for queue in team[:2]],
    }


def powerless_in(queue: ReviewQueue) -> str:
    people = User.objects.filter(username__in=("day", "night")).order_by("username")
    barred = [each for each in people if not holds(each, "reconciliation.decide", queue)]
    return listed([each.username for each in barred])


def test_the_world_is_such_that_people_are_shown_different_things() -> None:
    shown = {str(told(frame_of(User.objects.get(pk=kind().pk), database_now()))) for kind in PEOPLE}
    assert len(shown) > len(PEOPLE) // 2


@pytest.mark.parametrize("kind", PEOPLE, ids=lambda kind: kind.__name__)
def test_the_holds_are_counted_as_the_query_sets_count_them(kind: Callable[[], User]) -> None:
    user, now = kind(), database_now()
    counts = hold_counts(user, now)
    user = User.objects.get(pk=user.pk)
    holds = access.open_holds(user)
    mine = holds.filter(theirs(user))
    assert counts.total == holds.count()
    assert (counts.late, counts.mine, counts.mine_late) == (
        holds.filter(due_at__lte=now).count(),
        mine.count(),
        mine.filter(due_at__lte=now).count(),
    )
    assert counts.oldest == min((hold.opened_at for hold in holds), default=None)
