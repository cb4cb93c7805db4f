"""The polls of lists: 204 only while nothing that the list shows has changed, and little asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from http import HTTPStatus

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from guardian.shortcuts import assign_perm, remove_perm

from reconciliation.models import Profile
from tests.console.polling import STATEMENTS, TABLE, is_told
from tests.console.posting import fragment
from tests.events import HOLDING, delivered, let_deadline_come, source, waiting
from tests.factories import administrator, many_runs, person, stranger, tenant
from tests.statements import statements
from workflows import access
from workflows.models import Event, EventSource, Match, Pause, Run, Tenant, Wait, Worker
from workflows.models.ids import new_id
from workflows.rights import VISIBLE_TENANTS, asked_for
from workflows.selectors.stamps import REDRAWN_EVERY
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

RUNS, EVENTS, WORKERS = "/runs/", "/events/", "/workers/"
PARTS = {RUNS: "runs-poll", EVENTS: "inbox", WORKERS: "workers"}


def long_ago() -> datetime:
    """So long that its words stay as they are for half an hour."""
    return database_now() - timedelta(days=2, minutes=30)


def later() -> datetime:
    return database_now() + timedelta(hours=1)


@pytest.fixture
def viewer(client: Client) -> Client:
    """Sees one tenant of two, with a list of each kind on which nothing is at work."""
    elsewhere = tenant("southbay")
    assign_perm("workflows.view_tenant", person(), tenant())
    parent, *_ = many_runs(2)
    many_runs(1, "completed", parent=parent, parent_step="create_refund", parent_visit=1)
    many_runs(1, "held", tenant=elsewhere)
    waiting()
    got = waiting(HOLDING, "48214")
    taken = delivered("48214").event
    Run.objects.filter(pk=got.pk).update(state="held", step="refunded", wake_at=None)
    assert Match.objects.filter(event=taken, wait__run=got).exists()
    delivered("x")
    Worker.objects.update(seen_at=long_ago())
    gone = Worker.objects.create(host="host", pid=1, workflows=[["refund", 1]], seen_at=long_ago())
    many_runs(1, "running", lease_owner=gone.pk, lease_expires_at=later(), tenant=elsewhere)
    client.force_login(person())
    return client


def child() -> Run:
    return Run.objects.filter(parent__isnull=False).get()


def lose_the_right() -> None:
    remove_perm("workflows.view_tenant", person(), tenant())


def get_a_right_by_a_group() -> None:
    group = Group.objects.create(name="a team")
    assign_perm("workflows.view_tenant", group, tenant("southbay"))
    person().groups.add(group)


def get_a_right_everywhere() -> None:
    view = Permission.objects.get(content_type__app_label="workflows", codename="view_tenant")
    person().user_permissions.add(view)


def live_elsewhere() -> None:
    Profile.objects.update_or_create(user=person(), defaults={"time_zone": "Asia/Tokyo"})


def let_a_child_go_on() -> None:
    Run.objects.filter(pk=child().pk).update(step="tell_customer")


def let_time_pass_over_a_wait() -> None:
    let_deadline_come(Run.objects.get(workflow="tests.failing_at_deadline"))


Change = Callable[[], object]
OF_READER: dict[str, Change] = {
    "a right that is lost": lose_the_right,
    "a right by a group": get_a_right_by_a_group,
    "a right everywhere": get_a_right_everywhere,
    "the reader's time zone": live_elsewhere,
}
ON_RUNS: dict[str, Change] = {
    "a run": lambda: many_runs(1),
    "a state": lambda: Run.objects.filter(state="held").update(state="ready"),
    "a message": lambda: Run.objects.update(failure={"reason": "x", "message": "another"}),
    "a label": lambda: Run.objects.update(labels={"order": "another"}),
    "an end that is asked for": lambda: Run.objects.update(
        cancel_asked_at=Now(), cancel_asked_by="system"
    ),
    "a pause": lambda: Pause.objects.create(workflow="refund", by="system", reason="-"),
    "a tenant's name": lambda: Tenant.objects.update(name="Another"),
    "a wait": lambda: Wait.objects.update(correlation="another"),
    "what a wait has got": lambda: Match.objects.update(by="ada", reason="-"),
    "the source of that": lambda: EventSource.objects.update(name="Another"),
    "a wait whose time is over": let_time_pass_over_a_wait,
}
ON_EVENTS: dict[str, Change] = {
    "an event": lambda: delivered("another"),
    "a state": lambda: Event.objects.filter(correlation="x").update(state="late"),
    "that one is dismissed": lambda: Event.objects.filter(correlation="x").update(
        dismissed_at=Now(), dismissed_by="ada"
    ),
    "that one is ambiguous": lambda: Event.objects.filter(correlation="x").update(
        ambiguous_at=Now()
    ),
    "a duplicate": lambda: Event.objects.filter(correlation="x").update(duplicates=1),
    "a source's name": lambda: EventSource.objects.update(name="Another"),
    "another source": lambda: source("shop"),
}
ON_ALL_EVENTS: dict[str, Change] = {
    "by whom one was given": lambda: Match.objects.update(by="ada", reason="-"),
    "the run that got one": lambda: Run.objects.update(labels={"order": "another"}),
}
ON_WORKERS: dict[str, Change] = {
    "a worker": lambda: Worker.objects.create(host="host", pid=2, workflows=[]),
    "that one is seen": lambda: Worker.objects.update(seen_at=Now()),
    "a run that is ready": lambda: many_runs(1, "ready"),
    "a run at work": lambda: many_runs(
        1, "running", lease_owner=new_id(), lease_expires_at=later()
    ),
}
CHANGES = [
    (RUNS, ON_RUNS),
    ("/runs/?state=held", {"another that is held": lambda: many_runs(1)}),
    (
        "/runs/?children=with",
        {"a child": lambda: Run.objects.filter(pk=child().pk).update(step="s")},
    ),
    (EVENTS, ON_EVENTS),
    ("/events/?view=all", ON_EVENTS | ON_ALL_EVENTS),
    ("/events/?state=stored", {"an event": lambda: delivered("another")}),
    ("/events/?source=payments", {"an event": lambda: delivered("another")}),
    (WORKERS, ON_WORKERS),
]


def part_of(url: str) -> str:
    return PARTS[url.partition("?")[0]]


def polled(viewer: Client, url: str) -> str:
    """How the page at `url` polls, which was seen just now."""
    seen = viewer.get(url).context["seen"]
    return f"{url}{'&' if '?' in url else '?'}seen={seen}"


@pytest.mark.parametrize(("url", "changes"), CHANGES, ids=[url for url, _ in CHANGES])
def test_whatever_changes_is_told_and_nothing_else(
    viewer: Client, url: str, changes: dict[str, Change]
) -> None:
    part, changes = part_of(url), OF_READER | changes
    again = polled(viewer, url)
    untold = {name for name, change in changes.items() if not is_told(viewer, again, part, change)}
    assert untold == set()
    with statements() as sent:
        assert fragment(viewer, again, part).status_code == HTTPStatus.NO_CONTENT
    assert len(sent) == STATEMENTS


def test_one_runs_list_tells_what_becomes_of_the_runs_that_it_started(viewer: Client) -> None:
    url = f"{RUNS}?parent={child().parent_id}"
    changes: dict[str, Change] = {
        "another": lambda: many_runs(
            1, parent=child().parent, parent_step="create_refund", parent_visit=2
        ),
        "the one that started them": lambda: Run.objects.update(labels={"order": "another"}),
    }
    again = polled(viewer, url)
    untold = {
        name for name, each in changes.items() if not is_told(viewer, again, "runs-poll", each)
    }
    assert untold == set()
    assert fragment(viewer, again, "runs-poll").status_code == HTTPStatus.NO_CONTENT


@pytest.mark.parametrize("url", [RUNS, EVENTS, WORKERS])
def test_what_is_elsewhere_is_not_told(viewer: Client, url: str) -> None:
    again = polled(viewer, url)
    many_runs(3, "held", tenant=tenant("southbay"))
    many_runs(3, "ready", tenant=tenant("southbay"))
    delivered(of=source("bay", tenant("southbay")))
    assert fragment(viewer, again, part_of(url)).status_code == HTTPStatus.NO_CONTENT


@pytest.mark.parametrize("url", [RUNS, EVENTS, WORKERS])
def test_who_is_somebody_else_is_told(viewer: Client, url: str) -> None:
    again = polled(viewer, url)
    viewer.force_login(stranger())
    assert fragment(viewer, again, part_of(url)).status_code == HTTPStatus.OK


@pytest.mark.parametrize("url", [RUNS, EVENTS, WORKERS])
def test_what_was_never_seen_is_told(viewer: Client, url: str) -> None:
    for seen in ("", "x", "..", "a.b.c", f"a.{'9' * 400}.c"):
        assert fragment(viewer, f"{url}?seen={seen}", part_of(url)).status_code == HTTPStatus.OK


@pytest.mark.parametrize("url", [RUNS, EVENTS, WORKERS])
def test_what_time_alone_changes_is_told(viewer: Client, url: str) -> None:
    rows, until, told, shown = viewer.get(url).context["seen"].split(".")
    now = int(database_now().timestamp())
    assert now < int(until) <= now + REDRAWN_EVERY.total_seconds()
    past = f"{url}?seen={rows}.{now}.{told}.{shown}"
    assert fragment(viewer, past, part_of(url)).status_code == HTTPStatus.OK


def test_runs_are_looked_at_again_when_the_first_of_them_wakes(viewer: Client) -> None:
    soon = database_now() + timedelta(minutes=3)
    Run.objects.filter(state="waiting").update(wake_at=soon)
    _, until, *_ = viewer.get(RUNS).context["seen"].split(".")
    assert int(until) == int(soon.timestamp())


def test_workers_are_looked_at_again_when_one_is_said_to_be_gone_for_longer(
    viewer: Client,
) -> None:
    seen_at = database_now() - timedelta(minutes=10, seconds=5)
    Worker.objects.filter(host="host").update(seen_at=seen_at)
    _, until, *_ = viewer.get(WORKERS).context["seen"].split(".")
    assert int(until) == int((seen_at + timedelta(minutes=11)).timestamp())


def test_a_list_on_which_a_run_is_at_work_is_made_anew_each_time(viewer: Client) -> None:
    many_runs(1, "ready")
    seen = viewer.get(RUNS).context["seen"]
    assert seen.startswith(".")
    assert fragment(viewer, f"{RUNS}?seen={seen}", "runs-poll").status_code == HTTPStatus.NO_CONTENT
    assert is_told(viewer, f"{RUNS}?seen={seen}", "runs-poll", live_elsewhere)
    Worker.objects.update(seen_at=Now())  # one that has its version
    assert fragment(viewer, f"{RUNS}?seen={seen}", "runs-poll").status_code == HTTPStatus.OK


# What a list reads, and its stamp need not: of runs at rest a worker says nothing.
UNSTAMPED = {RUNS: {"workflows_worker"}, EVENTS: set[str](), WORKERS: set[str]()}
# For what the page has besides: who may send an event, and what came close to a wait.
RIGHTS = {"auth_user", "auth_group", "reconciliation_profile"}


@pytest.mark.parametrize("url", [RUNS, f"{EVENTS}?view=all", WORKERS])
def test_a_stamp_is_made_of_all_that_its_list_reads(viewer: Client, url: str) -> None:
    with statements() as sent:
        assert fragment(viewer, url, part_of(url)).status_code == HTTPStatus.OK
    (stamp,) = [text for text in sent if "md5(concat_ws" in text]
    read = {table for text in sent if text != stamp for table in TABLE.findall(text)}
    assert "workflows_run" in read
    assert read - set(TABLE.findall(stamp)) <= UNSTAMPED[url.partition("?")[0]] | RIGHTS


def test_the_tenants_of_a_stamp_are_those_that_the_reader_may_see(viewer: Client) -> None:
    tenant("eastside")
    assert seen_by(person()) == {"northwind"}
    get_a_right_by_a_group()
    assert seen_by(person()) == {"northwind", "southbay"}
    get_a_right_everywhere()
    assert len(seen_by(person())) == len(seen_by(administrator())) == Tenant.objects.count()
    assert seen_by(stranger()) == set()


def seen_by(user: User) -> set[str]:
    fresh = User.objects.get(pk=user.pk)
    with connection.cursor() as cursor:
        said = f"WITH {VISIBLE_TENANTS} SELECT id FROM visible"  # noqa: S608 (a constant)
        cursor.execute(said, asked_for(fresh))
        found = {pk for (pk,) in cursor.fetchall()}
    assert found == set(access.visible_tenants(fresh).values_list("pk", flat=True))
    return set(Tenant.objects.filter(pk__in=found).values_list("slug", flat=True))
