"""The overview: what needs the reader, what is not known, and how the machinery is."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from http import HTTPStatus
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape
from guardian.shortcuts import assign_perm

from reconciliation.models import Evidence, Hold, Operation, Provider, ReviewQueue, Transmission
from tests.console.posting import HTMX, fragment
from tests.factories import (
    administrator,
    many_held,
    many_runs,
    person,
    reader,
    ready_provider,
    stranger,
    switched,
)
from workflows.models import Run, Tenant, Worker
from workflows.models.ids import id_at, new_id
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

OVERVIEW = "/"


@pytest.fixture
def provider() -> Provider:
    return ready_provider("payments")


@pytest.fixture
def owner(client: Client, provider: Provider) -> Client:
    client.force_login(person())
    return client


def page_at(client: Client, url: str = OVERVIEW) -> Any:
    answer = client.get(url)
    assert answer.status_code == HTTPStatus.OK
    return answer.context["page"]


def sent_and_silent(number: int, provider: Provider) -> list[Hold]:
    """Held operations of which something left, and nobody knows what became of it."""
    holds = many_held(number, provider)
    pks = [hold.operation_id for hold in holds]
    Operation.objects.filter(pk__in=pks).update(first_sent_at=database_now())
    return holds


def transmission(operation: Any, number: int, state: str, **fields: Any) -> Transmission:
    now = database_now()
    return Transmission.objects.create(
        operation_id=operation,
        number=number,
        attempt=new_id(),
        worker=new_id(),
        fence=1,
        purpose="first" if number == 1 else "replay",
        in_flight_until=now,
        state=state,
        **({"ended_at": now} | fields),
    )


def worker(**fields: Any) -> Worker:
    now = database_now()
    return Worker.objects.create(
        **({"host": "w", "pid": 1, "workflows": [], "seen_at": now, "swept_at": now} | fields)
    )


# --- what it says -----------------------------------------------------------------------------


def test_it_says_first_how_many_outcomes_are_not_known_and_how_many_are_late(
    owner: Client, provider: Provider
) -> None:
    late, _ = sent_and_silent(2, provider)
    Hold.objects.filter(pk=late.pk).update(due_at=database_now() - timedelta(minutes=5))
    page = page_at(owner)
    assert page.verdict.lead == "2 operations have no known outcome."
    assert page.verdict.text.startswith("1 is past due.")
    assert "Nothing is known to have happened twice" in page.verdict.text
    assert (page.verdict.kind, page.verdict.state) == ("operation", "unknown")
    assert page.ages.title == "Age of the 2 operations without an outcome: 2 <15 m."


def test_what_nobody_holds_yet_counts_too_and_for_its_own_tenant(
    owner: Client, provider: Provider
) -> None:
    ours, theirs = sent_and_silent(2, provider)
    # Before it is held, and between two holds, an operation says nothing of its tenant itself.
    Hold.objects.update(state="decided", closed_at=database_now())
    Operation.objects.update(state="unknown")
    elsewhere = Tenant.objects.create(slug="elsewhere", name="Elsewhere")
    Run.objects.filter(pk=theirs.run_id).update(tenant=elsewhere)
    assert page_at(owner).verdict.lead == "1 operation has no known outcome."
    Run.objects.filter(pk=ours.run_id).update(tenant=elsewhere)
    assert page_at(owner).verdict.lead.startswith("Every outcome is known")


def test_it_looks_at_the_oldest_without_an_outcome_alone(
    owner: Client, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent_and_silent(4, provider)
    for looked_at, counted in ((5, 4), (4, 4), (3, 3)):
        monkeypatch.setattr(
            "reconciliation.selectors.overview_ledger.UNSETTLED_LOOKED_AT", looked_at
        )
        assert page_at(owner).verdict.lead == f"{counted} operations have no known outcome."


def test_what_is_held_in_queues_of_others_is_told_from_what_the_reader_finds_in_lists(
    owner: Client, provider: Provider
) -> None:
    _, theirs, nobodys = sent_and_silent(3, provider)
    queue = ReviewQueue.objects.create(slug="theirs", name="Theirs")
    Hold.objects.filter(pk=theirs.pk).update(queue=queue)
    Hold.objects.filter(pk=nobodys.pk).update(queue=None)
    page = page_at(owner)
    assert (page.verdict.lead, page.total) == ("3 operations have no known outcome.", 1)
    assert page.verdict.text.startswith("2 are held in queues that you may not see.")
    assert "1 held in the queues you may see" in owner.get(OVERVIEW).content.decode()
    administers = Client()
    administers.force_login(administrator())
    page = page_at(administers)
    assert page.total == 3
    assert "may not see" not in page.verdict.text


def test_what_was_never_sent_is_held_and_its_outcome_is_known(
    owner: Client, provider: Provider
) -> None:
    many_held(3, provider)
    page = page_at(owner)
    assert page.verdict.lead == "3 cases wait for a person."
    assert "Every outcome is known." in page.verdict.text


def test_with_nothing_open_it_says_so(owner: Client) -> None:
    page = page_at(owner)
    assert page.verdict.lead == "Every outcome is known, and nothing waits for a person."
    assert (page.needs, page.mine, page.total) == ((), 0, 0)


def test_the_reader_s_own_cases_come_by_urgency_and_others_are_only_counted(
    owner: Client, provider: Provider
) -> None:
    first, second, theirs = many_held(3, provider)
    Hold.objects.filter(pk=theirs.pk).update(assignee=person("reviewer_2"))
    Hold.objects.filter(pk=second.pk).update(due_at=database_now() - timedelta(minutes=1))
    page = page_at(owner)
    assert [need.url.split("/")[2] for need in page.needs] == [
        str(second.operation_id),
        str(first.operation_id),
    ]
    assert [need.is_late for need in page.needs] == [True, False]
    assert (page.mine, page.total) == (2, 3)
    # An administrator owns no queue: nothing is theirs until it is assigned to them.
    client = Client()
    client.force_login(administrator())
    assert (page_at(client).mine, page_at(client).total) == (0, 3)


def test_providers_show_their_switch_and_what_is_open_there(
    owner: Client, provider: Provider
) -> None:
    one, _ = sent_and_silent(2, provider)
    Operation.objects.filter(pk=one.operation_id).update(state="unknown")
    switched(provider, "paused")
    (line,) = page_at(owner).providers
    assert (line.dispatch, line.unknown, line.held) == ("paused", 1, 1)


def test_the_day_counts_sends_latency_and_what_nobody_had_to_decide(
    owner: Client, provider: Provider
) -> None:
    now = database_now()
    one, two, _ = [hold.operation_id for hold in many_held(3, provider)]
    transmission(one, 1, "acknowledged")
    transmission(two, 1, "unknown", ended_at=now - timedelta(seconds=42))
    transmission(two, 2, "acknowledged")
    transmission(two, 3, "not_sent")
    Operation.objects.filter(pk__in=[one, two]).update(state="verified", settled_at=now)
    shown = {figure.term: (figure.value, figure.note) for figure in page_at(owner).figures}
    assert shown["Sends per operation"] == ("1.50", "2 operations, 3 sends")
    assert shown["Time to an outcome"][0] == "42 s"
    assert shown["Settled without people"] == ("100.0%", "2 of 2 settled")


def test_effects_that_are_there_twice_are_said_first_of_what_went_wrong(
    owner: Client, provider: Provider
) -> None:
    double, check = [hold.operation_id for hold in many_held(2, provider)]
    for resource in ("re_1", "re_2"):
        Evidence.objects.create(
            operation_id=double, kind="conflict", resource=resource, source="duplicate audit"
        )
    Operation.objects.filter(pk=check).update(state="postcondition_failed")
    page = page_at(owner)
    assert {each.state for each in page.wrong} == {"double", "check"}
    assert "1 operation took effect more than once" in page.verdict.text
    assert {figure.term: figure.value for figure in page.figures}["Duplicate effects"] == "1"


@pytest.mark.parametrize(
    ("fields", "state", "said"),
    [
        ({}, ["alive", "alive", "alive"], "1 worker is alive."),
        ({"broker_away_since": "-90"}, ["alive", "alive", "no_broker"], "No worker has reached"),
        ({"swept_at": "-300"}, ["alive", "no_sweep", "alive"], "Nobody has looked for due work"),
        ({"seen_at": "-300"}, ["quiet"], "No worker is alive: runs wait"),
    ],
)
def test_the_machinery_is_told_in_sentences(
    owner: Client, fields: dict[str, str], state: list[str], said: str
) -> None:
    now = database_now()
    worker(**{name: now + timedelta(seconds=int(ago)) for name, ago in fields.items()})
    lines = page_at(owner).health
    assert [line.state for line in lines] == state
    assert any(line.text.startswith(said) for line in lines)


def test_runs_are_counted_by_the_hour_of_their_start_without_their_children(
    owner: Client,
) -> None:
    parent, *_ = many_runs(2, "completed")
    many_runs(1, "failed")
    many_runs(1, "ready", parent=parent, parent_step="s", parent_visit=1, parent_index=0)
    strips = {strip.state: strip for strip in page_at(owner).runs}
    assert {state: strip.chart.total for state, strip in strips.items()} == {
        "completed": 2,
        "failed": 1,
    }
    assert len(strips["failed"].chart.marks) == 24


def test_every_chart_has_a_sentence_and_a_table_behind_it(
    owner: Client, provider: Provider
) -> None:
    sent_and_silent(1, provider)
    text = owner.get(OVERVIEW).content.decode()
    assert text.count("Show as a table") == 4
    assert "Age of the 1 operation without an outcome" in text


def test_markup_in_what_others_wrote_is_shown_as_text(owner: Client, provider: Provider) -> None:
    markup = "<img src=x onerror=1>"
    Provider.objects.update(name=markup, contradiction=markup, contradicted_at=database_now())
    text = owner.get(OVERVIEW).content.decode()
    assert markup not in text
    assert escape(markup) in text


# --- only what may be seen --------------------------------------------------------------------


def test_what_is_not_theirs_is_in_no_number_and_no_list(owner: Client, provider: Provider) -> None:
    sent_and_silent(1, provider)
    elsewhere = Tenant.objects.create(slug="elsewhere", name="Elsewhere")
    (foreign,) = sent_and_silent(1, provider)
    Run.objects.filter(pk=foreign.run_id).update(tenant=elsewhere)
    Hold.objects.filter(pk=foreign.pk).update(tenant=elsewhere)
    queue = ReviewQueue.objects.create(slug="theirs", name="Theirs")
    Provider.objects.create(slug="other", name="Other", adapter="rehearsal", default_queue=queue)
    Evidence.objects.create(
        operation_id=foreign.operation_id, kind="conflict", source="duplicate audit"
    )
    page = page_at(owner)
    assert page.verdict.lead == "1 operation has no known outcome."
    assert (page.total, page.wrong, [line.provider.text for line in page.providers]) == (
        1,
        (),
        ["Payments"],
    )
    assert sum(strip.chart.total for strip in page.runs) == 1
    reads = Client()
    reads.force_login(reader(provider.default_queue))  # whose right came after the other tenant
    assert page_at(reads).total == 2


def test_who_may_see_nothing_is_told_nothing(provider: Provider) -> None:
    worker()
    sent_and_silent(1, provider)
    client = Client()
    client.force_login(stranger())
    page = page_at(client)
    assert (page.total, page.health, page.providers, page.runs, page.wrong) == (0, (), (), (), ())


def test_without_a_session_it_leads_to_the_login_page(client: Client) -> None:
    assert client.get(OVERVIEW).status_code == HTTPStatus.FOUND


# --- as it is polled --------------------------------------------------------------------------


def test_a_poll_gets_nothing_while_nothing_is_new_and_costs_less(
    owner: Client, provider: Provider
) -> None:
    many_held(2, provider)
    url = page_at(owner).url
    with CaptureQueriesContext(connection) as idle:
        assert fragment(owner, url, "overview").status_code == HTTPStatus.NO_CONTENT
    assert len(idle) <= 8
    many_held(1, provider)
    new = fragment(owner, url, "overview")
    assert new.status_code == HTTPStatus.OK
    assert "<html" not in new.content.decode()
    restored = owner.get(
        OVERVIEW, headers=HTMX | {"HX-Target": "overview", "HX-History-Restore-Request": "true"}
    )
    assert "<html" in restored.content.decode()


@pytest.mark.parametrize("change", ["run", "right", "worker"])
def test_a_poll_hears_of_runs_rights_and_workers(
    owner: Client, provider: Provider, change: str
) -> None:
    url = page_at(owner).url
    match change:
        case "run":
            many_runs(1)
        case "right":
            elsewhere = Tenant.objects.create(slug="elsewhere", name="Elsewhere")
            assign_perm("workflows.view_tenant", person(), elsewhere)
        case "worker":
            worker()
    assert fragment(owner, url, "overview").status_code == HTTPStatus.OK


def test_its_queries_do_not_grow_with_its_rows(owner: Client, provider: Provider) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page_at(owner)
        return len(captured)

    sent_and_silent(1, provider)
    queries()  # the first asks for content types that are remembered
    one = queries()
    sent_and_silent(30, provider)
    many_runs(30, "completed")
    assert queries() == one <= 14


# --- what is said of the reader's own cases, on every page ------------------------------------


def needs_you(client: Client, seconds_ago: int) -> Any:
    since = (database_now() - timedelta(seconds=seconds_ago)).isoformat()
    return client.get("/needs-you/", {"since": since}, headers=HTMX)


def test_a_new_case_of_one_s_own_is_said_once_and_at_most_once_a_minute(
    owner: Client, provider: Provider
) -> None:
    many_held(2, provider)
    assert "HX-Trigger" not in needs_you(owner, 10)
    told = needs_you(owner, 90)
    assert "2 new cases are yours." in told["HX-Trigger"]
    # What the answer asks with next time is not told again.
    url = unescape(re.search('hx-get="([^"]+)"', told.content.decode())[1])  # type: ignore[index]
    assert owner.get(url, headers=HTMX).status_code == HTTPStatus.NO_CONTENT


def test_a_case_that_is_past_due_is_said_and_others_cases_are_not(
    owner: Client, provider: Provider
) -> None:
    late, theirs = many_held(2, provider)
    now = database_now()
    Hold.objects.update(opened_at=now - timedelta(hours=1))
    Hold.objects.filter(pk=late.pk).update(due_at=now - timedelta(seconds=30))
    Hold.objects.filter(pk=theirs.pk).update(assignee=person("reviewer_2"), opened_at=now)
    assert needs_you(owner, 90)["HX-Trigger"] == (
        '{"say": {"text": "1 case of yours is past due."}}'
    )
    Hold.objects.filter(pk=late.pk).update(assignee=person("reviewer_2"))
    assert "HX-Trigger" not in needs_you(owner, 90)


@pytest.mark.parametrize(
    "since",
    [
        *("", "nonsense", "2026-01-01T00:00:00", "2026-13-01T00:00Z"),
        *("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
    ],
)
def test_a_moment_that_is_none_says_nothing(owner: Client, provider: Provider, since: str) -> None:
    many_held(1, provider)
    answer = owner.get("/needs-you/", {"since": since}, headers=HTMX)
    assert answer.status_code == HTTPStatus.OK
    assert "HX-Trigger" not in answer


# --- how far back -----------------------------------------------------------------------------


def test_figures_and_charts_look_as_far_back_as_is_asked_for(
    owner: Client, provider: Provider
) -> None:
    now = database_now()
    (run,) = many_runs(1, "completed")
    old = id_at(now - timedelta(days=3))
    Run.objects.filter(pk=run.pk).update(id=old, created_at=now - timedelta(days=3))
    many_runs(1, "failed")
    assert started(page_at(owner)) == {"failed": 1}
    week = page_at(owner, "/?range=7d")
    assert started(week) == {"completed": 1, "failed": 1}
    assert len(week.runs[0].chart.marks) == 28
    assert week.since == pytest.approx(now - timedelta(days=7), abs=timedelta(minutes=5))
    assert [each.text for each in week.ranges if each.current] == ["7 d"]
    assert started(page_at(owner, "/?range=1h")) == {"failed": 1}
    # What is none counts as not said; the poll of a page asks for the same range.
    assert page_at(owner, "/?range=forever").back.key == "24h"
    assert week.url.startswith("/?range=7d&seen=")
    assert fragment(owner, week.url, "overview").status_code == HTTPStatus.NO_CONTENT


def started(page: Any) -> dict[str, int]:
    return {strip.state: strip.chart.total for strip in page.runs}
