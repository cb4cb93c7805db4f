"""The page of the audit record: who did what, and only about what may be seen."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape
from guardian.shortcuts import assign_perm

from reconciliation.selectors.audit_page import STRETCH
from reconciliation.services.audit import add_entry
from tests.factories import administrator, many_runs, person, stranger, tenant
from workflows.models import Run
from workflows.selectors.paging import PAGE_ROWS

pytestmark = pytest.mark.django_db

URL = "/audit/"


@pytest.fixture
def viewer(client: Client) -> Client:
    user = person("viewer_1")
    assign_perm("workflows.view_tenant", user, tenant())
    client.force_login(user)
    return client


def cancelled(run: Run, **detail: Any) -> None:
    add_entry("user:3 ada", "run cancelled", f"run:{run.pk}", {"reason": "Sent back."} | detail)


def page_at(client: Client, url: str = URL) -> Any:
    answer = client.get(url)
    assert answer.status_code == HTTPStatus.OK
    return answer.context["page"]


def test_an_entry_says_who_did_what_to_which_run_and_why(viewer: Client) -> None:
    (run,) = many_runs(1, "cancelled", start_key="ORD-7001")
    cancelled(run, before="held")
    (row,) = page_at(viewer).rows
    assert (row.actor, row.verb, row.reason) == ("ada", "run cancelled", "Sent back.")
    assert (row.object, row.object_url) == ("Run Refund, ORD-7001", f"/runs/{run.pk}/")
    assert [(fact.term, fact.text) for fact in row.facts] == [("before", "held")]


def test_what_may_not_be_seen_is_not_on_it(viewer: Client) -> None:
    (mine,) = many_runs(1, "cancelled")
    (other,) = many_runs(1, "cancelled")
    Run.objects.filter(pk=other.pk).update(tenant=tenant("southbay"))
    cancelled(mine)
    cancelled(other)
    add_entry("user:1 admin_1", "set up", "provider:payments", {})
    assert [row.object_url for row in page_at(viewer).rows] == [f"/runs/{mine.pk}/"]
    assert page_at(viewer, f"{URL}?object=run:{other.pk}").rows == ()
    assert page_at(viewer, f"{URL}?actor=user:1 admin_1").rows == ()


def test_an_administrator_sees_set_up_as_well(client: Client) -> None:
    client.force_login(administrator())
    add_entry("user:1 admin_1", "set up", "provider:payments", {"fields": ["name"]})
    (row,) = page_at(client).rows
    assert (row.object, row.object_url) == ("provider:payments", "")


def test_who_may_see_nothing_sees_no_entry(client: Client) -> None:
    cancelled(many_runs(1, "cancelled")[0])
    client.force_login(stranger())
    assert page_at(client).rows == ()


def test_pages_follow_each_other_and_lose_nothing(viewer: Client) -> None:
    (run,) = many_runs(1, "held")
    numbers = [add_entry("system", "held", f"run:{run.pk}", {}).seq for _ in range(PAGE_ROWS + 3)]
    first = page_at(viewer)
    rest = page_at(viewer, first.pager.older)
    assert [row.number for row in (*first.rows, *rest.rows)] == numbers[::-1]
    assert (rest.pager.older, rest.pager.newer) == ("", URL)


def test_a_long_stretch_of_what_may_not_be_seen_is_passed_over(viewer: Client) -> None:
    (run,) = many_runs(1, "held")
    cancelled(run)
    for _ in range(STRETCH):
        add_entry("system", "set up", "provider:payments", {})
    first = page_at(viewer)
    assert first.rows == ()
    assert [row.verb for row in page_at(viewer, first.pager.older).rows] == ["run cancelled"]


def test_markup_on_the_record_is_shown_as_text(viewer: Client) -> None:
    marker = "<img src=x onerror=alert(1)>"
    (run,) = many_runs(1, "held", start_key=marker)
    add_entry(marker, "noted", f"run:{run.pk}", {"reason": marker, marker: marker})
    text = viewer.get(URL).content.decode()
    assert marker not in text
    assert escape(marker) in text


def test_its_queries_do_not_grow_with_entries(viewer: Client) -> None:
    (run,) = many_runs(1, "held")
    cancelled(run)
    with CaptureQueriesContext(connection) as few:
        page_at(viewer)
    for each in many_runs(40, "held"):
        cancelled(each)
    with CaptureQueriesContext(connection) as many:
        page_at(viewer)
    assert len(many) == len(few) <= 12


def test_nonsense_in_the_address_is_no_error(viewer: Client) -> None:
    for query in ("before=x", "before=" + "9" * 40, "object=%00", "actor=%00"):
        assert page_at(viewer, f"{URL}?{query}").rows == ()
