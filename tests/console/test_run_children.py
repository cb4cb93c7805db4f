"""A run that branches, loops, sleeps, or waits for runs that it started: its page, and theirs."""

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

from tests.claiming import claimed, commit, expire_lease, ready_run
from tests.console.posting import fragment
from tests.factories import person, tenant
from tests.flows import batch, begun, drive, driven, looping, parted
from workflows.models import Attempt, Run, Worker
from workflows.pages import GraphStep, RunPage
from workflows.services.claims import record_superseded
from workflows.services.clock import database_now
from workflows.services.outputs import keep_output
from workflows.services.stopping import cancel_run, pause_all, pause_run

pytestmark = pytest.mark.django_db

NOWHERE = "00000000-0000-7000-8000-000000000000"


@pytest.fixture(autouse=True)
def reader(client: Client) -> Client:
    user = person("viewer_1")
    for right in ("view_tenant", "view_payloads"):
        assign_perm(f"workflows.{right}", user, tenant())
    client.force_login(user)
    return client


def url_of(run: Run) -> str:
    return reverse("run", args=[run.pk])


def page_at(client: Client, url: str) -> RunPage:
    answer = client.get(url)
    assert answer.status_code == HTTPStatus.OK
    page: RunPage = answer.context["page"]
    return page


def graph_at(client: Client, run: Run) -> dict[str, GraphStep]:
    return {step.name: step for step in page_at(client, url_of(run)).graph}


def ways(step: GraphStep) -> list[str]:
    """Where it may lead, the way that was taken in capitals."""
    return [way.text.upper() if way.taken else way.text for way in step.ways]


def queries(client: Client, url: str) -> int:
    page_at(client, url)
    with CaptureQueriesContext(connection) as captured:
        page_at(client, url)
    return len(captured)


# --- branches and loops -----------------------------------------------------------------------


def test_the_graph_shows_which_way_was_taken_and_how_often_a_step_was_come_to(
    client: Client,
) -> None:
    graph = graph_at(client, driven(looping, times=3))
    assert [step.place for step in graph.values()] == ["done"] * 5
    assert ways(graph["is_asked"]) == ["ASK", "tell"]
    assert ways(graph["is_enough"]) == ["ask", "TELL", "the end"]
    assert graph["ask"].note == "3 visits, 3 tries"
    assert ways(graph["ask"]) == []


def test_a_way_that_was_not_taken_is_told_from_one_that_may_come(client: Client) -> None:
    run = driven(looping, times=3, rest=3600)
    graph = graph_at(client, run)
    assert {name: step.place for name, step in graph.items()} == {
        "is_asked": "done",
        "ask": "done",
        "rest": "here",
        "is_enough": "todo",
        "tell": "todo",
    }
    assert graph["rest"].note.startswith("sleeps until ")
    cancel_run(run.pk, by="ada")
    graph = graph_at(client, run)
    assert (graph["tell"].place, graph["tell"].note) == ("todo", "never started")
    # A run that has gone to its end by another way has left it aside.
    Run.objects.filter(pk=run.pk).update(state="completed", step="is_enough")
    assert (graph_at(client, run)["tell"].place, graph_at(client, run)["tell"].note) == (
        "off",
        "not taken",
    )


def test_a_sleep_is_a_wait_in_the_timeline_and_visits_are_not(client: Client) -> None:
    page = page_at(client, url_of(driven(looping, times=3, rest=3600)))
    lanes = {row.lane.name: row.lane for row in page.timeline.steps.rows}
    assert [span.title for span in lanes["rest"].spans if span.paint == "wait"] == ["Sleeping"]
    page = page_at(client, url_of(driven(looping, times=3)))
    lanes = {row.lane.name: row.lane for row in page.timeline.steps.rows}
    assert [span.label for span in lanes["ask"].spans] == ["1", "visit 2", "visit 3"]
    assert {span.paint for span in lanes["ask"].spans} == {"good"}


def test_the_outputs_are_those_that_later_steps_read(client: Client) -> None:
    page = page_at(client, url_of(driven(looping, times=3)))
    shown = {output.step: output for output in page.outputs}
    assert len(shown) == len(page.outputs) == 5
    assert (shown["ask"].visit, shown["ask"].facts[0].text) == (3, "3")


# --- parallel groups --------------------------------------------------------------------------


def test_a_parallel_group_is_one_graph_with_the_states_of_its_branches(client: Client) -> None:
    run = driven(parted)
    graph = graph_at(client, run)
    assert list(graph) == ["load", "ship", "close"]
    group = graph["ship"]
    assert (group.place, group.state) == ("here", "waiting")
    places = [[(step.name, step.place) for step in branch.steps] for branch in group.branches]
    assert places == [
        [("pack", "done"), ("label", "done")],
        [("bill", "here"), ("send", "todo")],
        [("wait", "here")],
    ]
    assert [branch.state for branch in group.branches] == ["completed", "held", "waiting"]
    runs = list(run.children.order_by("parent_index"))
    assert [branch.url for branch in group.branches] == [url_of(each) for each in runs]
    assert group.branches[1].steps[0].url == url_of(runs[1])
    text = client.get(url_of(run)).content.decode()
    assert text.count('class="tracks"') == 1
    assert 'aria-label="Branch 3"' in text


def test_branches_that_have_not_begun_are_drawn_all_the_same(client: Client) -> None:
    group = graph_at(client, begun(parted))["ship"]
    assert [len(branch.steps) for branch in group.branches] == [2, 2, 1]
    assert {step.place for branch in group.branches for step in branch.steps} == {"todo"}
    assert {branch.state for branch in group.branches} == {""}


def test_the_branches_hang_on_their_group_in_the_timeline(client: Client) -> None:
    run = driven(parted)
    lanes = [row.lane for row in page_at(client, url_of(run)).timeline.steps.rows]
    assert [lane.name for lane in lanes] == ["load", "ship", "pack, label", "bill", "wait", "close"]
    assert [lane.child for lane in lanes] == [False, False, True, True, True, False]
    assert [lane.state for lane in lanes[2:5]] == ["completed", "held", "waiting"]
    assert [span.label for span in lanes[2].spans] == ["pack", "label"]


def test_a_branch_shows_its_own_steps_and_leads_to_its_parent(client: Client) -> None:
    run = driven(parted, key="ORD-7001")
    branch = Run.objects.get(parent=run, state="held")
    page = page_at(client, url_of(branch))
    assert [step.name for step in page.graph] == ["bill", "send"]
    assert (page.number, page.steps) == (1, 2)
    assert page.parent is not None
    assert (page.parent.url, page.parent.text) == (url_of(run), "Tests: parted, ORD-7001")
    assert page.parent_place == "ship, branch 2"
    assert page.children is None


def test_a_page_with_branches_asks_as_much_whatever_they_have_been_through(client: Client) -> None:
    run = driven(parted)
    first = queries(client, url_of(run))
    for branch in run.children.all():
        tried(branch, 60)
    assert queries(client, url_of(run)) == first <= 40


# --- runs that it started ---------------------------------------------------------------------


def test_runs_that_it_started_are_listed_the_held_ones_first(client: Client) -> None:
    run = driven(batch, does="cchfssss")
    page = page_at(client, url_of(run))
    assert page.children is not None
    assert page.children.total == 8
    assert [row.state for row in page.children.rows] == [
        "held",
        "failed",
        *["waiting"] * 4,
        *["completed"] * 2,
    ]
    held = page.children.rows[0]
    assert (held.name, held.place) == ("file: 002", "collect, number 3")
    assert "line 17 is no number" in held.message
    assert {count.term: count.text for count in page.children.counts} == {
        "held": "1",
        "failed": "1",
        "waiting": "4",
        "completed": "2",
    }
    (link,) = page.why.links
    assert (link.url, link.text) == (held.url, f"Open held run …{str(held.id)[-6:]}")


def test_they_are_paged_and_none_is_lost(client: Client) -> None:
    run = driven(batch, does="c" * 30 + "h" * 3 + "s" * 20)
    url, names, states = url_of(run), [], []
    while url:
        page = page_at(client, url)
        assert page.children is not None
        names += [row.name for row in page.children.rows]
        states += [row.state for row in page.children.rows]
        url = page.children.next_url.partition("#")[0]
    assert sorted(names) == [f"file: {number:03}" for number in range(53)]
    assert states[:3] == ["held"] * 3
    assert states[-1] == "completed"
    assert page.children is not None
    assert page.children.first_url == f"{url_of(run)}#children"
    # The poll of a later page asks for the same page again.
    assert "?children=" in page.url
    assert f'hx-get="{escape(page.url)}&amp;seen=' in client.get(page.url).content.decode()


@pytest.mark.parametrize("page", ["nonsense", "9.x", "1.", f"-1.{NOWHERE}", f"7.{NOWHERE}"])
def test_a_page_that_is_none_is_the_first(client: Client, page: str) -> None:
    run = driven(batch, does="ch")
    shown = page_at(client, f"{url_of(run)}?children={page}").children
    assert shown is not None
    assert [row.state for row in shown.rows] == ["held", "completed"]


def test_its_queries_do_not_grow_with_the_runs_that_it_started(client: Client) -> None:
    few = driven(batch, does="chs")
    many = driven(batch, does="chs" * 20)
    assert queries(client, url_of(few)) == queries(client, url_of(many)) <= 40


def test_a_run_that_was_started_leads_to_its_parent_and_tells_its_turn(client: Client) -> None:
    run = driven(batch, does="ssssss")
    last = Run.objects.filter(parent=run).order_by("parent_index").last()
    assert last is not None
    page = page_at(client, url_of(last))
    assert page.parent is not None
    assert page.parent.url == url_of(run)
    assert page.parent_place == "collect, number 6"
    assert page.why.lead.startswith("It has not begun: it waits for its turn")
    assert [cause.text for cause in page.why.causes if cause.verdict == "is"] == [
        "yes: its turn has not come"
    ]


def test_runs_that_it_waits_for_are_no_hold_of_its_own(client: Client) -> None:
    causes = {
        cause.name: cause for cause in page_at(client, url_of(driven(batch, does="ch"))).why.causes
    }
    assert (causes["Held"].verdict, causes["Held"].text) == (
        "maybe",
        "1 run that it started, not itself",
    )


# --- what is refused --------------------------------------------------------------------------


def test_a_refused_late_commit_tells_who_tried_and_that_it_is_kept(client: Client) -> None:
    run = ready_run()
    late = claimed(run)
    Worker.objects.filter(pk=late.worker).update(host="slow", pid=9)
    expire_lease(run)
    commit(claimed(run), "in time")
    kept = keep_output(late.step, "too late", run=late.run, attempt=late.attempt)
    record_superseded(late, kept)
    page = page_at(client, url_of(run))
    assert page.refused == 1
    (lease,) = [row for row in page.leases if row.state == "superseded"]
    assert lease.error == (
        "slow/9 came back too late and was refused: what it brought is kept as evidence"
    )
    (card,) = [output for output in page.outputs if output.refused]
    assert (card.worker, card.facts[0].text) == ("slow/9", "too late")
    text = "A late write from slow/9 was refused; it changed nothing; what it brought is kept"
    assert any(entry.text.startswith(text) for entry in page.log)
    assert "It counts for nothing, and is kept as evidence." in (
        client.get(url_of(run)).content.decode()
    )


def test_what_was_refused_is_hidden_from_those_who_may_not_see_payloads(client: Client) -> None:
    run = ready_run()
    late = claimed(run)
    expire_lease(run)
    claimed(run)
    record_superseded(late, keep_output(late.step, "a secret", run=late.run, attempt=late.attempt))
    user = person("looker_1")
    assign_perm("workflows.view_tenant", user, tenant())
    client.force_login(user)
    assert "a secret" not in client.get(url_of(run)).content.decode()


# --- what somebody wished ---------------------------------------------------------------------


def test_a_paused_run_says_by_whom_and_why_and_polls_calmly(client: Client) -> None:
    run = driven(looping, times=2, rest=3600)
    pause_run(run.pk, by="user:3 ada", reason="The auditor is here.")
    page = page_at(client, url_of(run))
    assert [(mark.state, mark.text) for mark in page.marks] == [("paused", "Paused by ada")]
    assert "Besides, it is paused by ada since" in page.why.text
    assert ("Paused: The auditor is here.", "ada") in [(entry.text, entry.by) for entry in page.log]
    assert page.poll_seconds == 30
    assert "Paused by ada" in client.get(url_of(run)).content.decode()


def test_a_cancellation_that_is_asked_for_says_by_whom(client: Client) -> None:
    run = ready_run()
    Run.objects.filter(pk=run.pk).update(
        cancel_asked_at=database_now(), cancel_asked_by="user:3 ada"
    )
    page = page_at(client, url_of(run))
    assert [mark.text for mark in page.marks] == ["Cancel asked by ada"]
    assert [cause.name for cause in page.why.causes if cause.verdict == "is"] == ["Cancel asked"]
    drive()
    page = page_at(client, url_of(run))
    assert page.state == "cancelled"
    assert page.marks == ()
    assert page.why.lead == "It was cancelled by ada at step 1 of 2, act."


def test_a_paused_workflow_is_a_banner_with_who_why_and_since(client: Client) -> None:
    run = ready_run()
    pause_all(by="command:ops", reason="<b>Moving</b>", workflow=run.workflow)
    page = page_at(client, url_of(run))
    (pause,) = page.pauses
    assert (pause.what, pause.by) == ("Workflow tests.once", "ops at the terminal")
    text = client.get(url_of(run)).content.decode()
    assert "&lt;b&gt;Moving&lt;/b&gt;" in text
    assert f"{pause.at:%H:%M:%S} UTC" in text
    assert page_at(client, url_of(driven(looping, times=1))).pauses == ()


def test_a_poll_is_told_of_what_happens_to_branches_and_of_wishes(client: Client) -> None:
    run = driven(parted)
    seen = page_at(client, url_of(run)).seen

    def is_news() -> bool:
        nonlocal seen
        answer = fragment(client, f"{url_of(run)}?seen={seen}", "live")
        seen = page_at(client, url_of(run)).seen
        return bool(answer.status_code == HTTPStatus.OK)

    assert not is_news()
    Run.objects.filter(parent=run, state="held").update(state="ready")
    assert is_news()
    pause_run(run.pk, by="ada")
    assert is_news()
    pause_all(by="ada", reason="Moving.", tenant=tenant())
    assert is_news()
    assert not is_news()


# --- many attempts ----------------------------------------------------------------------------


def tried(run: Run, times: int) -> None:
    """Let the present step of `run` have been come to so often, each time by another worker."""
    now = database_now()
    workers = Worker.objects.bulk_create(
        Worker(host="host", pid=place + 1, workflows=[]) for place in range(times)
    )
    Attempt.objects.bulk_create(
        Attempt(
            run=run,
            step=run.step,
            visit=place + 2,
            number=1,
            worker=worker.pk,
            fence=1000 + place,
            claimed_at=now + timedelta(seconds=place),
            ended_at=now + timedelta(seconds=place + 1),
            state="committed",
            output="x" * 5000,
            output_form="plain",
        )
        for place, worker in enumerate(workers)
    )


def test_a_page_of_a_run_with_thousands_of_attempts_stays_bounded(client: Client) -> None:
    run = driven(looping, times=2, rest=3600)
    few = queries(client, url_of(run))
    size = len(client.get(url_of(run)).content)
    tried(run, 2000)
    assert queries(client, url_of(run)) == few <= 40
    page = page_at(client, url_of(run))
    assert (page.tries, page.drawn, len(page.leases)) == (2003, 200, 30)
    assert len(page.timeline.workers.rows) == 13
    assert page.timeline.workers.rows[-1].lane.name == "and 188 earlier workers"
    assert len(page.log) <= 101
    assert "the newest 200 of 2003 tries" in client.get(url_of(run)).content.decode()
    assert len(client.get(url_of(run)).content) - size < 250_000
    # The axis begins where the drawing does, not with two thousand tries that are not drawn.
    assert page.timeline.start > run.created_at
    # Nothing of what they left is read but the latest of each step.
    assert len(page.outputs) == 3
    with CaptureQueriesContext(connection) as captured:
        client.get(url_of(run))
    assert not any("x" * 5000 in query["sql"] for query in captured.captured_queries)


def test_a_version_that_is_not_known_here_shows_the_steps_that_it_has_seen(client: Client) -> None:
    run = driven(looping, times=2, rest=3600)
    Run.objects.filter(pk=run.pk).update(version=9)
    graph = graph_at(client, run)
    assert {name: step.place for name, step in graph.items()} == {
        "is_asked": "done",
        "ask": "done",
        "rest": "here",
    }


def test_markup_in_what_other_runs_say_is_shown_as_text(client: Client) -> None:
    markup = "<img src=x onerror=alert(1)>"
    run = driven(batch, does="ch")
    Run.objects.filter(parent=run).update(
        labels={"file": markup}, failure={"reason": markup, "message": markup}
    )
    Run.objects.filter(pk=run.pk).update(paused_at=database_now(), paused_by=markup)
    child: Any = Run.objects.filter(parent=run).first()
    for url in (url_of(run), url_of(child), f"/runs/?parent={run.pk}", "/runs/?children=with"):
        text = client.get(url).content.decode()
        assert markup not in text
        assert "&lt;img" in text
