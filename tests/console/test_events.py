"""The events and waits page and an event's page: what came, what is waited for, what came close."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import escape
from guardian.shortcuts import assign_perm

from tests.console.posting import fragment
from tests.events import SHARING, TYPE, begun, delivered, driven, source, wait_of, waiting
from tests.factories import person, stranger, tenant
from tests.statements import most_read
from workflows.event_pages import EventPage, EventsPage
from workflows.models import Event, Run, Tenant
from workflows.models.ids import id_at
from workflows.services.clock import database_now
from workflows.services.waits import cancel_open

pytestmark = pytest.mark.django_db

EVENTS = "/events/"
MARKUP = "<img src=x onerror=alert(1)>"


def reader(*rights: str, name: str = "viewer_1") -> Any:
    user = person(name)
    for right in ("view_tenant", *rights):
        assign_perm(f"workflows.{right}", user, tenant())
    return get_user_model().objects.get(pk=user.pk)


@pytest.fixture
def viewer(client: Client) -> Client:
    client.force_login(reader())
    return client


@pytest.fixture
def operator() -> Client:
    client = Client()
    client.force_login(reader("view_payloads", "control_runs", name="operator_1"))
    return client


def list_at(client: Client, query: str = "") -> EventsPage:
    answer = client.get(f"{EVENTS}{query}")
    assert answer.status_code == HTTPStatus.OK
    page: EventsPage = answer.context["page"]
    return page


def page_of(client: Client, event: object) -> EventPage:
    answer = client.get(reverse("event", args=[event]))
    assert answer.status_code == HTTPStatus.OK
    page: EventPage = answer.context["page"]
    return page


def ambiguous() -> Any:
    waiting(), waiting()
    return delivered().event


# --- the list ---------------------------------------------------------------------------------


def test_what_is_to_act_on_is_listed_and_all_is_one_choice_away(viewer: Client) -> None:
    run = waiting()
    delivered(event_id="evt_taken")
    delivered("elsewhere", event_id="evt_stored")
    delivered("48213", event_id="evt_late")
    delivered("x", event_id="evt_bad", problem="no ID at id")
    page = list_at(viewer)
    assert [(row.state, row.correlation) for row in page.rows] == [
        ("rejected", "x"),
        ("late", "48213"),
        ("stored", "elsewhere"),
    ]
    counts = {kind.state: kind.count for kind in page.tally}
    assert counts == {"stored": "1", "late": "1", "ambiguous": "0", "rejected": "1"}
    assert [view.text for view in page.views if view.current] == ["To act on"]

    (taken,) = [row for row in list_at(viewer, "?view=all").rows if row.state == "matched"]
    assert taken.run is not None
    assert taken.run.url == reverse("run", args=[run.pk])
    assert taken.went == "refunded"


def test_it_can_be_narrowed_by_kind_and_source(viewer: Client) -> None:
    delivered("a", of=source("stripe"))
    delivered("b", of=source("shop"))
    delivered("c", of=source("shop"), problem="no ID")
    assert {row.correlation for row in list_at(viewer, "?state=rejected").rows} == {"c"}
    assert {row.correlation for row in list_at(viewer, "?source=shop").rows} == {"b", "c"}
    assert len(list_at(viewer, "?state=nonsense&source=nothing").rows) == 3
    assert list_at(viewer, "?state=late").rows == ()
    assert "hidden by the choice above" in viewer.get(f"{EVENTS}?state=late").content.decode()


def test_a_source_that_no_text_can_name_narrows_to_none(viewer: Client) -> None:
    assert viewer.get("/events/", {"source": "\0", "before": "\0"}).status_code == HTTPStatus.OK


def test_a_range_leaves_out_what_came_before_it_and_without_one_nothing_is(
    viewer: Client,
) -> None:
    delivered("new", event_id="evt_new")
    past = id_at(database_now() - timedelta(days=2))
    Event.objects.create(
        id=past, source=source(), tenant=tenant(), event_id="evt_old", type=TYPE, correlation="old"
    )
    assert {row.correlation for row in list_at(viewer).rows} == {"old", "new"}
    page = list_at(viewer, "?range=24h")
    assert {row.correlation for row in page.rows} == {"new"}
    assert {kind.state: kind.count for kind in page.tally}["stored"] == "1"
    assert all("range=24h" in kind.url for kind in page.tally)
    assert [each.text for each in page.ranges if each.current] == ["24 h"]
    assert len(list_at(viewer, "?range=7d").rows) == 2
    assert list_at(viewer, "?range=forever").ranges[0].current
    # Its poll sees what comes into the range, and nothing else.
    seen = viewer.get(f"{EVENTS}?range=24h").context["seen"]
    address = f"{page.url}&seen={quote(seen)}"
    assert fragment(viewer, address, "inbox").status_code == HTTPStatus.NO_CONTENT
    delivered("newer", event_id="evt_newer")
    assert "newer" in fragment(viewer, address, "inbox").content.decode()


def test_a_kind_that_is_rare_among_many_is_not_looked_for_among_them(viewer: Client) -> None:
    """However many of another kind came after it."""
    waiting()
    delivered(event_id="evt_taken")
    late = delivered(event_id="evt_late").event
    many = [
        Event(source=source(), tenant=tenant(), event_id=f"evt_{number}", type=TYPE)
        for number in range(3000)
    ]
    Event.objects.bulk_create(many)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE workflows_event")
    with CaptureQueriesContext(connection) as captured:
        page = list_at(viewer, "?state=late")
    assert [row.id for row in page.rows] == [late]
    narrowed = [each["sql"] for each in captured if "= 'late'" in each["sql"]]
    (asked,) = [sql for sql in narrowed if "COUNT" not in sql.upper()]
    # Its poll counts too; as for its page, it asks the same.
    (polled,) = [sql for sql in narrowed if "md5(" in sql]
    page, _ = polled.split("SELECT statement_timestamp()")
    for sql in (asked, f"{page} SELECT id FROM page"):  # noqa: S608 (our own)
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
            ((((document,),),),) = (cursor.fetchall(),)
        assert most_read(document["Plan"], "workflows_event") == 1


def test_pages_follow_each_other_by_key_over_several_tenants(viewer: Client) -> None:
    other = Tenant.objects.create(slug="southbay", name="Southbay")
    assign_perm("workflows.view_tenant", person("viewer_1"), other)
    shops = source("shop"), source("bay", other)
    for number in range(60):
        delivered(str(number), of=shops[number % 2])
    first = list_at(viewer)
    second = list_at(viewer, first.pager.older.removeprefix(EVENTS))
    shown = [row.correlation for page in (first, second) for row in page.rows]
    assert shown == [str(number) for number in reversed(range(60))]
    assert (len(first.rows), first.pager.newer, second.pager.older) == (50, "", "")
    back = list_at(viewer, second.pager.newer.removeprefix(EVENTS))
    assert [row.id for row in back.rows] == [row.id for row in first.rows]


def test_open_waits_say_what_they_are_for_and_what_came_close(viewer: Client) -> None:
    run = waiting()
    delivered("48213 ", event_id="evt_space")
    delivered("48213", type="charge.updated")
    (row,) = list_at(viewer).waits.rows
    assert (row.types, row.correlation, row.step, row.close) == (TYPE, "48213", "refunded", 2)
    assert row.run.url == reverse("run", args=[run.pk])
    page = list_at(viewer)
    assert [near.note for near in page.near] == [
        "Only white space differs.",
        "The correlation is the same, the type is another.",
    ]
    assert page.comparison is not None
    fields = {field.name: field.fit for field in page.comparison.fields}
    assert fields == {"Type": "same", "Correlation": "differs", "Time": "inside"}
    assert page.comparison.attach_url == ""
    chosen = list_at(viewer, page.near[1].url.removeprefix(EVENTS).partition("#")[0])
    assert chosen.comparison is not None
    assert chosen.comparison.lead == page.near[1].note
    text = fragment(viewer, page.near[1].url.partition("#")[0], "near").content.decode()
    assert "<html" not in text
    assert "<mark" in text


def test_of_all_that_came_close_the_closest_is_compared_first(viewer: Client) -> None:
    waiting(correlation="PO-10077")
    delivered("po-10077")
    waiting(correlation="INV-7")
    delivered("INV-8")
    page = list_at(viewer)
    assert [near.correlation for near in page.near] == ["po-10077", "INV-8"]
    assert page.near[0].current


def test_a_run_that_is_over_waits_no_more(viewer: Client) -> None:
    cancel_open([waiting().pk])
    page = list_at(viewer)
    assert page.waits.rows == ()
    assert "No run waits for an event" in viewer.get(EVENTS).content.decode()


def test_nothing_of_other_tenants_is_shown_counted_or_close(viewer: Client) -> None:
    other = Tenant.objects.create(slug="southbay", name="Southbay")
    waiting()
    hidden = delivered("48213", of=source("bay", other)).event
    delivered(" 48213", of=source("bay", other))
    page = list_at(viewer, "?view=all")
    assert (page.rows, page.near, page.sources) == ((), (), ())
    assert {kind.count for kind in page.tally} == {"0"}
    assert page.waits.rows[0].close == 0
    assert viewer.get(reverse("event", args=[hidden])).status_code == HTTPStatus.NOT_FOUND
    nobody = Client()
    nobody.force_login(stranger())
    assert list_at(nobody).waits.rows == ()


def test_htmx_gets_the_inbox_with_the_tally(viewer: Client) -> None:
    delivered("a")
    text = fragment(viewer, f"{EVENTS}?state=stored", "inbox").content.decode()
    assert "<html" not in text
    assert 'id="inbox"' in text
    assert 'hx-swap-oob="true"' in text


def test_its_queries_do_not_grow_with_its_rows(viewer: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            list_at(viewer, "?view=all")
        return len(captured)

    def add(number: int) -> None:
        for each in range(number):
            waiting(correlation=f"order {number} {each}")
            delivered(f"Order {number} {each}")
            delivered(f"late {number} {each}")
            waiting(correlation=f"late {number} {each}")

    add(1)
    queries()
    few = queries()
    add(8)
    assert queries() == few <= 25


def test_only_reading_is_possible(viewer: Client) -> None:
    event = delivered("a").event
    for url in (EVENTS, reverse("event", args=[event])):
        assert viewer.head(url).status_code == HTTPStatus.OK
        assert viewer.post(url).status_code == HTTPStatus.METHOD_NOT_ALLOWED
    viewer.logout()
    assert viewer.get(EVENTS)["Location"] == f"{reverse('login')}?next={EVENTS}"


# --- one event --------------------------------------------------------------------------------


def test_what_was_received_is_for_those_alone_who_may_see_payloads(
    viewer: Client, operator: Client
) -> None:
    big = '{"amount": 12345678901234567890.10, "note": "\\u00e9"}'
    event = delivered("a").event
    Event.objects.filter(pk=event).update(body=big.encode())
    page = page_of(operator, event)
    assert page.body.is_json
    assert page.body.text == '{\n  "amount": 12345678901234567890.10,\n  "note": "\\u00e9"\n}'
    hidden = page_of(viewer, event)
    assert (hidden.body.text, hidden.body.size) == ("", len(big))
    assert "12345" not in viewer.get(reverse("event", args=[event])).content.decode()


def test_the_rights_that_count_are_those_on_the_tenant_of_the_event(viewer: Client) -> None:
    event = delivered(payload={"card": "4111"}).event
    # As if its source had been moved before that was refused.
    other = tenant("other")
    Event.objects.get(pk=event).source.__class__.objects.update(tenant=other)
    for right in ("view_tenant", "view_payloads", "control_runs"):
        assign_perm(f"workflows.{right}", get_user_model().objects.get(username="viewer_1"), other)
    page = page_of(viewer, event)
    assert (page.body.text, page.actions) == ("", ())
    answer = viewer.post(reverse("event_dismiss", args=[event]), {"reason": "Not ours."})
    assert answer.status_code == HTTPStatus.NOT_FOUND


def test_a_body_that_is_no_json_is_shown_as_text(operator: Client) -> None:
    event = delivered("a").event
    Event.objects.filter(pk=event).update(body=b"\xff\xfe<b>not json")
    page = page_of(operator, event)
    assert "not json" in page.body.text
    assert page.body.note.startswith("It is no JSON: it is not UTF-8 at byte 0")


def test_a_matched_event_names_its_run(viewer: Client) -> None:
    run = waiting()
    page = page_of(viewer, delivered().event)
    assert (page.state, page.given[0].run.url) == ("matched", reverse("run", args=[run.pk]))
    assert (page.given[0].step, page.given[0].by, page.helps) == (
        "refunded",
        "",
        "Nothing is needed.",
    )


def test_an_ambiguous_event_names_the_waits_that_could_take_it(
    viewer: Client, operator: Client
) -> None:
    event = ambiguous()
    page = page_of(operator, event)
    assert (page.state, len(page.candidates)) == ("ambiguous", 2)
    assert page.lead.startswith("More than one open wait could take it")
    assert [action.name for action in page.actions] == ["attach", "replay", "dismiss"]
    assert page_of(viewer, event).actions == ()


def test_a_shared_event_names_all_that_got_it(viewer: Client) -> None:
    runs = {waiting(SHARING).pk, waiting(SHARING).pk}
    page = page_of(viewer, delivered().event)
    assert {match.run.url for match in page.given} == {reverse("run", args=[run]) for run in runs}


def test_a_late_event_says_why_and_duplicates_are_counted(viewer: Client) -> None:
    waiting()
    delivered(event_id="evt_1")
    event = delivered(event_id="evt_2").event
    for _ in range(3):
        delivered(event_id="evt_2")
    page = page_of(viewer, event)
    assert (page.state, page.duplicates) == ("late", 3)
    assert "had what it needed already" in page.lead
    assert [entry.text for entry in page.record] == [
        "Received",
        "Delivered again, 3 times in all; only counted",
    ]


def test_an_event_that_came_close_is_compared_with_the_wait(operator: Client) -> None:
    run = waiting(correlation="PO-10077")
    page = page_of(operator, delivered("PO10077").event)
    (comparison,) = page.comparisons
    assert comparison.lead == "Only one character differs."
    assert comparison.run.url == reverse("run", args=[run.pk])
    assert comparison.attach_url.endswith(f"?wait={wait_of(run).pk}")
    text = operator.get(reverse("event", args=[page.id])).content.decode()
    assert "PO<mark>-</mark>10077" in text


def test_markup_in_ids_correlations_types_and_bodies_is_text_everywhere(operator: Client) -> None:
    """A26: nothing that a sender wrote runs in the console."""
    waiting(correlation=MARKUP)
    event = delivered(
        f"{MARKUP} ", type=TYPE, event_id=f"id{MARKUP}", payload={MARKUP: MARKUP}
    ).event
    other = delivered(MARKUP, type=f"type{MARKUP}").event
    rejected = delivered(MARKUP, event_id=f"r{MARKUP}", problem=f"problem{MARKUP}").event
    urls = [EVENTS, f"{EVENTS}?view=all"]
    for each in (event, other, rejected):
        urls.append(reverse("event", args=[each]))
        urls += [reverse(f"event_{name}", args=[each]) for name in ("attach", "dismiss", "replay")]
    run = Run.objects.get()
    urls.append(reverse("run", args=[run.pk]))
    shown = 0
    for url in urls:
        text = operator.get(url).content.decode()
        assert "<img" not in text, url
        shown += escape(MARKUP) in text
    assert shown == len(urls)


def test_unknown_is_not_found(viewer: Client) -> None:
    unknown = "0197f000-0000-7000-8000-000000000000"
    assert viewer.get(reverse("event", args=[unknown])).status_code == HTTPStatus.NOT_FOUND


# --- the run's page ---------------------------------------------------------------------------


def run_page(client: Client, run: Run) -> Any:
    return client.get(reverse("run", args=[run.pk])).context["page"]


def test_the_run_says_what_it_waits_for_and_what_came_close(viewer: Client) -> None:
    run = waiting()
    delivered("48213\n")
    page = run_page(viewer, run)
    assert "for charge.refunded with correlation “48213”" in page.why.lead
    assert "1 event came close" in page.why.text
    assert page.why.links[-1].text.startswith("Open event …")
    mismatch = next(cause for cause in page.why.causes if cause.name == "Mismatch")
    assert (mismatch.verdict, mismatch.text) == (
        "maybe",
        "1 event came close to what it waits for",
    )
    assert (page.waits[0].state, page.waits[0].events) == ("waiting", ())
    lane = next(row.lane for row in page.timeline.steps.rows if row.lane.kind == "wait")
    assert (lane.state, lane.child) == ("waiting", True)


def test_the_run_says_which_event_it_got_and_which_came_late(viewer: Client) -> None:
    run = waiting()
    delivered(event_id="evt_1")
    delivered(event_id="evt_2")
    page = run_page(viewer, run)
    assert page.why.lead.startswith("Its wait was resolved at ")
    assert "by charge.refunded evt_1 of payments" in page.why.lead
    (wait,) = page.waits
    assert [event.text for event in wait.events] == ["charge.refunded evt_1"]
    assert [event.text for event in wait.late] == ["charge.refunded evt_2"]
    texts = [entry.text for entry in page.log]
    assert "charge.refunded evt_1 of payments was given to refunded" in texts
    assert (
        "charge.refunded evt_2 of payments came too late for refunded; it changed nothing" in texts
    )
    assert driven(run).state == "completed"
    assert run_page(viewer, run).waits[0].events[0].text == "charge.refunded evt_1"


def test_a_run_without_waits_shows_none(viewer: Client) -> None:
    assert run_page(viewer, begun()).waits == ()


def test_a_poll_gets_nothing_while_nothing_is_new(viewer: Client) -> None:
    delivered("elsewhere", event_id="evt_1")
    url = f"{EVENTS}?seen={viewer.get(EVENTS).context['seen']}"
    assert fragment(viewer, url, "inbox").status_code == HTTPStatus.NO_CONTENT
    delivered("elsewhere", event_id="evt_2")
    assert fragment(viewer, url, "inbox").status_code == HTTPStatus.OK
