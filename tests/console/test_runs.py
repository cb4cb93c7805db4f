"""The runs list: who is where and why, newest first, and only what may be seen."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import escape
from guardian.shortcuts import assign_perm

from tests.console.posting import fragment
from tests.factories import many_runs, person, stranger, tenant
from workflows.models import Run, Tenant, Worker
from workflows.models.ids import new_id
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

RUNS = "/runs/"


@pytest.fixture
def viewer(client: Client) -> Client:
    user = person("viewer_1")
    assign_perm("workflows.view_tenant", user, tenant())
    client.force_login(user)
    return client


def page_at(client: Client, url: str = RUNS) -> Any:
    answer = client.get(url)
    assert answer.status_code == HTTPStatus.OK
    return answer.context["page"]


def test_the_newest_run_comes_first_with_where_it_is_and_why(viewer: Client) -> None:
    many_runs(1, "completed", step="tell_customer")
    failure = {"reason": "unguarded", "message": "It was sent and no usable answer came."}
    many_runs(1, "held", failure=failure, start_key="ORD-7001")
    held, completed = page_at(viewer).rows
    assert (held.state, held.step, held.number, held.steps) == ("held", "create_refund", 2, 3)
    assert held.sentence == f"It is held at step 2 of 3, create_refund. {failure['message']}"
    assert (held.label, completed.label) == ("ORD-7001", "")
    assert completed.sentence == "Every step is committed."


def test_a_run_whose_worker_went_quiet_says_so_beside_its_state(viewer: Client) -> None:
    long_ago = database_now() - timedelta(minutes=1)
    many_runs(1, "running", lease_owner=new_id(), lease_expires_at=long_ago)
    (row,) = page_at(viewer).rows
    assert [mark.text for mark in row.marks] == ["Lease ran out"]
    Run.objects.update(lease_expires_at=database_now() + timedelta(minutes=1))
    (row,) = page_at(viewer).rows
    assert row.marks == ()


def test_a_queued_run_tells_how_many_are_ahead_of_it(viewer: Client) -> None:
    Worker.objects.create(host="host", pid=1, workflows=[["refund", 1]])
    for _ in range(3):
        many_runs(1, "ready")
    sentences = [row.sentence for row in page_at(viewer).rows]
    assert [text.rpartition("; ")[2] for text in sentences] == [
        "2 runs are ahead of it.",
        "1 run is ahead of it.",
        "it is the next.",
    ]


def test_a_state_can_be_chosen_and_only_unfinished_ones_are_counted(viewer: Client) -> None:
    many_runs(2, "held")
    many_runs(3, "completed")
    page = page_at(viewer, f"{RUNS}?state=held")
    assert [row.state for row in page.rows] == ["held", "held"]
    counts = {each.text: each.count for each in page.filters}
    assert (counts["Held"], counts["Ready"], counts["Completed"], counts["All"]) == (
        2,
        0,
        None,
        None,
    )
    assert [each.text for each in page.filters if each.current] == ["Held"]
    assert page.url == f"{RUNS}?state=held"


def test_an_empty_list_says_whether_a_filter_hides_the_rest(viewer: Client) -> None:
    assert "No runs yet" in viewer.get(RUNS).content.decode()
    many_runs(1, "held")
    assert "No runs in this state" in viewer.get(f"{RUNS}?state=failed").content.decode()
    assert len(page_at(viewer, f"{RUNS}?state=nonsense").rows) == 1


def test_runs_of_other_tenants_are_in_no_list_and_no_count(viewer: Client) -> None:
    many_runs(1)
    many_runs(1, tenant=Tenant.objects.create(slug="elsewhere", name="Elsewhere"))
    page = page_at(viewer)
    assert len(page.rows) == 1
    assert {each.count for each in page.filters if each.text == "Held"} == {1}
    knows_nothing = Client()
    knows_nothing.force_login(stranger())
    assert page_at(knows_nothing).rows == ()


def test_htmx_gets_the_list_alone(viewer: Client) -> None:
    many_runs(1)
    text = fragment(viewer, RUNS, "runs").content.decode()
    assert "<html" not in text
    assert 'id="runs"' in text


def test_only_the_newest_page_and_moving_runs_are_polled(viewer: Client) -> None:
    many_runs(60, "completed")
    newest = page_at(viewer)
    assert newest.moving
    assert not page_at(viewer, newest.pager.older).moving


def test_markup_in_keys_and_errors_is_shown_as_text(viewer: Client) -> None:
    markup = "<img src=x onerror=alert(1)>"
    many_runs(1, start_key=markup, failure={"reason": "x", "message": markup})
    text = viewer.get(RUNS).content.decode()
    assert markup not in text
    assert text.count(escape(markup)) == 2


def test_its_queries_do_not_grow_with_its_rows(viewer: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page_at(viewer)
        return len(captured)

    def add(number: int) -> None:
        Worker.objects.create(host="host", pid=number, workflows=[])
        many_runs(number, "ready")
        many_runs(number, "held", failure={"reason": "conflict", "message": "…"})

    add(1)
    queries()
    one = queries()
    add(25)
    assert queries() == one <= 20


def test_pages_follow_each_other_by_key_and_lose_nothing(viewer: Client) -> None:
    many_runs(120)
    pages = [page_at(viewer)]
    while pages[-1].pager.older:
        pages.append(page_at(viewer, pages[-1].pager.older))
    assert [len(page.rows) for page in pages] == [50, 50, 20]
    shown = [row.id for page in pages for row in page.rows]
    assert shown == list(Run.objects.order_by("-pk").values_list("pk", flat=True))
    back = page_at(viewer, pages[2].pager.newer)
    assert [row.id for row in back.rows] == [row.id for row in pages[1].rows]
    first = page_at(viewer, back.pager.newer)
    assert [row.id for row in first.rows] == [row.id for row in pages[0].rows]
    assert (pages[0].pager.newer, pages[2].pager.older) == ("", "")


def test_a_page_keeps_the_filter(viewer: Client) -> None:
    many_runs(60, "held")
    many_runs(60, "completed")
    older = page_at(viewer, f"{RUNS}?state=held").pager.older
    assert {row.state for row in page_at(viewer, older).rows} == {"held"}


@pytest.mark.parametrize("place", ["nonsense", "", "0"])
def test_a_place_that_is_none_shows_the_beginning(viewer: Client, place: str) -> None:
    many_runs(1)
    assert len(page_at(viewer, f"{RUNS}?before={place}").rows) == 1
    assert len(page_at(viewer, f"{RUNS}?after={place}").rows) == 1


def test_past_the_end_there_is_a_way_back(viewer: Client) -> None:
    many_runs(1)
    first = Run.objects.get()
    page = page_at(viewer, f"{RUNS}?before={first.pk}")
    assert page.rows == ()
    assert page.pager.newer == RUNS


def test_only_reading_is_possible(viewer: Client) -> None:
    assert viewer.head(RUNS).status_code == HTTPStatus.OK
    assert viewer.post(RUNS).status_code == HTTPStatus.METHOD_NOT_ALLOWED
    viewer.logout()
    assert viewer.get(RUNS)["Location"] == f"{reverse('login')}?next={RUNS}"


def test_a_poll_gets_nothing_while_nothing_is_new(viewer: Client) -> None:
    many_runs(1, "completed")
    url = f"{RUNS}?seen={viewer.get(RUNS).context['seen']}"
    assert fragment(viewer, url, "runs-poll").status_code == HTTPStatus.NO_CONTENT
    many_runs(1, "completed")
    answer = fragment(viewer, url, "runs-poll")
    assert answer.status_code == HTTPStatus.OK
    assert f'hx-get="{RUNS}?seen={answer.context["seen"]}"' in answer.content.decode()
