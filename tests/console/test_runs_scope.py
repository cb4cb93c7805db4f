"""The runs list and the runs that others started: not beside them, unless that is asked for."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from guardian.shortcuts import assign_perm

from tests.factories import many_runs, person, stranger, tenant
from tests.flows import batch, driven
from workflows.models import Run, Tenant
from workflows.pages import RunList
from workflows.services.clock import database_now
from workflows.services.stopping import pause_all, pause_run

pytestmark = pytest.mark.django_db

RUNS = "/runs/"


@pytest.fixture(autouse=True)
def viewing(client: Client) -> None:
    user = person("viewer_1")
    assign_perm("workflows.view_tenant", user, tenant())
    client.force_login(user)


def page_at(client: Client, url: str = RUNS) -> RunList:
    answer = client.get(url)
    assert answer.status_code == HTTPStatus.OK
    page: RunList = answer.context["page"]
    return page


def counts(page: RunList) -> dict[str, int]:
    """The counts that are shown, those of nothing left out."""
    return {each.text: each.count for each in page.filters if each.count}


def listed(page: RunList) -> dict[str, int]:
    """How many unfinished rows are listed, by state."""
    found: dict[str, int] = {}
    for row in page.rows:
        if row.ended_at is None:
            found[row.state.capitalize()] = found.get(row.state.capitalize(), 0) + 1
    return found


def test_runs_that_others_started_are_not_listed_beside_them(client: Client) -> None:
    run = driven(batch, does="chss")
    many_runs(1, "held")
    page = page_at(client)
    assert len(page.rows) == 2
    assert run.pk in {row.id for row in page.rows}
    assert counts(page) == listed(page) == {"Waiting": 1, "Held": 1}
    assert [each.text for each in page.scope if each.current] == ["Without their children"]


def test_with_them_they_are_listed_counted_and_lead_to_their_parent(client: Client) -> None:
    run = driven(batch, does="chss")
    page = page_at(client, f"{RUNS}?children=with")
    assert len(page.rows) == 5
    assert counts(page) == listed(page) == {"Waiting": 3, "Held": 1}
    row = next(row for row in page.rows if row.state == "held")
    assert (row.parent, row.parent_url) == (
        "collect, number 2",
        reverse("run", args=[run.pk]),
    )
    assert [each.text for each in page.scope if each.current] == ["With their children"]
    assert page.url == f"{RUNS}?children=with"


def test_a_state_keeps_the_choice_and_so_does_a_page(client: Client) -> None:
    driven(batch, does="h" * 60)
    page = page_at(client, f"{RUNS}?children=with&state=held")
    assert len(page.rows) == 50
    assert {row.state for row in page.rows} == {"held"}
    assert {"children=with" in each.url for each in page.filters} == {True}
    older = page_at(client, page.pager.older)
    assert len(older.rows) == 10
    assert all("state=held" in each.url for each in older.scope)
    assert page_at(client, f"{RUNS}?state=held").rows == ()


def test_the_runs_of_one_parent_are_a_list_of_their_own(client: Client) -> None:
    run = driven(batch, key="batch 7", does="chss")
    many_runs(3, "held")
    page = page_at(client, f"{RUNS}?parent={run.pk}")
    assert {row.parent for row in page.rows} == {f"collect, number {n}" for n in range(1, 5)}
    assert counts(page) == listed(page) == {"Waiting": 2, "Held": 1}
    assert page.parent is not None
    assert (page.parent.text, page.scope) == ("Tests: batch, batch 7", ())
    assert "Runs that" in client.get(f"{RUNS}?parent={run.pk}").content.decode()
    held = page_at(client, f"{RUNS}?parent={run.pk}&state=held")
    assert [row.state for row in held.rows] == ["held"]


@pytest.mark.parametrize("parent", ["nonsense", "00000000-0000-7000-8000-000000000000"])
def test_a_parent_that_is_none_shows_every_run(client: Client, parent: str) -> None:
    many_runs(1, "held")
    page = page_at(client, f"{RUNS}?parent={parent}")
    assert (len(page.rows), page.parent) == (1, None)


def test_another_tenant_s_parent_is_as_one_that_is_not_there(client: Client) -> None:
    elsewhere = Tenant.objects.create(slug="south", name="South")
    (theirs,) = many_runs(1, "waiting", tenant=elsewhere)
    many_runs(2, "held", tenant=elsewhere, parent=theirs)
    page = page_at(client, f"{RUNS}?parent={theirs.pk}&children=with")
    assert (page.rows, page.parent) == ((), None)
    sees_nothing = Client()
    sees_nothing.force_login(stranger())
    assert page_at(sees_nothing, f"{RUNS}?children=with").rows == ()


def test_what_somebody_wished_stands_beside_the_state(client: Client) -> None:
    (paused,) = many_runs(1, "ready")
    pause_run(paused.pk, by="user:3 ada")
    many_runs(1, "held", cancel_asked_at=database_now(), cancel_asked_by="command:ops")
    many_runs(1, "cancelled", cancel_asked_at=database_now(), cancel_asked_by="command:ops")
    marks = [[mark.text for mark in row.marks] for row in page_at(client).rows]
    assert marks == [[], ["Cancel asked by ops at the terminal"], ["Paused by ada"]]
    text = client.get(RUNS).content.decode()
    assert "Paused by ada" in text
    assert "Cancel asked by ops at the terminal" in text


def test_a_pause_that_keeps_what_is_listed_is_a_banner(client: Client) -> None:
    many_runs(1, "ready")
    many_runs(1, "completed", workflow="ticket_triage")
    pause_all(by="user:3 ada", reason="New rules.", workflow="refund")
    pause_all(by="user:3 ada", reason="Over.", workflow="ticket_triage")
    pause_all(by="user:3 ada", reason="Nobody's.", workflow="other")
    (pause,) = page_at(client).pauses
    assert (pause.what, pause.by, pause.reason) == ("Workflow refund", "ada", "New rules.")
    assert "Workflow refund is paused," in client.get(RUNS).content.decode()
    # Not where a filter shows none of its runs.
    assert page_at(client, f"{RUNS}?state=completed").pauses == ()


def test_its_queries_do_not_grow_with_the_runs_that_others_started(client: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page_at(client, f"{RUNS}?children=with")
        return len(captured)

    def add(number: int) -> Any:
        for _ in range(number):
            driven(batch, does="chsssss")
            for run in many_runs(1, "ready"):
                pause_run(run.pk, by="ada")
            many_runs(1, "held", cancel_asked_at=database_now(), cancel_asked_by="ada")

    add(1)
    queries()
    one = queries()
    add(3)
    assert queries() == one <= 25
    assert Run.objects.count() > 35
