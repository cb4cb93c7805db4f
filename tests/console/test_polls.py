"""A poll answers 204 only while nothing that its page shows has changed, and asks little for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse

from reconciliation.core.states import HoldState
from reconciliation.models import (
    DispatchStop,
    Evidence,
    Hold,
    Operation,
    Provider,
    ReviewQueue,
    Shift,
    Transmission,
)
from reconciliation.selectors.operation_stamp import STAMP as OF_OPERATION
from reconciliation.selectors.run_parts import ROWS as OF_PARTS
from reconciliation.services.audit import add_entry
from tests.console.posting import fragment, url_of
from tests.deciding import KEEP_HOLDING, decide
from tests.destination import RunningDestination
from tests.factories import held_operation, open_hold_of, owner_of, person, ready_provider
from tests.statements import statements
from workflows.models import Attempt, Pause, Run, Tenant, Wait
from workflows.rights import KEPT_AS
from workflows.selectors.run_stamp import ROWS as OF_RUN
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

# Session, person, and the stamp.
STATEMENTS = 3
TABLE = re.compile(r"\b((?:reconciliation|workflows|auth|guardian)_[a-z]+)\b")
# What a page reads, and its stamp need not.
NEVER_CHANGED = {"reconciliation_contractversion", "auth_permission"}
BY_NAME_ALONE = {"workflows_worker"}  # a worker keeps its own; of a held run it says nothing else
OWN = {"reconciliation_profile", "reconciliation_decisiondraft"}  # not in what is polled
NOT_POLLED = NEVER_CHANGED | BY_NAME_ALONE | OWN


@pytest.fixture
def held(client: Client, destination: RunningDestination) -> Operation:
    """A comment whose answer was lost, some time ago; `client` is signed in as its owner."""
    ready_provider("desk", destination.url)
    client.force_login(person())
    operation = held_operation(destination)
    Transmission.objects.update(in_flight_until=Now())
    return operation


def stop(operation: Operation) -> None:
    DispatchStop.objects.create(provider=operation.provider, state="off", by="system", reason="-")


def be_on_call(_: Operation) -> None:
    tomorrow = database_now() + timedelta(days=1)
    queue = ReviewQueue.objects.get()
    Shift.objects.create(queue=queue, person=person(), starts_at=database_now(), ends_at=tomorrow)


def lose_a_right(_: Operation) -> None:
    from guardian.shortcuts import remove_perm

    remove_perm("workflows.view_payloads", person(), Tenant.objects.get())


def join_a_group(_: Operation) -> None:
    from django.contrib.auth.models import Group

    person().groups.add(Group.objects.create(name="a team"))


ON_BOTH: dict[str, Callable[[Operation], object]] = {
    "evidence": lambda held: Evidence.objects.create(
        operation=held, kind="unavailable", source="look-up"
    ),
    "a send": lambda held: Transmission.objects.filter(operation=held).update(status=504),
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
    "its tenant": lambda _: Tenant.objects.update(name="Another"),
    "its run": lambda _: Run.objects.update(labels={"order": "another"}),
    "that it closes": lambda _: Hold.objects.update(state=HoldState.CLOSED, closed_at=Now()),
}


@pytest.mark.parametrize("change", ON_BOTH.values(), ids=ON_BOTH.keys())
@pytest.mark.parametrize("page", ["operation", "run"])
def test_whatever_changes_is_told(
    client: Client, held: Operation, page: str, change: Callable[[Operation], object]
) -> None:
    assert_told(client, address_of(held, page), lambda: change(held))


def test_that_the_provider_was_asked_is_told(client: Client, held: Operation) -> None:
    def ask() -> None:
        add_entry("user:1 ada", "asked", f"operation:{held.pk}", {})

    assert_told(client, url_of(held), ask)


ON_RUN: dict[str, Callable[[Run], object]] = {
    "an attempt": lambda run: Attempt.objects.filter(run=run).update(error="another"),
    "a wait": lambda run: Wait.objects.create(
        run=run, step="later", visit=1, tenant=run.tenant, event_types=["x"], correlation="c"
    ),
    "a pause": lambda run: Pause.objects.create(workflow=run.workflow, by="system", reason="-"),
    "its end being asked for": lambda run: Run.objects.filter(pk=run.pk).update(
        cancel_asked_at=Now(), cancel_asked_by="system"
    ),
}


@pytest.mark.parametrize("change", ON_RUN.values(), ids=ON_RUN.keys())
def test_whatever_changes_of_a_run_is_told(
    client: Client, held: Operation, change: Callable[[Run], object]
) -> None:
    assert_told(client, address_of(held, "run"), lambda: change(held.run))


def assert_told(client: Client, url: str, change: Callable[[], object]) -> None:
    polled = f"{url}?seen={client.get(url).context['page'].seen}"
    with statements() as sent:
        assert fragment(client, polled, "live").status_code == HTTPStatus.NO_CONTENT
    assert len(sent) == STATEMENTS, sent
    change()
    person().__dict__.pop(KEPT_AS, None)
    assert fragment(client, polled, "live").status_code == HTTPStatus.OK


@pytest.mark.parametrize("page", ["operation", "run"])
def test_what_time_alone_changes_is_told(client: Client, held: Operation, page: str) -> None:
    soon = database_now() + timedelta(minutes=3)
    Hold.objects.update(due_at=soon)
    Run.objects.update(wake_at=soon)
    url = address_of(held, page)
    rows, until, shown = client.get(url).context["page"].seen.split(".")
    assert int(until) == int(soon.timestamp())
    past = int(database_now().timestamp())
    told = fragment(client, f"{url}?seen={rows}.{past}.{shown}", "live")
    assert told.status_code == HTTPStatus.OK
    # Nothing that a decision rests on has changed by it, and nobody is told so.
    assert "has changed since you opened this form" not in told.content.decode()


@pytest.mark.parametrize("seen", ["", "x", "..", "a.b.c", f"a.{'9' * 400}.c"])
@pytest.mark.parametrize("page", ["operation", "run"])
def test_what_was_never_seen_is_told(client: Client, held: Operation, page: str, seen: str) -> None:
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


def address_of(operation: Operation, page: str) -> str:
    return url_of(operation) if page == "operation" else reverse("run", args=[operation.run_id])
