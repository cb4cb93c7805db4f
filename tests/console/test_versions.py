"""The page of versions: who still runs which, who has it, what would move, and what not and why."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from guardian.shortcuts import assign_perm

from tests.factories import advanced, many_runs, person, stranger, tenant
from tests.migrating import first_run
from tests.versions import NAME, first_version, process_with, second_version
from workflows.core.standing import Moves
from workflows.models import Run, Tenant, Worker
from workflows.selectors.versions import LOOKED_AT
from workflows.services.migrations import migrate_run

pytestmark = pytest.mark.django_db

URL = "/versions/"


@pytest.fixture
def viewer(client: Client) -> Client:
    user = person("viewer_1")
    assign_perm("workflows.view_tenant", user, tenant())
    client.force_login(user)
    return client


@pytest.fixture(autouse=True)
def both_versions() -> Iterator[None]:
    """The console's process has both versions; a run's own values would be its functions' end."""
    later = second_version(outputs={"load": lambda _: 1 / 0}, input=lambda _: 1 / 0)
    with process_with(first_version(), later):
        yield


def runs_at(step: str, number: int = 1, state: str = "ready", **fields: Any) -> list[Run]:
    return many_runs(number, state, **({"workflow": NAME, "step": step} | fields))


def worker(*versions: int, pid: int = 1) -> Worker:
    return Worker.objects.create(
        host="host", pid=pid, workflows=[[NAME, version] for version in versions]
    )


def page_at(client: Client) -> Any:
    answer = client.get(URL)
    assert answer.status_code == HTTPStatus.OK
    return answer.context["page"]


def text_at(client: Client) -> str:
    return " ".join(client.get(URL).content.decode().split())


def test_each_version_tells_its_unfinished_runs_and_who_has_it(viewer: Client) -> None:
    runs_at("pay", 2)
    runs_at("settled", state="held")
    runs_at("tell", 5, state="completed")
    runs_at("refund", state="ready", version=2)
    for pid in range(1, 7):
        worker(2, pid=pid)
    worker(1, 2, pid=9)
    latest, earlier = page_at(viewer).versions
    assert (latest.version, latest.place, latest.runs) == (2, "latest", 1)
    assert (latest.workers[0], len(latest.workers), latest.more_workers) == ("host/1", 4, 3)
    assert (earlier.version, earlier.place, earlier.workers) == (1, "earlier", ("host/9",))
    assert [(each.state, each.runs) for each in earlier.states] == [("ready", 2), ("held", 1)]
    assert "Nobody works on" not in text_at(viewer)


def test_what_would_move_and_what_not_and_why(viewer: Client) -> None:
    worker(1)
    first, second = runs_at("settled", 2)
    (held,) = runs_at("pay", state="held", failure={"reason": "step_failed", "message": "No."})
    (gone,) = runs_at("ask_boss")
    (moves,) = page_at(viewer).moves
    assert (moves.name, moves.to_version, moves.earlier) == (NAME, 2, 4)
    assert (moves.looked_at, moves.would_move, moves.would_stay) == (4, 2, 2)
    rows = {(row.version, row.step): row for row in moves.rows}
    assert [row.moves for row in moves.rows] == [False, False, True]
    assert rows[1, "settled"].to_step == "settled"
    assert rows[1, "settled"].examples == (first.pk, second.pk)
    assert (rows[1, "pay"].message, rows[1, "pay"].helps, rows[1, "pay"].examples) == (
        "It is held for a decision at step 'pay', which version 2 calls 'refund'.",
        "Record the decision first; it moves then.",
        (held.pk,),
    )
    assert rows[1, "ask_boss"].examples == (gone.pk,)
    text = text_at(viewer)
    assert "4 unfinished runs are of an earlier version of their workflow" in text
    assert "2 would move to the latest that this console has, and 2 would stay" in text
    assert f"manage.py migrate_runs {NAME} --dry-run" in text
    assert reverse("run", args=[gone.pk]) in text


def test_runs_whose_version_no_live_worker_has_are_said_first(viewer: Client) -> None:
    worker(2)
    runs_at("settled", 3)
    page = page_at(viewer)
    assert [(row.version, row.runs) for row in page.lying] == [(1, 3)]
    assert f"<b>Nobody works on <code>{NAME}</code> version 1 (3 runs).</b>" in text_at(viewer)
    Worker.objects.update(workflows=[[NAME, 1]])
    assert page_at(viewer).lying == []


def test_a_version_that_the_console_does_not_have_is_shown_as_such(viewer: Client) -> None:
    runs_at("work", version=7)
    runs_at("work", workflow="tests.elsewhere")
    with process_with(second_version()):
        runs_at("settled")
        places = {(row.workflow, row.version): row.place for row in page_at(viewer).versions}
    assert places == {
        (NAME, 7): "later",
        (NAME, 2): "latest",
        (NAME, 1): "gone",
        ("tests.elsewhere", 1): "later",
    }


def test_without_runs_of_earlier_versions_nothing_is_needed(viewer: Client) -> None:
    runs_at("refund", version=2)
    page = page_at(viewer)
    assert (page.moves, page.earlier) == ((), 0)
    assert "nothing is needed" in text_at(viewer)


def test_only_tenants_that_may_be_seen_are_counted(viewer: Client) -> None:
    runs_at("settled")
    elsewhere = Tenant.objects.create(slug="elsewhere", name="Elsewhere")
    runs_at("pay", 3, tenant=elsewhere)
    (theirs,) = runs_at("ask_boss", tenant=elsewhere)
    page = page_at(viewer)
    assert page.earlier == page.looked_at == 1
    assert {row.step for moves in page.moves for row in moves.rows} == {"settled"}
    assert {row.version: row.runs for row in page.versions} == {2: 0, 1: 1}
    text = text_at(viewer)
    assert str(theirs.pk) not in text
    assert "ask_boss" not in text

    knows_nothing = Client()
    knows_nothing.force_login(stranger())
    assert page_at(knows_nothing).versions == ()
    assert NAME not in text_at(knows_nothing)


def test_the_oldest_of_each_version_are_looked_at_and_the_rest_is_counted(viewer: Client) -> None:
    runs_at("settled", LOOKED_AT)
    runs_at("ask_boss", 10)
    (moves,) = page_at(viewer).moves
    assert (moves.earlier, moves.looked_at, moves.would_stay) == (LOOKED_AT + 10, LOOKED_AT, 0)
    assert f"{LOOKED_AT} of {LOOKED_AT + 10} runs looked at" in text_at(viewer)


def test_its_queries_do_not_grow_with_its_rows(viewer: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page_at(viewer)
        return len(captured)

    def add(number: int) -> None:
        worker(1, pid=number)
        runs_at("settled", number)
        runs_at("ask_boss", number, state="held")
        parent = runs_at("pay", state="waiting")[0]
        for index in range(number):
            runs_at("load", parent=parent, parent_step="pay", parent_visit=1, parent_index=index)

    add(1)
    queries()
    one = queries()
    add(15)
    assert queries() == one <= 15


def test_markup_in_names_is_shown_as_text(viewer: Client) -> None:
    markup = "<img src=x onerror=alert(1)>"
    runs_at(markup)
    Worker.objects.create(host=markup, pid=1, workflows=[[NAME, 2]])
    assert markup not in viewer.get(URL).content.decode()


def test_the_page_of_a_run_that_has_moved_tells_whence_and_what_went_along(
    viewer: Client,
) -> None:
    with process_with(first_version()):
        run = advanced(first_run())
        assert run.state == "held", "nobody has set up its provider"
    with process_with(second_version(steps={"load": "load_order"})):
        Run.objects.filter(pk=run.pk).update(step="check", state="ready", failure=None)
        assert isinstance(migrate_run(run.pk, 2, by="command:ada").answer, Moves)
        text = viewer.get(reverse("run", args=[run.pk])).content.decode()
    assert "Moved from version 1, step check, to version 2, step check" in text
    assert "ada at the terminal" in text
    assert "load_order was carried over: migrated from version 1, step load" in text
    assert "load_order begun" not in text


def test_the_runs_list_leads_there_and_it_is_for_reading_alone(viewer: Client) -> None:
    assert f'href="{URL}"' in viewer.get("/runs/").content.decode()
    assert 'data-go="r" aria-current="page"' in text_at(viewer)
    assert viewer.head(URL).status_code == HTTPStatus.OK
    assert viewer.post(URL).status_code == HTTPStatus.METHOD_NOT_ALLOWED
    viewer.logout()
    assert viewer.get(URL)["Location"] == f"{reverse('login')}?next={URL}"
