"""The page of an operation: its evidence, its record, and asking the provider again."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import escape

from reconciliation.models import AuditEntry, Evidence, Hold, Operation, Provider, Transmission
from reconciliation.sealing import seal
from reconciliation.services.audit import add_entry
from tests.console.posting import HTMX, fragment, url_of
from tests.destination import RunningDestination
from tests.factories import (
    administrator,
    advanced,
    held_operation,
    open_hold_of,
    person,
    reader,
    ready_provider,
    settled,
    started_run,
    stranger,
    wait_until,
)
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

MARKUP = '<img src=x onerror="document.title=1">'
SECRET = "sk_live_marker_of_a_secret"


@pytest.fixture
def held(client: Client, destination: RunningDestination) -> Operation:
    """A comment whose answer was lost; `client` is signed in as its owner."""
    ready_provider("desk", destination.url, credential_sealed=seal(SECRET.encode()))
    client.force_login(person())
    return held_operation(destination)


@pytest.fixture
def away(client: Client, destination: RunningDestination) -> Operation:
    """A machine that was made, whose answer was lost, at a provider whose look-up is away."""
    ready_provider("machines", destination.url)
    client.force_login(person())
    destination.client.arm("apply_then_drop")
    destination.client.arm("lookup_unavailable", times=None)
    return Operation.objects.get(run=settled(started_run("replacement_worker")))


def page_at(client: Client, operation: Operation) -> Any:
    answer = client.get(url_of(operation))
    assert answer.status_code == HTTPStatus.OK
    return answer.context["page"]


def ask(client: Client, operation: Operation, *, htmx: bool = False) -> Any:
    url = reverse("operation_ask", args=[operation.pk])
    return client.post(url, headers=HTMX if htmx else {})


# --- what it shows ----------------------------------------------------------------------------


def test_it_tells_what_was_intended_sent_said_and_held(client: Client, held: Operation) -> None:
    page = page_at(client, held)
    assert page.outcome_unknown
    assert page.is_held
    assert "may have happened once, or not at all" in page.lede
    assert page.position == "step 3 of 4"
    assert page.sent_summary == "1 try: 1 left this system with no usable answer"
    rung, note = page.ladder
    assert (rung.waiting.kind, note.is_note, note.last) == ("gap", True, True)
    assert [step.name for step in page.blocks] == ["note_in_desk", "tell_requester"]
    assert page.owner.you
    assert [entry.lead for entry in page.record] == ["Intended.", "Sending.", "Unknown.", "Held."]
    assert json.loads(page.request.partition("\n")[2])["ticket"] == "T-17"


def test_a_settled_one_says_so_and_is_not_polled(
    client: Client, destination: RunningDestination
) -> None:
    ready_provider("payments", destination.url)
    client.force_login(person())
    operation = Operation.objects.get(run=advanced(started_run("refund")))
    page = page_at(client, operation)
    assert page.is_final
    assert page.decide is None
    assert page.lede == "It took effect and the result was checked. Nothing is needed."
    assert "hx-trigger" not in fragment(client, url_of(operation), "live").content.decode()


def test_a_mismatch_names_the_field_that_differs(
    client: Client, destination: RunningDestination
) -> None:
    ready_provider("payments", destination.url)
    client.force_login(person())
    destination.client.arm("mismatched_receipt")
    operation = Operation.objects.get(run=advanced(started_run("refund")))
    (card,) = page_at(client, operation).evidence
    assert card.kind == "conflict"
    assert "amount differ" in card.text
    assert "meant 12500, found 12501" in [fact.text for fact in card.facts]


def test_a_paused_provider_is_said_to_be_what_it_waits_for(
    client: Client, destination: RunningDestination
) -> None:
    ready_provider("payments", destination.url, dispatch="paused")
    client.force_login(person())
    operation = Operation.objects.get(run=advanced(started_run("refund")))
    assert "Dispatch is not on" in page_at(client, operation).lede


def test_while_romulus_goes_on_by_itself_nobody_is_told_what_to_do_about_the_key(
    client: Client, destination: RunningDestination
) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("drop_before")
    run = advanced(started_run("replacement_worker"))
    client.force_login(person())
    operation = Operation.objects.get(run=run)
    page = page_at(client, operation)
    assert (page.is_held, page.contract.advice) == (False, "")
    assert page.lede.endswith("Nothing is needed from you.")
    settled(run)
    assert page_at(client, operation).contract.advice == (
        "Ask the provider before anything is sent again."
    )


# --- only what may be seen --------------------------------------------------------------------


def test_another_s_operation_is_not_there(client: Client, held: Operation) -> None:
    knows_nothing = Client()
    knows_nothing.force_login(stranger())
    for url in (url_of(held), url_of(held).replace(str(held.pk), str(uuid4()))):
        assert knows_nothing.get(url).status_code == HTTPStatus.NOT_FOUND
    asked = ask(knows_nothing, held)
    assert asked.status_code == HTTPStatus.NOT_FOUND


def test_payloads_are_for_those_who_may_see_them(
    client: Client, destination: RunningDestination
) -> None:
    provider = ready_provider("payments", destination.url)
    client.force_login(person())
    destination.client.arm("mismatched_receipt")
    operation = Operation.objects.get(run=advanced(started_run("refund")))
    assert "12501" in client.get(url_of(operation)).content.decode()
    looks = Client()
    looks.force_login(reader(provider.default_queue))
    page = page_at(looks, operation)
    assert (page.request, page.evidence[0].raw) == ("", "")
    assert "12501" not in looks.get(url_of(operation)).content.decode()


def test_no_secret_is_on_any_page(client: Client, held: Operation) -> None:
    administers = Client()
    administers.force_login(administrator())
    provider = held.provider
    pages = [
        url_of(held),
        reverse("review"),
        reverse("run", args=[held.run_id]),
        reverse("admin:reconciliation_provider_change", args=[provider.pk]),
        reverse("admin:reconciliation_operation_change", args=[held.pk]),
    ]
    for url in pages:
        text = administers.get(url).content.decode()
        assert SECRET not in text, url
        assert bytes(provider.credential_sealed).decode() not in text, url
        assert bytes(held.request_sealed).decode() not in text, url


def test_a_record_without_an_id_of_its_own_is_not_called_more_than_one(
    client: Client, held: Operation
) -> None:
    """Settings that look for the ID in the wrong place: that is what is to be mended."""
    client.force_login(person())
    Evidence.objects.create(operation=held, kind="conflict", source="look-up")
    said = " ".join(card.text for card in page_at(client, held).evidence)
    assert "has none of its own where the settings look for it" in said
    assert "more than one record" not in said


def test_markup_in_what_providers_and_people_wrote_is_shown_as_text(
    client: Client, held: Operation
) -> None:
    Provider.objects.filter(pk=held.provider_id).update(name=MARKUP)
    Hold.objects.filter(operation=held).update(message=MARKUP)
    Evidence.objects.create(
        operation=held,
        kind="conflict",
        resource=MARKUP,
        source=MARKUP,
        detail_redacted=MARKUP,
        differences=[{"field": MARKUP, "intended": MARKUP, "found": MARKUP}],
    )
    for answer in (client.get(url_of(held)), fragment(client, url_of(held), "live")):
        text = answer.content.decode()
        assert MARKUP not in text
        assert escape(MARKUP) in text


# --- as fragments -----------------------------------------------------------------------------


def test_a_poll_gets_what_is_new_and_nothing_while_nothing_is(
    client: Client, held: Operation
) -> None:
    wait_until(Transmission.objects.get().in_flight_until)
    seen = page_at(client, held).seen
    url = f"{url_of(held)}?seen={seen}"
    assert fragment(client, url, "live").status_code == HTTPStatus.NO_CONTENT
    Evidence.objects.create(operation=held, kind="unavailable", source="look-up")
    told = fragment(client, url, "live")
    text = told.content.decode()
    assert told.status_code == HTTPStatus.OK
    assert "<html" not in text
    # The form is never inside what is polled: what was typed stays, and a line says what moved.
    assert "data-decide" not in text
    assert "has changed since you opened this form" in text


def test_history_gets_the_whole_page(client: Client, held: Operation) -> None:
    headers = HTMX | {"HX-Target": "live", "HX-History-Restore-Request": "true"}
    assert "<html" in client.get(url_of(held), headers=headers).content.decode()


# --- asking again -----------------------------------------------------------------------------


def test_asking_finds_the_proof_closes_the_hold_and_makes_the_run_ready(
    client: Client, destination: RunningDestination, away: Operation
) -> None:
    page = client.get(url_of(away))
    assert page.context["may_ask"]
    destination.client.disarm()
    answer = ask(client, away)
    assert (answer.status_code, answer["Location"]) == (
        HTTPStatus.SEE_OTHER,
        f"{url_of(away)}#says",
    )
    away.refresh_from_db()
    away.run.refresh_from_db()
    assert (away.state, away.run.state) == ("applied", "ready")
    assert Hold.objects.get(operation=away).state == "closed"
    entry = AuditEntry.objects.get(verb="asked")
    assert entry.object == f"operation:{away.pk}"
    assert entry.actor.endswith("reviewer_1")
    record = [entry.lead for entry in page_at(client, away).record]
    assert {"Asked.", "Match.", "Released."} <= set(record)


def test_a_provider_that_is_away_leaves_the_case_held_and_says_so(
    client: Client, away: Operation
) -> None:
    before = Evidence.objects.filter(operation=away).count()
    answer = ask(client, away, htmx=True)
    assert answer.status_code == HTTPStatus.OK
    text = answer.content.decode()
    assert "<html" not in text
    assert 'id="live"' in text
    latest = Evidence.objects.filter(operation=away).order_by("pk").last()
    assert latest is not None
    assert latest.kind == "unavailable"
    assert Evidence.objects.filter(operation=away).count() == before + 1
    away.refresh_from_db()
    assert away.state == "held"
    assert open_hold_of(away)


def test_while_an_answer_is_awaited_the_page_asks_often_and_says_so(
    client: Client, away: Operation
) -> None:
    assert page_at(client, away).poll_seconds == 30
    add_entry("user:1 ada", "asked", f"operation:{away.pk}", {})
    assert page_at(client, away).poll_seconds == 3
    assert "Asking now" in client.get(url_of(away)).content.decode()
    Evidence.objects.create(operation=away, kind="unavailable", source="look-up")
    assert page_at(client, away).poll_seconds == 30


def test_each_source_is_asked_in_its_turn_and_its_old_answer_stays(
    client: Client, away: Operation
) -> None:
    add_entry("user:1 ada", "asked", f"operation:{away.pk}", {})
    page = page_at(client, away)
    assert [(card.kind, card.asking) for card in page.evidence] == [("unavailable", True)]
    assert page.first_asked == ""
    Evidence.objects.create(operation=away, kind="lookup", source="look-up", completes=True)
    page = page_at(client, away)
    assert not any(card.asking for card in page.evidence)
    assert page.first_asked == "Check of the result"
    Evidence.objects.create(
        operation=away, kind="lookup", source="result check", completes=False, postcondition=True
    )
    assert not page_at(client, away).is_asking


def test_pressing_twice_within_ten_seconds_asks_once(
    client: Client, destination: RunningDestination, away: Operation
) -> None:
    asked = len(destination.client.journal(operation=str(away.pk)))
    ask(client, away)
    assert ask(client, away).status_code == HTTPStatus.SEE_OTHER
    assert ask(client, away, htmx=True).status_code == HTTPStatus.OK
    assert len(destination.client.journal(operation=str(away.pk))) == asked + 1
    assert AuditEntry.objects.filter(verb="asked").count() == 1


def test_who_may_only_look_may_not_ask(
    client: Client, destination: RunningDestination, away: Operation
) -> None:
    looks = Client()
    looks.force_login(reader(open_hold_of(away).queue))
    assert not looks.get(url_of(away)).context["may_ask"]
    asked = len(destination.client.journal(operation=str(away.pk)))
    assert ask(looks, away).status_code == HTTPStatus.FORBIDDEN
    assert len(destination.client.journal(operation=str(away.pk))) == asked


def test_where_nothing_can_be_asked_nothing_is(client: Client, held: Operation) -> None:
    assert not client.get(url_of(held)).context["may_ask"]
    assert ask(client, held).status_code == HTTPStatus.SEE_OTHER
    assert not AuditEntry.objects.filter(verb="asked").exists()


def test_a_provider_that_cannot_be_asked_as_it_is_set_up_says_why(
    client: Client, away: Operation
) -> None:
    Provider.objects.filter(pk=away.provider_id).update(adapter="gone")
    answer = ask(client, away, htmx=True)
    assert answer.status_code == HTTPStatus.OK
    latest = answer.context["page"].evidence[0]
    assert latest.kind == "unavailable"
    assert "could not be asked (InvalidProvider)" in latest.text


@pytest.mark.parametrize("method", ["get", "head", "put"])
def test_only_a_post_asks(
    client: Client, destination: RunningDestination, away: Operation, method: str
) -> None:
    asked = len(destination.client.journal(operation=str(away.pk)))
    answer = getattr(client, method)(reverse("operation_ask", args=[away.pk]))
    assert answer.status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert len(destination.client.journal(operation=str(away.pk))) == asked


# --- many -------------------------------------------------------------------------------------


def test_its_queries_do_not_grow_with_what_it_has_been_through(
    client: Client, held: Operation
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page_at(client, held)
        return len(captured)

    queries()
    few = queries()
    been_through(held, 50)
    assert queries() == few <= 40


def been_through(operation: Operation, times: int) -> None:
    """Let `operation` have been sent and asked about so often, each time by another worker."""
    now = database_now()
    first = operation.transmissions.get()
    Transmission.objects.bulk_create(
        Transmission(
            operation=operation,
            number=number,
            attempt=uuid4(),
            worker=uuid4(),
            fence=1000 + number,
            purpose="replay",
            in_flight_until=first.in_flight_until,
            ended_at=now,
            phase="wait",
            state="unknown",
        )
        for number in range(2, times + 2)
    )
    Evidence.objects.bulk_create(
        Evidence(operation=operation, kind="conflict", source=f"answer to send {place}")
        for place in range(times)
    )
