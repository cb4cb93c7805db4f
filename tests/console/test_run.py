"""The page of a run: why it is where it is, what its steps left, its leases and its log."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import escape

from reconciliation.models import Evidence, Hold, Operation, ReviewQueue
from tests.approving import WHY, answered, approver, proposed
from tests.console.posting import fragment
from tests.deciding import KEEP_HOLDING, decide
from tests.destination import RunningDestination
from tests.factories import (
    advanced,
    held_operation,
    held_step_run,
    many_runs,
    owner_of,
    person,
    reader,
    ready_provider,
    started_run,
    stranger,
    tenant,
)
from workflows.models import Attempt, Run, Worker
from workflows.services.clock import database_now
from workflows.services.controls import pause

pytestmark = pytest.mark.django_db

MARKUP = '<img src=x onerror="document.title=1">'


@pytest.fixture
def held(client: Client, destination: RunningDestination) -> Run:
    """A run that is held at a write whose answer was lost; `client` is its owner's."""
    ready_provider("desk", destination.url)
    client.force_login(person())
    return held_operation(destination).run


def url_of(run: Run) -> str:
    return reverse("run", args=[run.pk])


def page_at(client: Client, url: str) -> Any:
    answer = client.get(url)
    assert answer.status_code == HTTPStatus.OK
    return answer.context["page"]


# --- why --------------------------------------------------------------------------------------


def test_a_held_run_says_why_what_helps_who_owns_it_and_where_it_is_decided(
    client: Client, held: Run
) -> None:
    page = page_at(client, url_of(held))
    operation = Operation.objects.get()
    assert page.why.lead == "It is held at step 3 of 4, note_in_desk."
    assert "may have happened once" in page.why.text
    assert "restarting workers will not help" in page.why.helps
    assert page.why.owner == "reviewer_1"
    assert page.why.links[0].url == reverse("operation", args=[operation.pk])
    causes = {cause.name: cause for cause in page.why.causes}
    assert list(causes) == [
        "Held",
        "Missing signal",
        "Mismatch",
        "Dispatch",
        "Backlog",
        "Lease lost",
    ]
    assert [name for name, cause in causes.items() if cause.verdict == "is"] == ["Held"]
    assert operation.pk.hex[-6:] in causes["Held"].text


def test_a_run_that_waits_for_dispatch_says_whose_it_is(client: Client) -> None:
    ready_provider("payments", dispatch="paused")
    client.force_login(person())
    page = page_at(client, url_of(advanced(started_run("refund"))))
    assert [cause.name for cause in page.why.causes if cause.verdict == "is"] == ["Dispatch"]
    assert page.why.owner == "reviewer_1"


def test_a_held_step_leads_to_its_case_only_for_those_who_may_see_it(client: Client) -> None:
    run = held_step_run()
    client.force_login(person())
    assert page_at(client, url_of(run)).why.links[0].url == reverse("held_run", args=[run.pk])
    looks = Client()
    looks.force_login(reader(ReviewQueue.objects.create(slug="other", name="Other")))
    assert page_at(looks, url_of(run)).why.links == ()


def test_a_run_without_workers_says_so(client: Client) -> None:
    owner = owner_of(ready_provider("payments").default_queue)
    client.force_login(owner)
    page = page_at(client, url_of(started_run("refund")))
    assert "none of the 0 live workers" in page.why.lead
    assert [cause.name for cause in page.why.causes if cause.verdict == "is"] == ["Backlog"]


def test_a_completed_run_shows_every_step_committed(
    client: Client, destination: RunningDestination
) -> None:
    ready_provider("payments", destination.url)
    client.force_login(person())
    page = page_at(client, url_of(advanced(started_run("refund"))))
    assert page.is_final
    assert page.why.lead == "Every step is committed."
    assert {step.place for step in page.graph} == {"done"}
    assert [output.step for output in page.outputs] == [
        "load_order",
        "create_refund",
        "tell_customer",
    ]
    # The newest first, and of one moment the end of the run last.
    assert page.log[0].text == "Every step is committed"
    assert page.log[-1].text == "Refund started, at step load_order"


def test_a_failed_run_says_what_failed(client: Client, destination: RunningDestination) -> None:
    ready_provider("payments", destination.url, account="not-an-account")
    client.force_login(person())
    page = page_at(client, url_of(advanced(started_run("refund"))))
    assert "refused it" in page.why.lead
    assert [step.note for step in page.graph if step.place == "todo"] == ["never started"]


# --- its parts --------------------------------------------------------------------------------


def test_the_timeline_hangs_operations_below_their_step_with_their_sends_and_holds(
    client: Client, held: Run
) -> None:
    lanes = [row.lane for row in page_at(client, url_of(held)).timeline.steps.rows]
    names = [lane.name for lane in lanes]
    assert names == [
        "read_ticket",
        "classify",
        "note_in_desk",
        "Comment on ticket T-17: billing",
        "tell_requester",
    ]
    paints = {lane.name: [span.paint for span in lane.spans] for lane in lanes}
    assert paints["note_in_desk"] == ["none", "hold"]
    assert paints["Comment on ticket T-17: billing"] == ["unknown", "ink"]
    assert paints["tell_requester"] == ["block"]
    assert lanes[3].child
    assert lanes[4].pending


def test_a_worker_that_went_quiet_is_shown_with_its_hand_over(client: Client, held: Run) -> None:
    now = database_now()
    worker = Worker.objects.create(host="other", pid=7, workflows=[])
    Attempt.objects.filter(run=held, fence=3).update(fence=5, claimed_at=now)
    Attempt.objects.create(
        run=held,
        step="note_in_desk",
        visit=1,
        number=1,
        worker=worker.pk,
        fence=4,
        claimed_at=now - timedelta(seconds=9),
        ended_at=now,
        state="superseded",
        error="its worker went quiet",
    )
    page = page_at(client, url_of(held))
    assert page.refused == 1
    texts = [entry.text for entry in page.log]
    assert any("fence 5; writes under fence 4 are refused" in text for text in texts)
    assert any("A late write from other/7 was refused" in text for text in texts)
    cause = {cause.name: cause for cause in page.why.causes}["Lease lost"]
    assert (cause.verdict, cause.text) == (
        "maybe",
        "not now: lost 1 time earlier, each handed over",
    )


def test_outputs_are_shown_to_those_who_may_see_payloads_alone(client: Client, held: Run) -> None:
    assert page_at(client, url_of(held)).outputs[0].facts
    looks = Client()
    looks.force_login(reader(Hold.objects.get().queue))
    page = page_at(looks, url_of(held))
    assert all(output.hidden and not output.facts for output in page.outputs)
    assert "Where is it?" not in looks.get(url_of(held)).content.decode()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, []),
        ("text", ["text"]),
        ([1, True, None], ["[1, true, null]"]),
        ({"a": {"b": 1}}, ['{"b": 1}']),
        ({"long": "x" * 500}, ["x" * 199 + "…"]),
        ({str(number): number for number in range(9)}, [*"012345", "3 more values"]),
    ],
)
def test_outputs_of_every_shape_fit_their_card(
    client: Client, held: Run, value: Any, shown: list[str]
) -> None:
    Attempt.objects.filter(run=held, step="classify").update(output=value)
    card = page_at(client, url_of(held)).outputs[1]
    assert [fact.text for fact in card.facts] == shown


def test_a_large_output_is_said_to_be_there(client: Client, held: Run) -> None:
    content = {str(number): uuid4().hex for number in range(1000)}
    Attempt.objects.filter(run=held, step="classify").update(output=content)
    (fact,) = page_at(client, url_of(held)).outputs[1].facts
    assert "too much to show here" in fact.text


def test_a_version_that_is_not_here_is_shown_as_far_as_it_is_known(client: Client) -> None:
    client.force_login(owner_of(ready_provider("payments").default_queue))
    (run,) = many_runs(1, "ready", version=99)
    page = page_at(client, url_of(run))
    assert (page.number, page.steps) == (1, 1)
    assert "refund version 99" in page.why.helps


def test_who_approved_stands_in_the_log_and_on_the_axis(client: Client) -> None:
    client.force_login(owner_of(ready_provider("payments").default_queue))
    run, proposal = proposed()
    answered(proposal, approver())
    page = page_at(client, f"{url_of(run)}?log=people")
    (entry,) = page.log
    assert entry.text == f"Approved: {proposal.summary} “{WHY}”"
    (row,) = page.timeline.people.rows
    assert (row.lane.name, row.lane.note) == (entry.by, "approved")


# --- only what may be seen, and as what -------------------------------------------------------


def test_another_s_run_is_not_there(client: Client, held: Run) -> None:
    knows_nothing = Client()
    knows_nothing.force_login(stranger())
    assert knows_nothing.get(url_of(held)).status_code == HTTPStatus.NOT_FOUND
    assert client.get(f"/runs/{uuid4()}/").status_code == HTTPStatus.NOT_FOUND
    assert client.get("/runs/not-an-id/").status_code == HTTPStatus.NOT_FOUND
    assert client.post(url_of(held)).status_code == HTTPStatus.METHOD_NOT_ALLOWED


def test_a_poll_gets_what_is_new_and_nothing_while_nothing_is(client: Client, held: Run) -> None:
    seen = page_at(client, url_of(held)).seen
    url = f"{url_of(held)}?seen={seen}"
    assert fragment(client, url, "live").status_code == HTTPStatus.NO_CONTENT
    Evidence.objects.create(operation=Operation.objects.get(), kind="conflict", source="look-up")
    told = fragment(client, url, "live")
    assert told.status_code == HTTPStatus.OK
    assert "<html" not in told.content.decode()


def test_the_timeline_comes_in_either_scale_and_polls_keep_it(client: Client, held: Run) -> None:
    Run.objects.filter(pk=held.pk).update(created_at=database_now() - timedelta(hours=2))
    folded = fragment(client, url_of(held), "live")
    assert folded.context["page"].timeline.folds
    assert "<html" not in folded.content.decode()
    true = fragment(client, folded.context["page"].scales[1].url, "live")
    page = true.context["page"]
    assert not page.timeline.folds
    assert f'hx-get="{escape(page.url)}&amp;seen={page.seen}"' in true.content.decode()


@pytest.mark.parametrize(
    ("only", "kinds"),
    [
        ("sends", {"operation", "transmission", "hold"}),
        ("leases", {"attempt", "step", "entry"}),
        ("waits", set()),
        ("people", {"decision", "stop"}),
    ],
)
def test_the_log_is_narrowed_down_to_what_somebody_looks_for(
    client: Client, held: Run, only: str, kinds: set[str]
) -> None:
    decide(Hold.objects.get(), KEEP_HOLDING)
    pause(held.pk, "user:1 ada", "until the desk is back")
    page = page_at(client, f"{url_of(held)}?log={only}")
    assert {entry.kind for entry in page.log} == kinds
    assert [each.text.lower() for each in page.log_filters if each.current] == [only]
    assert len(page_at(client, url_of(held)).log) > len(page.log)
    assert page_at(client, f"{url_of(held)}?log=nonsense").log_filters[0].current


def test_what_people_did_stands_on_the_same_axis(client: Client, held: Run) -> None:
    assert not page_at(client, url_of(held)).timeline.people.rows
    decide(Hold.objects.get(), KEEP_HOLDING)
    pause(held.pk, "user:1 ada", "until the desk is back")
    rows = page_at(client, url_of(held)).timeline.people.rows
    assert [(row.lane.name, row.lane.note) for row in rows] == [
        ("reviewer_1", "decided"),
        ("ada", "paused"),
    ]
    assert all(bar.is_mark for row in rows for bar in row.bars)
    assert "until the desk is back" in client.get(url_of(held)).content.decode()


def test_markup_in_outputs_errors_and_worker_names_is_shown_as_text(
    client: Client, held: Run
) -> None:
    held.attempts.outputs().update(output={MARKUP: MARKUP})
    Attempt.objects.filter(run=held).update(error=MARKUP)
    Worker.objects.update(host=MARKUP)
    Run.objects.filter(pk=held.pk).update(
        start_key=MARKUP, failure={"reason": MARKUP, "message": MARKUP}
    )
    Hold.objects.update(message=MARKUP)
    for answer in (
        client.get(url_of(held)),
        fragment(client, url_of(held), "live"),
    ):
        text = answer.content.decode()
        assert MARKUP not in text
        assert escape(MARKUP) in text


# --- many -------------------------------------------------------------------------------------


def tried(run: Run, times: int) -> None:
    """Let the present step of `run` have been tried so often, each time by another worker."""
    now = database_now()
    workers = Worker.objects.bulk_create(
        Worker(host="host", pid=place + 1, workflows=[]) for place in range(times)
    )
    Attempt.objects.bulk_create(
        Attempt(
            run=run,
            step=run.step,
            visit=1,
            number=place,
            worker=worker.pk,
            fence=1000 + place,
            claimed_at=now + timedelta(seconds=place),
            ended_at=now + timedelta(seconds=place + 1),
            state="failed",
            error="again",
        )
        for place, worker in enumerate(workers)
    )


def test_its_queries_do_not_grow_with_its_attempts(client: Client, held: Run) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page_at(client, url_of(held))
        return len(captured)

    queries()
    few = queries()
    tried(held, 50)
    assert queries() == few <= 35


def test_the_log_pages_backwards_and_loses_nothing(client: Client) -> None:
    client.force_login(owner_of(ready_provider("payments").default_queue))
    (run,) = many_runs(1, "held", tenant=tenant())
    tried(run, 150)
    page = page_at(client, url_of(run))
    entries = list(page.log)
    while page.older_log_url:
        page = page_at(client, page.older_log_url.partition("#")[0])
        assert page.log, "a page of the log is never empty"
        entries += page.log
    assert len(entries) == 1 + 2 * 150
    assert [entry.at for entry in entries] == sorted((entry.at for entry in entries), reverse=True)


@pytest.mark.parametrize("before", ["nonsense", "2026-03-10", "2026-99-99T00:00:00Z"])
def test_a_moment_that_is_none_shows_the_newest(client: Client, held: Run, before: str) -> None:
    assert page_at(client, f"{url_of(held)}?before={before}").log
