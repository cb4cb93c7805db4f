"""The poll of the runs list brings the rows that changed, and nothing of the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client
from guardian.shortcuts import assign_perm

from tests.console.posting import fragment
from tests.factories import many_runs, person, tenant
from workflows.models import Pause, Run

pytestmark = pytest.mark.django_db

RUNS, HELD = "/runs/", "/runs/?state=held"
CHANGED = re.compile(r'id="row-(\w+)"\s+hx-swap-oob="true"')
GONE = re.compile(r'id="row-(\w+)" hx-swap-oob="delete"')
NEW = re.compile(
    r'hx-swap-oob="(?:beforebegin:#row-)?([\w:#-]+)">\s*<tr role="row"\s+data-row\s+id="row-(\w+)"'
)


@pytest.fixture
def viewer(client: Client) -> Client:
    assign_perm("workflows.view_tenant", person(), tenant())
    client.force_login(person())
    return client


def polled(viewer: Client, url: str) -> str:
    seen = viewer.get(url).context["seen"]
    return f"{url}{'&' if '?' in url else '?'}seen={seen}"


def changed(viewer: Client, url: str) -> Any:
    answer = fragment(viewer, url, "runs-poll")
    assert answer.status_code == HTTPStatus.OK
    assert "HX-Retarget" not in answer
    return answer


def key(run: Run) -> str:
    return run.pk.hex[-12:]


def test_a_row_that_changed_comes_alone_and_with_it_what_is_counted(viewer: Client) -> None:
    _, changes, _ = many_runs(3, "held")
    url = polled(viewer, RUNS)
    Run.objects.filter(pk=changes.pk).update(state="waiting")
    text = changed(viewer, url).content.decode()
    assert CHANGED.findall(text) == [key(changes)]
    assert text.count("<tr") == 1
    counts = re.findall(r'id="filter-\d+-count"\s+hx-swap-oob="true">(\d+)<', text)
    assert sorted(counts) == ["0", "0", "1", "2"]


def test_what_the_answer_asks_next_is_told_nothing_more(viewer: Client) -> None:
    many_runs(2, "completed")
    url = polled(viewer, RUNS)
    many_runs(1, "completed")
    again = f"{RUNS}?seen={changed(viewer, url).context['seen']}"
    assert fragment(viewer, again, "runs-poll").status_code == HTTPStatus.NO_CONTENT


def test_new_rows_come_to_their_places_and_others_leave(viewer: Client) -> None:
    oldest, *between, newest = many_runs(5, "held")
    Run.objects.filter(pk__in=[oldest.pk, between[1].pk]).update(state="waiting")
    url = polled(viewer, HELD)
    Run.objects.update(state="held")
    Run.objects.filter(pk=newest.pk).update(state="waiting")
    (first,) = many_runs(1, "held")
    text = changed(viewer, url).content.decode()
    assert GONE.findall(text) == [key(newest)]
    assert CHANGED.findall(text) == []
    assert NEW.findall(text) == [
        (key(between[2]), key(first)),
        (key(between[0]), key(between[1])),
        ("beforeend:#run-rows", key(oldest)),
    ]


def test_rows_that_others_push_off_the_page_leave_it(viewer: Client) -> None:
    runs = many_runs(50, "completed")
    url = polled(viewer, RUNS)
    many_runs(2, "completed")
    # Only now there is an older page: the list is made anew, with the way there.
    whole = fragment(viewer, url, "runs-poll")
    assert whole["HX-Retarget"] == "#runs"
    many_runs(1, "completed")
    text = changed(viewer, f"{RUNS}?seen={whole.context['seen']}").content.decode()
    assert GONE.findall(text) == [key(runs[2])]
    assert 'id="runs-pager" hx-swap-oob="true"' in text


ELSE: dict[str, Callable[[], object]] = {
    "a pause": lambda: Pause.objects.create(workflow="refund", by="system", reason="-"),
    "all rows": lambda: Run.objects.all().delete() and many_runs(1, "ready"),
}


@pytest.mark.parametrize("change", ELSE.values(), ids=list(ELSE))
def test_where_more_has_changed_the_list_comes_whole(
    viewer: Client, change: Callable[[], object]
) -> None:
    many_runs(2, "ready")
    url = polled(viewer, RUNS)
    change()
    answer = fragment(viewer, url, "runs-poll")
    assert (answer["HX-Retarget"], answer["HX-Reswap"]) == ("#runs", "outerHTML")
    assert 'id="runs"' in answer.content.decode()


@pytest.mark.parametrize("shown", ["", "x", "-", "--", "a-b-c", "0" * 5000])
def test_what_nobody_was_shown_brings_the_whole_list(viewer: Client, shown: str) -> None:
    many_runs(1, "ready")
    seen = viewer.get(RUNS).context["seen"].rpartition(".")[0]
    assert "HX-Retarget" in fragment(viewer, f"{RUNS}?seen={seen}.{shown}", "runs-poll")
