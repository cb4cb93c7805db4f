"""The polls that say how many cases there are: told of whatever becomes of a case, by one look."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from html import unescape
from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client
from guardian.shortcuts import remove_perm

from reconciliation.core.facts import Dispatch
from reconciliation.models import Hold, Operation, Provider
from reconciliation.services.assigning import claim
from reconciliation.services.dispatch import set_dispatch
from reconciliation.services.holds import open_hold
from reconciliation.services.snoozing import snooze
from tests.console.polling import is_told
from tests.console.posting import HTMX, fragment
from tests.deciding import ABANDON, KEEP_HOLDING, decide
from tests.destination import RunningDestination
from tests.factories import (
    administrator,
    held_operation,
    many_runs,
    open_hold_of,
    person,
    ready_provider,
)
from tests.statements import statements
from workflows.models import Tenant
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

Change = Callable[[Hold], object]
URL = re.compile(r'id="needs-you"\s+hx-get="([^"]+)"')


@pytest.fixture
def held(client: Client, destination: RunningDestination) -> Operation:
    """A comment whose answer was lost; `client` is signed in as the owner of its queue."""
    ready_provider("desk", destination.url)
    client.force_login(person())
    return held_operation(destination)


@pytest.fixture
def hold(held: Operation) -> Hold:
    return open_hold_of(held)


def hold_another(hold: Hold) -> None:
    (run,) = many_runs(1, "held")
    open_hold(run.pk, None, hold.queue, "step_failed", "It failed.")


def own_and_wake(hold: Hold) -> None:
    at = database_now() - timedelta(seconds=1)
    Hold.objects.filter(pk=hold.pk).update(assignee=person(), snoozed_until=at)


def set_moment(name: str, later: timedelta, hold: Hold) -> None:
    Hold.objects.filter(pk=hold.pk).update(**{name: database_now() + later})


BY_PEOPLE: dict[str, Change] = {
    "another case": hold_another,
    "whose it is": lambda hold: claim(hold.pk, person()),
    "a snooze": lambda hold: snooze(hold.pk, person(), database_now() + timedelta(hours=1)),
    "a decision": lambda hold: decide(hold, KEEP_HOLDING),
    "its end": lambda hold: decide(hold, ABANDON),
    "a right": lambda _: remove_perm("workflows.view_tenant", person(), Tenant.objects.get()),
}
BY_TIME: dict[str, Change] = {
    "past due": partial(set_moment, "due_at", -timedelta(seconds=1)),
    "a window that closes": partial(set_moment, "window_ends_at", timedelta(minutes=59)),
    "a window that is over": partial(set_moment, "window_ends_at", -timedelta(seconds=1)),
    "a snooze that is over": own_and_wake,
}
ON_OVERVIEW: dict[str, Change] = {
    "a switch": lambda _: set_dispatch(
        Provider.objects.get(), Dispatch.PAUSED, administrator(), "They asked us to."
    ),
    "an outcome that is not known yet": lambda _: Operation.objects.update(state="unknown"),
}


@pytest.mark.parametrize("part", ["needs-you", "overview"])
def test_whatever_becomes_of_a_case_is_told_and_nothing_else(
    client: Client, hold: Hold, part: str
) -> None:
    changes = BY_PEOPLE | BY_TIME | (ON_OVERVIEW if part == "overview" else {})
    polled = polls_at(client) if part == "needs-you" else client.get("/").context["page"].url
    untold = {
        name
        for name, change in changes.items()
        if not is_told(client, polled, part, partial(change, hold))
    }
    assert untold == set()
    assert fragment(client, polled, part).status_code == HTTPStatus.NO_CONTENT


def polls_at(client: Client, url: str = "/runs/") -> str:
    """How the count beside a page polls."""
    return unescape(URL.findall(client.get(url).content.decode())[0])


def test_while_nothing_is_new_the_count_is_not_made(client: Client, hold: Hold) -> None:
    polled = polls_at(client)
    long_ago = re.sub("since=.*", "since=2026-01-01T00:00:00Z", polled)
    for url in (polled, long_ago):
        with statements() as sent:
            assert fragment(client, url, "needs-you").status_code == HTTPStatus.NO_CONTENT
        # Session, person, rights, and whether anything is new.
        assert len(sent) == 4
    assert "count(*)" not in sent[-1]


# --- what is brought up to date -----------------------------------------------------------------


def asked_from(client: Client, page: str, polled: str) -> str:
    headers = HTMX | {"HX-Target": "needs-you", "HX-Current-URL": f"http://testserver{page}"}
    answer = client.get(polled, headers=headers)
    assert answer.status_code == HTTPStatus.OK
    return answer.content.decode()


def test_the_side_bar_follows_on_every_page(client: Client, hold: Hold) -> None:
    polled = polls_at(client)
    claim(hold.pk, person())
    text = asked_from(client, "/runs/", polled)
    assert '<span class="n" id="count-mine" hx-swap-oob="true">1</span>' in text
    assert "queue-head" not in text


def test_on_the_queue_its_head_and_the_counts_of_its_views_follow(
    client: Client, hold: Hold
) -> None:
    page = "/review/?view=unassigned"
    polled = polls_at(client, page)
    before = client.get(page).content.decode()
    claim(hold.pk, person())
    text = asked_from(client, page, polled)
    assert "1 case waits for a person." in text
    counts = dict(re.findall(r'id="way-(\w+)-count" hx-swap-oob="true">([^<]+)<', text))
    assert (counts["view_unassigned"], counts["tab_mine"]) == ("0", "1")
    # Each has its place on the page already.
    for part in re.findall(r'id="([^"]+)"', text):
        assert f'id="{part}"' in before


def test_what_is_not_said_yet_is_said_when_the_minute_is_over(client: Client, hold: Hold) -> None:
    before = polls_at(client)
    hold_another(hold)
    soon = client.get(before, headers=HTMX)
    assert "HX-Trigger" not in soon
    again = unescape(URL.findall(soon.content.decode())[0])
    a_minute_later = re.sub("since=.*", f"since={a_minute_ago()}", again)
    assert "2 new cases are yours." in client.get(a_minute_later, headers=HTMX)["HX-Trigger"]


def a_minute_ago() -> Any:
    return (database_now() - timedelta(seconds=61)).isoformat().replace("+", "%2B")
