"""What is done to held cases from the console: forms, dialogs, threads, and plans for many."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from guardian.shortcuts import assign_perm

from reconciliation.models import BulkAction, CaseNote, Hold, Provider, Reminder, ReviewQueue
from reconciliation.services.assigning import PARTIAL, claim
from reconciliation.services.audit import actor_of, add_entry
from reconciliation.services.bulk import carry_out
from reconciliation.services.notes import ask, comment
from tests.console.posting import HTMX, form_at, fragment, post, url_of
from tests.factories import (
    administrator,
    held_step_run,
    many_held,
    owner_of,
    person,
    reader,
    ready_provider,
    stranger,
)
from workflows.services.clock import database_now
from workflows.services.runs import STARTED

pytestmark = pytest.mark.django_db

FORMS = ("review_assign", "review_snooze", "review_remind", "review_ask")
BUTTONS = ("review_claim", "review_put_back", "review_wake", "review_reminded")


@pytest.fixture
def provider() -> Provider:
    return ready_provider("payments")


@pytest.fixture
def hold(provider: Provider) -> Hold:
    return many_held(1, provider)[0]


@pytest.fixture
def lead(client: Client, provider: Provider) -> Client:
    """Signed in as `reviewer_1`, who may decide and assign."""
    assign_perm("reconciliation.assign", person(), provider.default_queue)
    client.force_login(me())
    return client


def me(name: str = "reviewer_1") -> Any:
    return get_user_model().objects.get(username=name)


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def at(name: str, hold: Hold) -> str:
    return reverse(name, args=[hold.pk])


def now(hold: Hold) -> Hold:
    return Hold.objects.get(pk=hold.pk)


# --- forms ------------------------------------------------------------------------------------


def test_a_case_is_assigned_through_its_form_and_the_reader_goes_back_to_the_list(
    lead: Client, hold: Hold
) -> None:
    other = owner_of(hold.queue, "reviewer_2")
    listed = "/review/?view=unassigned"
    shown = lead.get(at("review_assign", hold), headers={"Referer": f"http://testserver{listed}"})
    page, form = shown.context["page"], shown.context["form"]
    assert page.back == listed
    assert [str(label) for _, label in form.fields["to"].choices] == [
        "Choose somebody",
        "reviewer_1",
        "reviewer_2",
    ]
    assert not now(hold).assignee
    given = {"to": other.pk, "token": uuid4(), "back": page.back}
    answer = lead.post(at("review_assign", hold), given)
    assert (answer.status_code, answer["Location"]) == (HTTPStatus.SEE_OTHER, listed)
    assert now(hold).assignee == other


def test_to_htmx_a_form_is_a_dialog_and_what_was_done_reads_the_page_anew(
    lead: Client, hold: Hold
) -> None:
    for name in FORMS:
        dialog = lead.get(at(name, hold), headers=HTMX).content.decode()
        assert "<html" not in dialog
        assert 'hx-target="#act"' in dialog
    done = lead.post(at("review_claim", hold), headers=HTMX)
    assert (done.status_code, done["HX-Refresh"]) == (HTTPStatus.NO_CONTENT, "true")
    assert now(hold).assignee == me()


@pytest.mark.parametrize("back", ["https://example.com/", "//example.com", "javascript:1", "", "x"])
def test_nobody_is_led_out_of_the_console(lead: Client, hold: Hold, back: str) -> None:
    answer = lead.post(at("review_claim", hold), {"back": back})
    assert answer["Location"] == url_of(hold.operation)


def test_the_second_who_claims_is_told_who_was_first(lead: Client, hold: Hold) -> None:
    claim(hold.pk, owner_of(hold.queue, "reviewer_2"))
    answer = signed_in(owner_of(hold.queue, "reviewer_3")).post(at("review_claim", hold))
    assert answer.status_code == HTTPStatus.CONFLICT
    assert "reviewer_2 has it now. Nothing was changed." in answer.content.decode()


def test_a_form_that_was_read_before_somebody_else_got_the_case_changes_nothing(
    lead: Client, hold: Hold
) -> None:
    first, second = owner_of(hold.queue, "reviewer_2"), owner_of(hold.queue, "reviewer_3")
    claim(hold.pk, first)
    given = {"to": second.pk, "token": uuid4(), "note": "Please.", "seen": ""}
    answer = lead.post(at("review_assign", hold), given)
    assert answer.status_code == HTTPStatus.CONFLICT
    assert now(hold).assignee == first
    assert not CaseNote.objects.exists()


def test_what_is_missing_is_said_at_its_field_and_what_was_typed_stays(
    lead: Client, hold: Hold
) -> None:
    claim(hold.pk, me())
    other = owner_of(hold.queue, "reviewer_2")
    cases: dict[str, tuple[dict[str, Any], str]] = {
        "review_assign": ({"to": other.pk, "seen": me().pk, "token": uuid4()}, "id_note"),
        "review_ask": ({"text": "Which card?", "token": uuid4()}, "id_to"),
        "review_snooze": ({"within": "at", "until": ""}, "id_until"),
        "review_remind": ({"within": "at", "until": "2020-01-01T10:00"}, "id_until"),
    }
    for name, (given, field) in cases.items():
        answer = lead.post(at(name, hold), given)
        assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY, name
        assert list(answer.context["page"].errors) == [field], name
        assert f'href="#{field}"' in answer.content.decode()
    assert (
        "Which card?" in lead.post(at("review_ask", hold), cases["review_ask"][0]).content.decode()
    )
    assert now(hold).assignee == me()
    assert not CaseNote.objects.exists()


def test_a_case_is_snoozed_brought_back_and_reminded_of(lead: Client, hold: Hold) -> None:
    lead.post(at("review_snooze", hold), {"within": "4h"})
    lead.post(at("review_remind", hold), {"within": "tomorrow"})
    page = lead.get(url_of(hold.operation))
    thread = page.context["thread"]()
    assert thread.snoozed_until == now(hold).snoozed_until
    assert thread.reminded_at.hour == 8
    assert "Snoozed." in page.content.decode()
    lead.post(at("review_wake", hold))
    lead.post(at("review_reminded", hold))
    assert now(hold).snoozed_until is None
    assert not Reminder.objects.filter(ended_at=None).exists()


@pytest.mark.parametrize("name", [*FORMS, *BUTTONS, "review_notes", "review_preview"])
def test_a_case_that_is_not_theirs_to_see_is_not_there(lead: Client, hold: Hold, name: str) -> None:
    client = signed_in(stranger())
    made_up = reverse(name, args=[uuid4()])
    for url in (at(name, hold), made_up):
        for ask_for in (client.get, client.post):
            answer = ask_for(url)
            allowed = answer.status_code != HTTPStatus.METHOD_NOT_ALLOWED
            assert not allowed or answer.status_code == HTTPStatus.NOT_FOUND
    assert now(hold).assignee is None


@pytest.mark.parametrize("name", BUTTONS)
def test_a_link_does_nothing(lead: Client, hold: Hold, name: str) -> None:
    assert lead.get(at(name, hold)).status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert lead.head(at(name, hold)).status_code == HTTPStatus.METHOD_NOT_ALLOWED


def test_whoever_may_only_look_speaks_and_is_offered_nothing_else(hold: Hold) -> None:
    reads = signed_in(reader(hold.queue))
    thread = reads.get(url_of(hold.operation)).context["thread"]()
    offered = (thread.may_claim, thread.may_assign, thread.may_put_back, thread.may_snooze)
    assert not any(offered)
    for name, given in (("review_claim", {}), ("review_snooze", {"within": "1h"})):
        assert reads.post(at(name, hold), given).status_code == HTTPStatus.FORBIDDEN
    said = {"text": "I saw it there.", "token": uuid4()}
    assert reads.post(at("review_notes", hold), said).status_code == HTTPStatus.SEE_OTHER
    assert CaseNote.objects.get().by == me("reader_1")


# --- the thread -------------------------------------------------------------------------------


def test_what_is_said_stands_on_the_page_of_the_case(lead: Client, hold: Hold) -> None:
    said = {"text": "<b>Called</b> the desk.", "token": uuid4()}
    answer = lead.post(at("review_notes", hold), said)
    assert answer["Location"] == f"{url_of(hold.operation)}#notes"
    lead.post(at("review_notes", hold), said)  # back, and pressed again
    text = lead.get(url_of(hold.operation)).content.decode()
    assert text.count("&lt;b&gt;Called&lt;/b&gt; the desk.") == 1
    said = {"text": "  ", "token": uuid4()}
    refused = lead.post(at("review_notes", hold), said, headers=HTMX)
    assert refused.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "Write what the others should know." in refused.content.decode()
    assert CaseNote.objects.count() == 1


def test_what_was_said_in_a_queue_that_is_not_theirs_to_see_is_not_shown(
    hold: Hold, provider: Provider
) -> None:
    """The same case was held before, for other people."""
    theirs = ReviewQueue.objects.create(slug="fraud", name="Fraud")
    closed = {"state": "decided", "closed_at": database_now()}
    Hold.objects.filter(pk=hold.pk).update(queue=theirs, **closed)
    hold.refresh_from_db()
    comment(hold, administrator(), "The card was reported as stolen.", uuid4())
    Hold.objects.create(
        run=hold.run,
        operation=hold.operation,
        queue=provider.default_queue,
        reason="conflict_later",
        message="Another record was found.",
        due_at=database_now(),
    )
    looks = signed_in(reader(provider.default_queue)).get(url_of(hold.operation))
    assert looks.context["thread"]().notes == ()
    assert "stolen" not in looks.content.decode()
    everything = signed_in(administrator()).get(url_of(hold.operation))
    assert "stolen" in everything.content.decode()


def moved(answer: Any) -> dict[str, str]:
    """The parts of the thread that come with an answer to htmx: whether each is hidden."""
    found = re.findall(r'id="(notes-\w+)"( hidden)? hx-swap-oob="true"', answer.content.decode())
    return {name: hidden.strip() for name, hidden in found}


def test_what_was_offered_beside_the_notes_goes_with_a_decision(lead: Client, hold: Hold) -> None:
    url = url_of(hold.operation)
    lead.post(at("review_snooze", hold), {"within": "4h"})
    page = lead.get(url)
    offered = {at(name, hold) for name in ("review_claim", "review_wake", "review_ask")}
    assert {each for each in offered if each in page.content.decode()} == offered
    polled = f"{url}?seen=an+earlier+one"
    assert moved(fragment(lead, polled, "live")) == {"notes-marks": "", "notes-actions": ""}
    decided = post(lead, form_at(lead, url), "abandon", htmx=True)
    for answer in (decided, fragment(lead, polled, "live")):
        assert moved(answer) == {"notes-marks": "hidden", "notes-actions": "hidden"}
        assert not {each for each in offered if each in answer.content.decode()}


def test_what_was_offered_beside_the_notes_of_a_step_goes_with_a_decision(lead: Client) -> None:
    Provider.objects.all().delete()
    url = reverse("held_run", args=[held_step_run().pk])
    assert reverse("review_claim", args=[Hold.objects.get().pk]) in lead.get(url).content.decode()
    decided = post(lead, form_at(lead, url), "fail_run", htmx=True)
    assert moved(decided) == {"notes-marks": "hidden", "notes-actions": "hidden"}


def test_a_question_is_shown_until_somebody_answers_it(lead: Client, hold: Hold) -> None:
    asker = owner_of(hold.queue, "reviewer_2")
    question = ask(hold, asker, me(), "Which card?", uuid4())
    (note,) = lead.get(url_of(hold.operation)).context["thread"]().notes
    assert (note.answer_url, note.you) == (reverse("review_answer", args=[question.pk]), True)
    assert "reviewer_2 asks: Which card?" in lead.get(note.answer_url).content.decode()
    assert signed_in(stranger()).get(note.answer_url).status_code == HTTPStatus.NOT_FOUND
    lead.post(note.answer_url, {"text": "The blue one.", "token": uuid4()})
    thread = lead.get(url_of(hold.operation)).context["thread"]()
    assert [each.answer_url for each in thread.notes] == ["", ""]
    assert thread.questions == 0
    late = lead.post(note.answer_url, {"text": "The red one.", "token": uuid4()})
    assert late.status_code == HTTPStatus.CONFLICT
    assert "The red one." in late.content.decode()


def test_a_held_step_has_a_thread_too_and_an_operation_that_was_never_held_has_none(
    client: Client,
) -> None:
    run = held_step_run()
    client.force_login(me())
    hold = Hold.objects.get(run=run)
    comment(hold, me(), "The contract comes on Monday.", uuid4())
    text = client.get(reverse("held_run", args=[run.pk])).content.decode()
    assert "The contract comes on Monday." in text
    assert "Notes and questions" in client.get(at("review_notes", hold)).content.decode()


def test_a_thread_takes_the_same_queries_for_any_number_of_notes(lead: Client, hold: Hold) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            lead.get(at("review_notes", hold))
        return len(captured)

    comment(hold, me(), "One.", uuid4())
    queries()
    few = queries()
    for _ in range(5):
        ask(hold, owner_of(hold.queue, "reviewer_2"), me(), "Which card?", uuid4())
    assert queries() == few <= 12


# --- many at once -----------------------------------------------------------------------------


def bulk_url(holds: list[Hold], do: str, **more: Any) -> str:
    chosen = "&".join(f"hold={hold.pk}" for hold in holds)
    rest = "".join(f"&{name}={value}" for name, value in more.items())
    return f"{reverse('review_bulk')}?do={do}&{chosen}{rest}"


def confirmation(page: Any, **fields: Any) -> dict[str, Any]:
    return {"do": page.kind, "holds": page.holds, "token": page.token} | fields


def test_a_plan_tells_what_is_hit_and_what_not_and_why_and_changes_nothing(
    lead: Client, provider: Provider
) -> None:
    mine, settled, theirs, begun = many_held(4, provider)
    Hold.objects.filter(pk=settled.pk).update(state="closed", closed_at=database_now())
    other = ready_provider("machines")
    (no_right,) = many_held(1, other)
    Hold.objects.filter(pk=no_right.pk).update(queue=other.default_queue)
    to = owner_of(provider.default_queue, "reviewer_2")
    add_entry(actor_of(to), STARTED, f"run:{begun.run_id}", {})
    chosen = [mine, settled, theirs, no_right, begun]
    before = lead.get(bulk_url(chosen, "assign")).context["page"]
    assert not before.ready
    assert settled.pk not in {case.hold for case in before.hit}
    page = lead.get(bulk_url(chosen, "assign", to=to.pk)).context["page"]
    assert page.ready
    assert {case.hold for case in page.hit} == {mine.pk, theirs.pk}
    assert {case.hold: case.why_not for case in page.left_out} == {
        settled.pk: "It was settled meanwhile: nothing is left to do.",
        no_right.pk: "Giving it to somebody takes the right to assign the cases of its queue.",
        begun.pk: PARTIAL,
    }
    assert not BulkAction.objects.exists()
    assert not Hold.objects.exclude(assignee=None).exists()


def test_what_was_listed_is_confirmed_once_and_its_results_are_shown(
    lead: Client, provider: Provider
) -> None:
    holds = many_held(2, provider)
    to = owner_of(provider.default_queue, "reviewer_2")
    page = lead.get(bulk_url(holds, "assign", to=to.pk)).context["page"]
    many_held(1, provider)
    given = confirmation(page, to=to.pk)
    first = lead.post(reverse("review_bulk"), given)
    again = lead.post(reverse("review_bulk"), given)
    assert first["Location"] == again["Location"]
    action = BulkAction.objects.get()
    url = reverse("review_bulk_action", args=[action.pk])
    assert first["Location"] == url
    under_way = lead.get(url)
    assert "0 of 2 looked at" in under_way.content.decode()
    seen = under_way.context["page"].seen
    polled = HTMX | {"HX-Target": "progress"}
    quiet = lead.get(f"{url}?seen={seen}", headers=polled)
    assert quiet.status_code == HTTPStatus.NO_CONTENT
    carry_out(action.pk)
    ended = lead.get(f"{url}?seen={seen}", headers=polled)
    assert ended.status_code == 286
    assert "All 2 looked at" in ended.content.decode()
    assert "hx-trigger" not in ended.content.decode()
    assert set(Hold.objects.filter(assignee=to).values_list("pk", flat=True)) == {
        hold.pk for hold in holds
    }
    listed = lead.get(reverse("review_bulk")).context["rows"]
    assert [(row.url, row.settled, row.total) for row in listed] == [(url, 2, 2)]
    assert signed_in(to).get(reverse("review_bulk")).context["rows"] == ()
    # It is the affair of who confirmed it, and of administrators.
    assert signed_in(to).get(url).status_code == HTTPStatus.NOT_FOUND
    assert signed_in(administrator()).get(url).status_code == HTTPStatus.OK


def test_a_plan_that_was_made_to_name_a_stranger_tells_nobody_s_name(
    lead: Client, hold: Hold
) -> None:
    """Numbers of accounts are easily guessed; that there is one, and whose, is not told."""
    somebody = person("colleague_1", first_name="Gina", last_name="Elsewhere")
    given = {"do": "assign", "holds": hold.pk.hex, "to": somebody.pk, "token": uuid4()}
    refused = lead.post(reverse("review_bulk"), given)
    nobody = lead.post(reverse("review_bulk"), given | {"to": somebody.pk + 1000})
    assert refused.status_code == nobody.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert refused.content == nobody.content or "Gina" not in refused.content.decode()
    assert not BulkAction.objects.exists()


def test_all_that_a_list_shows_is_taken_as_a_second_step(lead: Client, provider: Provider) -> None:
    holds = many_held(3, provider)
    machines = ready_provider("machines")
    many_held(1, machines)
    page = lead.get(bulk_url(holds[:1], "remind", provider="payments")).context["page"]
    assert (len(page.hit), page.all_total) == (1, 3)
    everything = lead.get(f"{page.all_url}&within=1h")
    assert {case.hold for case in everything.context["page"].hit} == {hold.pk for hold in holds}
    until = everything.context["wanted"].until
    given = confirmation(everything.context["page"], until=f"{until:%Y-%m-%dT%H:%M:%S%z}")
    assert f'value="{given["until"]}"' in everything.content.decode().replace("&#x2B;", "+")
    lead.post(reverse("review_bulk"), given)
    action = BulkAction.objects.get()
    assert (action.until, action.items.count()) == (until, 3)


@pytest.mark.parametrize(
    "query", ["", "do=assign", "do=decide&all=1", "do=applied&hold=x", "do=remind&hold=x"]
)
def test_without_cases_or_with_anything_else_there_is_no_plan(lead: Client, query: str) -> None:
    answer = lead.get(f"{reverse('review_bulk')}?{query}")
    assert "page" not in answer.context
    assert "Nothing was done to many" in answer.content.decode()


@pytest.mark.parametrize("do", ["applied", "abandon", "send_again", "decide", ""])
def test_nothing_is_decided_for_many(lead: Client, hold: Hold, do: str) -> None:
    given = {"do": do, "holds": hold.pk.hex, "token": uuid4()}
    answer = lead.post(reverse("review_bulk"), given)
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "nothing was done" in answer.content.decode()
    assert not BulkAction.objects.exists()
    assert now(hold).state == "open"


def test_a_plan_takes_the_same_queries_for_any_number_of_cases(
    lead: Client, provider: Provider
) -> None:
    def queries(holds: list[Hold]) -> int:
        with CaptureQueriesContext(connection) as captured:
            lead.get(bulk_url(holds, "assign", to=me().pk))
        return len(captured)

    holds = many_held(20, provider)
    queries(holds[:1])
    assert queries(holds) == queries(holds[:2])


def test_the_head_of_a_case_assigns_and_snoozes_for_who_may(lead: Client, hold: Hold) -> None:
    def head_of(client: Client) -> str:
        page = client.get(reverse("operation", args=[hold.operation_id])).content.decode()
        return page[page.index('id="head"') : page.index('id="intended"')]

    for name in ("review_assign", "review_snooze"):
        assert head_of(lead).count(f'href="{at(name, hold)}"') == 1
        assert at(name, hold) not in head_of(signed_in(reader(hold.queue)))
    Hold.objects.filter(pk=hold.pk).update(state="closed", closed_at=database_now())
    assert at("review_assign", hold) not in head_of(lead)


def test_a_toast_says_once_what_was_done(lead: Client, hold: Hold) -> None:
    done = lead.post(at("review_snooze", hold), {"within": "4h", "back": "/review/"}, headers=HTMX)
    assert done["HX-Refresh"] == "true"
    said = "Snoozed: Refund order 0"
    assert said in lead.get("/review/").content.decode()
    assert said not in lead.get("/review/").content.decode()
