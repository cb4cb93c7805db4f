"""Search: exact first, then what begins so; over indexes, and only what may be seen."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.db.models import CharField, Value
from django.db.models.functions import Cast, Concat, JSONObject
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape

from reconciliation.models import Operation, Provider, Transmission
from reconciliation.selectors import search
from tests.factories import many_held, many_runs, person, ready_provider, stranger, tenant
from workflows.models import Event, EventSource, Run, Tenant, Wait
from workflows.models.ids import new_id
from workflows.selectors import finding
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db


@pytest.fixture
def provider() -> Provider:
    return ready_provider("payments")


@pytest.fixture
def reads(client: Client, provider: Provider) -> Client:
    client.force_login(person())
    return client


def page_at(client: Client, q: Any, **query: str) -> Any:
    answer = client.get("/search/", {"q": str(q), **query})
    assert answer.status_code == HTTPStatus.OK
    return answer.context["page"]


def found(client: Client, q: Any) -> list[tuple[str, UUID, str]]:
    """Of each hit its kind, its ID and the text by which it was found."""
    groups = page_at(client, q).groups
    return [(group.kind, hit.id, hit.name) for group in groups for hit in group.hits]


def one_operation(provider: Provider) -> Operation:
    (hold,) = many_held(1, provider)
    return Operation.objects.get(pk=hold.operation_id)


def event(correlation: str = "C-1", **fields: Any) -> Event:
    source, _ = EventSource.objects.get_or_create(
        slug="shop", defaults={"name": "Shop", "tenant": tenant(), "scheme": "internal"}
    )
    given = {"event_id": f"evt_{new_id().hex}", "type": "paid", "body": b"{}"} | fields
    return Event.objects.create(
        source=source, tenant=source.tenant, correlation=correlation, **given
    )


def wait(run: Run, correlation: str) -> Wait:
    return Wait.objects.create(
        run=run, step="s", visit=1, tenant=run.tenant, event_types=["paid"], correlation=correlation
    )


# --- what is found ----------------------------------------------------------------------------


def test_runs_are_found_by_id_start_key_and_label(reads: Client) -> None:
    many_runs(3)
    (run,) = many_runs(1, start_key="ORD-7001", labels={"shop": "north-7", "colour": "red"})
    for q, name in (
        (run.pk, "ID"),
        (run.pk.hex[-6:], "ID"),
        (run.pk.hex[-8:].upper(), "ID"),
        ("ORD-7001", "start key"),
        ("ORD-7", "start key"),
        ("north-7", "label shop"),
        ("shop=north-7", "label"),
        ("shop: north-7", "label"),
    ):
        assert found(reads, q) == [("runs", run.pk, name)], q


def test_operations_are_found_by_id_target_resource_key_and_the_provider_s_request_id(
    reads: Client, provider: Provider
) -> None:
    many_held(2, provider)
    operation = one_operation(provider)
    Operation.objects.filter(pk=operation.pk).update(resource="re_901")
    Transmission.objects.create(
        operation=operation,
        number=1,
        attempt=new_id(),
        worker=new_id(),
        fence=1,
        purpose="first",
        in_flight_until=database_now(),
        provider_request_id="req_Zx81",
    )
    key = operation.idempotency_key
    for q, name in (
        (operation.pk, "ID"),
        (operation.pk.hex[-6:], "ID"),
        ("re_901", "resource"),
        ("re_9", "resource"),
        ("req_Zx81", "request ID"),
        ("req_Z", "request ID"),
    ):
        assert found(reads, q) == [("operations", operation.pk, name)], q
    assert ("operations", operation.pk, "idempotency key") in found(reads, key)
    # The targets of all three begin so, and that of two is this very one.
    assert [name for _, _, name in found(reads, "order")] == ["target"] * 3
    assert next(pk for _, pk, _ in found(reads, "order 0")) == operation.pk


def test_operations_are_found_by_how_their_target_ends(reads: Client, provider: Provider) -> None:
    last = many_held(13, provider)[-1]
    assert found(reads, "r 12") == [("operations", last.operation_id, "target")]
    assert found(reads, "r 1 ") == found(reads, "der 1")
    assert len(found(reads, "der 1")) == 1
    assert found(reads, "der") == []


def test_events_and_waits_are_found_by_correlation_and_events_by_their_sender_s_id(
    reads: Client,
) -> None:
    (run,) = many_runs(1)
    waits = wait(run, "CORR-55")
    came = event("CORR-55", event_id="evt_7731")
    assert found(reads, "CORR-55") == [
        ("waits", waits.pk, "correlation"),
        ("events", came.pk, "correlation"),
    ]
    assert found(reads, "evt_77") == [("events", came.pk, "event ID")]
    assert found(reads, came.pk.hex[-6:]) == [("events", came.pk, "ID")]
    (hit,) = page_at(reads, "CORR-55").groups[0].hits
    assert hit.url == f"/runs/{run.pk}/"


def test_providers_are_found_by_name_whatever_its_case(reads: Client, provider: Provider) -> None:
    assert found(reads, "PAYM") == [("providers", provider.pk, "name")]


def test_exact_ones_come_first_and_the_newest_of_each(reads: Client) -> None:
    keys = ("ORD-10", "ORD-1", "ORD-11")
    longer, exact, longest = (many_runs(1, start_key=key)[0] for key in keys)
    assert [pk for _, pk, _ in found(reads, "ORD-1")] == [exact.pk, longest.pk, longer.pk]


SIGNS = ("%%%", "___", "ORD%", "O_D", r"\\\\", "'; --", '"""', "ünï", "@ ==", "()$.*")


@pytest.mark.parametrize("q", SIGNS)
def test_signs_of_other_languages_mean_themselves(reads: Client, q: str) -> None:
    many_runs(1, start_key="ORD-1", labels={"a": "b"})
    assert found(reads, q) == []
    (run,) = many_runs(1, start_key=f"{q}abc", labels={"x": f"{q}def"})
    assert found(reads, q) == [("runs", run.pk, "start key")]
    assert found(reads, f"{q}def") == [("runs", run.pk, "label x")]


@pytest.mark.parametrize("q", ["\0\0\0", "ORD\0-1"])
def test_what_no_database_keeps_is_answered(reads: Client, q: str) -> None:
    many_runs(1, start_key="ORD-2")
    assert found(reads, q) == []


def test_what_is_too_short_is_not_looked_for(reads: Client) -> None:
    many_runs(1, start_key="AB")
    page = page_at(reads, "AB")
    assert (page.groups, page.too_short) == ((), True)
    assert page_at(reads, "").too_short is False


def test_markup_in_what_was_typed_and_found_is_shown_as_text(reads: Client) -> None:
    markup = "<img src=x onerror=1>"
    many_runs(1, start_key=markup)
    text = reads.get("/search/", {"q": markup}).content.decode()
    assert markup not in text
    assert escape(markup) in text


# --- the search box ---------------------------------------------------------------------------


def test_a_whole_id_from_the_search_box_leads_straight_there(
    reads: Client, provider: Provider
) -> None:
    operation = one_operation(provider)
    for pk, url in (
        (operation.pk, f"/operations/{operation.pk}/"),
        (operation.run_id, f"/runs/{operation.run_id}/"),
    ):
        answer = reads.get("/search/", {"q": str(pk), "go": "1"})
        assert (answer.status_code, answer["Location"]) == (HTTPStatus.FOUND, url)
    # Only from the box, and only the whole of it.
    assert reads.get("/search/", {"q": str(operation.pk)}).status_code == HTTPStatus.OK
    part = reads.get("/search/", {"q": operation.pk.hex[-6:], "go": "1"})
    assert part.status_code == HTTPStatus.OK
    assert reads.get("/search/", {"q": str(new_id()), "go": "1"}).status_code == HTTPStatus.OK


def test_every_page_has_the_search_box(reads: Client) -> None:
    assert 'action="/search/"' in reads.get("/runs/").content.decode()


# --- only what may be seen --------------------------------------------------------------------


def test_what_may_not_be_seen_is_not_found(reads: Client, provider: Provider) -> None:
    operation = one_operation(provider)
    elsewhere = Tenant.objects.create(slug="elsewhere", name="Elsewhere")
    Run.objects.filter(pk=operation.run_id).update(tenant=elsewhere, start_key="ORD-9")
    foreign = wait(Run.objects.get(pk=operation.run_id), "CORR-9")
    for q in (operation.pk, operation.run_id, "ORD-9", "order 0", "CORR-9", foreign.pk):
        assert found(reads, q) == [], q
        answer = reads.get("/search/", {"q": str(q), "go": "1"})
        assert answer.status_code == HTTPStatus.OK
    client = Client()
    client.force_login(stranger())
    assert found(client, "payments") == []


def test_others_crowds_do_not_hide_what_is_exactly_it(
    reads: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "LOOKED_AT", 3)
    elsewhere = Tenant.objects.create(slug="elsewhere", name="Elsewhere")
    for number in range(6):
        many_runs(1, tenant=elsewhere, workflow=f"w{number}", start_key="ORD-1")
    (own,) = many_runs(1, start_key="ORD-1")
    assert [pk for _, pk, _ in found(reads, "ORD-1")] == [own.pk]


def test_without_a_session_it_leads_to_the_login_page(client: Client) -> None:
    assert client.get("/search/?q=ORD").status_code == HTTPStatus.FOUND


# --- many -------------------------------------------------------------------------------------


def test_a_kind_is_paged_and_nothing_is_lost(
    reads: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "PAGE", 5)
    runs = [many_runs(1, start_key=f"ORD-{number:03}")[0] for number in range(12)]
    (group,) = page_at(reads, "ORD-").groups
    assert (len(group.hits), group.total) == (10, 12)
    seen: list[UUID] = []
    url = group.more_url
    while url:
        (part,) = reads.get(url).context["page"].groups
        seen += [hit.id for hit in part.hits]
        url = part.more_url
    assert seen == [run.pk for run in reversed(runs)]


def test_its_queries_do_not_grow_with_its_rows(reads: Client, provider: Provider) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page_at(reads, "ord")
        return len(captured)

    many_held(1, provider)
    many_runs(1, start_key="ord-x")
    queries()  # the first asks for content types that are remembered
    one = queries()
    many_held(20, provider)
    for number in range(20):
        many_runs(1, start_key=f"ord-{number}")
        event(f"ord-{number}")
    assert queries() == one <= 12


def a_history(provider: Provider, number: int) -> None:
    """So many rows of each kind that reading a table as a whole costs more than an index."""
    holds = many_held(number, provider)
    Transmission.objects.bulk_create(
        Transmission(
            operation_id=hold.operation_id,
            number=1,
            attempt=new_id(),
            worker=new_id(),
            fence=1,
            purpose="first",
            in_flight_until=hold.due_at,
            state="acknowledged",
            ended_at=hold.due_at,
            provider_request_id=f"req_{place}",
        )
        for place, hold in enumerate(holds)
    )
    Operation.objects.update(resource=Concat(Value("re_"), "idempotency_key"))
    start_key = Concat(Value("ORD-"), Cast("pk", CharField()))
    Run.objects.update(start_key=start_key, labels=JSONObject(order=start_key))
    source = event().source
    Event.objects.bulk_create(
        Event(source=source, tenant=source.tenant, correlation=f"C-{place}", event_id=f"e-{place}")
        for place in range(number)
    )
    Wait.objects.bulk_create(
        Wait(
            run=hold.run,
            step="s",
            visit=1,
            tenant=source.tenant,
            event_types=[],
            correlation=f"C-{hold.pk}",
        )
        for hold in holds
    )


# Of every way, the index that must lead to it.
WAYS = {
    "abcdef": {"run_id_end", "operation_id_end", "event_id_end"},
    "ORD-70": {
        *("run_start_key", "run_labels", "operation_target", "operation_resource"),
        *("transmission_request_id", "operation_key_once_per_provider"),
        *("event_event_id", "event_correlation", "wait_correlation_begins"),
    },
}


def test_every_way_is_over_an_index(reads: Client, provider: Provider) -> None:
    a_history(provider, 1000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        for q, indexes in WAYS.items():
            with CaptureQueriesContext(connection) as captured:
                page_at(reads, q)
            plans = []
            for query in captured.captured_queries:
                if "UNION" in query["sql"]:
                    cursor.execute(f"EXPLAIN {query['sql']}")
                    plans += [row[0] for row in cursor.fetchall()]
            whole = "\n".join(plans)
            assert {name for name in indexes if name not in whole} == set(), whole
