"""A poll answers 204 only while nothing that its page shows has changed, and asks little for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from http import HTTPStatus

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import remove_perm
from pytest_django import Settings

from reconciliation.core.states import HoldState
from reconciliation.models import (
    DispatchStop,
    Evidence,
    Hold,
    Operation,
    Profile,
    Provider,
    ReviewQueue,
    Shift,
    Transmission,
)
from reconciliation.selectors.operation_stamp import STAMP as OF_OPERATION
from reconciliation.selectors.operation_stamp import operation_stamp
from reconciliation.selectors.run_rows import ROWS as OF_PARTS
from reconciliation.services.audit import add_entry
from tests.console.polling import STATEMENTS, TABLE, is_told
from tests.console.posting import fragment, url_of
from tests.deciding import KEEP_HOLDING, decide
from tests.destination import RunningDestination
from tests.factories import (
    held_operation,
    open_hold_of,
    owner_of,
    person,
    ready_provider,
    wait_until,
)
from tests.statements import statements
from workflows.models import Attempt, Pause, Run, Tenant, Wait
from workflows.models.ids import new_id
from workflows.selectors.run_stamp import ROWS as OF_RUN
from workflows.selectors.stamps import planned_once
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

# What a page reads, and its stamp need not.
NEVER_CHANGED = {"reconciliation_contractversion", "auth_permission"}
BY_NAME_ALONE = {"workflows_worker"}  # a worker keeps its own; of a held run it says nothing else
OWN = {"reconciliation_profile", "reconciliation_decisiondraft"}  # not in what is polled
BETWEEN = {"auth_group"}  # who is in one counts, and what it may; its name is not shown
NOT_POLLED = NEVER_CHANGED | BY_NAME_ALONE | OWN | BETWEEN


@pytest.fixture
def held(client: Client, destination: RunningDestination) -> Operation:
    """A comment whose answer was lost, some time ago; `client` is signed in as its owner."""
    ready_provider("desk", destination.url)
    client.force_login(person())
    operation = held_operation(destination)
    wait_until(Transmission.objects.get().in_flight_until)
    return operation


def stop(operation: Operation) -> None:
    DispatchStop.objects.create(provider=operation.provider, state="off", by="system", reason="-")


def send_again(operation: Operation) -> None:
    row = operation.transmissions.get()
    row.pk, row.number = new_id(), 2
    row.save(force_insert=True)


def be_on_call(_: Operation) -> None:
    tomorrow = database_now() + timedelta(days=1)
    queue = ReviewQueue.objects.get()
    Shift.objects.create(queue=queue, person=person(), starts_at=database_now(), ends_at=tomorrow)


def lose_a_right(_: Operation) -> None:
    remove_perm("workflows.view_payloads", person(), Tenant.objects.get())


def join_a_group(_: Operation) -> None:
    person().groups.add(Group.objects.create(name="a team"))


def live_elsewhere(_: Operation) -> None:
    Profile.objects.update_or_create(user=person(), defaults={"time_zone": "Asia/Tokyo"})


ON_BOTH: dict[str, Callable[[Operation], object]] = {
    "evidence": lambda held: Evidence.objects.create(
        operation=held, kind="unavailable", source="look-up"
    ),
    "a send": send_again,
    "when it is due": lambda _: Hold.objects.update(due_at=Now() + timedelta(hours=9)),
    "whose it is": lambda _: Hold.objects.update(assignee=person()),
    "a decision": lambda held: decide(open_hold_of(held), KEEP_HOLDING),
    "its queue": lambda _: ReviewQueue.objects.update(name="Another"),
    "another owner": lambda _: owner_of(ReviewQueue.objects.get(), "reviewer_2"),
    "an owner's name": lambda _: User.objects.filter(pk=person().pk).update(first_name="Ada"),
    "who is on call": be_on_call,
    "its provider": lambda _: Provider.objects.update(name="Another"),
    "a switch": stop,
    "a right that is lost": lose_a_right,
    "a group": join_a_group,
    "the reader's time zone": live_elsewhere,
    "its tenant": lambda _: Tenant.objects.update(name="Another"),
    "its run": lambda _: Run.objects.update(labels={"order": "another"}),
    "that it closes": lambda _: Hold.objects.update(state=HoldState.CLOSED, closed_at=Now()),
}


ON_OPERATION: dict[str, Callable[[Operation], object]] = {
    "that the provider was asked": lambda held: add_entry(
        "user:1 ada", "asked", f"operation:{held.pk}", {}
    ),
}
ON_RUN: dict[str, Callable[[Operation], object]] = {
    "an attempt": lambda held: Attempt.objects.filter(run=held.run).update(error="another"),
    "a wait": lambda held: Wait.objects.create(
        run=held.run,
        step="later",
        visit=1,
        tenant=held.run.tenant,
        event_types=["x"],
        correlation="c",
    ),
    "a pause": lambda held: Pause.objects.create(
        workflow=held.run.workflow, by="system", reason="-"
    ),
    "its end being asked for": lambda _: Run.objects.update(
        cancel_asked_at=Now(), cancel_asked_by="system"
    ),
}


@pytest.mark.parametrize("page", ["operation", "run"])
def test_whatever_changes_is_told_and_nothing_else(
    client: Client, held: Operation, page: str
) -> None:
    changes = ON_BOTH | (ON_OPERATION if page == "operation" else ON_RUN)
    url = address_of(held, page)
    polled = f"{url}?seen={client.get(url).context['page'].seen}"
    untold = {
        name
        for name, change in changes.items()
        if not is_told(client, polled, "live", partial(change, held))
    }
    assert untold == set()
    with statements() as sent:
        assert fragment(client, polled, "live").status_code == HTTPStatus.NO_CONTENT
    assert len(sent) == STATEMENTS


@pytest.mark.parametrize("page", ["operation", "run"])
def test_what_time_alone_changes_is_told(client: Client, held: Operation, page: str) -> None:
    soon = database_now() + timedelta(minutes=3)
    Hold.objects.update(due_at=soon)
    Run.objects.update(wake_at=soon)
    url = address_of(held, page)
    rows, until, told, shown = client.get(url).context["page"].seen.split(".")
    assert int(until) == int(soon.timestamp())
    past = int(database_now().timestamp())
    told = fragment(client, f"{url}?seen={rows}.{past}.{told}.{shown}", "live")
    assert told.status_code == HTTPStatus.OK
    # Nothing that a decision rests on has changed by it, and nobody is told so.
    assert "has changed since you opened this form" not in told.content.decode()


@pytest.mark.parametrize("page", ["operation", "run"])
def test_what_was_never_seen_is_told(client: Client, held: Operation, page: str) -> None:
    for seen in ("", "x", "..", "a.b.c", f"a.{'9' * 400}.c"):
        url = f"{address_of(held, page)}?seen={seen}"
        assert fragment(client, url, "live").status_code == HTTPStatus.OK


@pytest.mark.parametrize("page", ["operation", "run"])
def test_who_may_see_it_no_more_is_not_told_that_nothing_changed(
    client: Client, held: Operation, page: str
) -> None:
    url = address_of(held, page)
    polled = f"{url}?seen={client.get(url).context['page'].seen}"
    other = Client()
    other.force_login(User.objects.create(username="nobody_s"))
    assert fragment(other, polled, "live").status_code == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize(
    ("page", "stamp"),
    [("operation", OF_OPERATION), ("run", " ".join((*OF_RUN, *OF_PARTS)))],
    ids=["operation", "run"],
)
def test_a_stamp_is_made_of_all_that_its_page_reads(
    client: Client, held: Operation, page: str, stamp: str
) -> None:
    with statements() as sent:
        assert fragment(client, address_of(held, page), "live").status_code == HTTPStatus.OK
    read = {table for text in sent if "md5(concat_ws" not in text for table in TABLE.findall(text)}
    assert read > {"reconciliation_evidence", "workflows_run"}
    assert read - set(TABLE.findall(stamp)) <= NOT_POLLED


def test_a_stamp_is_planned_once_for_a_connection(settings: Settings, held: Operation) -> None:
    settings.ROMULUS_PREPARE = True
    for _ in range(2):
        operation_stamp(person(), held.pk)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT generic_plans + custom_plans FROM pg_prepared_statements WHERE name = %s",
            [planned_once(OF_OPERATION).name.decode()],
        )
        ((plans,),) = cursor.fetchall()
    assert plans >= 2


def test_behind_a_pooler_nothing_is_prepared_and_the_stamp_is_the_same(
    settings: Settings, held: Operation
) -> None:
    prepared = operation_stamp(person(), held.pk)
    settings.ROMULUS_PREPARE = False
    assert operation_stamp(person(), held.pk).rows == prepared.rows != ""


def address_of(operation: Operation, page: str) -> str:
    return url_of(operation) if page == "operation" else reverse("run", args=[operation.run_id])
