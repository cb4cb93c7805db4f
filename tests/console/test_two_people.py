"""Two people in the console: the same page for both, and nothing moves before the second."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from reconciliation.models import (
    AuditEntry,
    Decision,
    DecisionDraft,
    DecisionProposal,
    Evidence,
    Hold,
    Operation,
    ProposalEnd,
)
from tests.console.posting import HTMX, filled, form_at, post, url_of
from tests.deciding import run_hold, seconder_of, two_needed
from tests.destination import RunningDestination
from tests.factories import (
    NOTE,
    advanced,
    held_operation,
    open_hold_of,
    owner_of,
    person,
    reader,
    ready_provider,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def held(destination: RunningDestination) -> Operation:
    """A comment whose answer was lost, at a desk whose queue asks for two people."""
    ready_provider("desk", destination.url)
    operation = held_operation(destination)
    two_needed(open_hold_of(operation))
    return operation


def as_user(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def first(held: Operation) -> Client:
    return as_user(person())


@pytest.fixture
def second(held: Operation) -> Client:
    return as_user(seconder_of(open_hold_of(held).queue))


def proposal_at(client: Client, url: str) -> Any:
    shown = client.get(url).context["page"].proposal
    assert shown is not None, "the page shows no proposal"
    return shown


def verdict(client: Client, url: str, chosen: str, *, htmx: bool = False, **fields: str) -> Any:
    """Post the second person's form as the page shows it."""
    form = proposal_at(client, url).form
    given = {
        "verdict": chosen,
        "version": form.version,
        "token": form.token,
        "code": form.code,
        "note": NOTE if chosen == "refuse" else "",
    }
    return client.post(form.url, given | fields, headers=HTMX if htmx else {})


def unmoved(operation: Operation) -> bool:
    operation.refresh_from_db()
    operation.run.refresh_from_db()
    return (operation.state, operation.run.state) == ("held", "held")


# --- the first --------------------------------------------------------------------------------


def test_the_form_says_before_the_button_that_somebody_else_confirms(
    first: Client, second: Client, held: Operation
) -> None:
    form = form_at(first, url_of(held))
    for option in form.offered:
        takes_two = option.kind != "keep_holding"
        assert option.takes_two is takes_two
        assert option.button.startswith("Propose: " if takes_two else "Record: ")
        if takes_two:
            assert option.then[0] == "Nothing moves until somebody else confirms it."
            assert option.needs[-1].detail == "second_1 may confirm it"
            assert not option.needs[-1].met
    assert "Two people decide" in first.get(url_of(held)).content.decode()
    page = first.get(url_of(held)).context["page"]
    assert page.takes_two
    assert [owner.name for role, owner in page.people if role == "Can confirm"] == ["second_1"]


def test_a_queue_where_nobody_else_may_confirm_says_so(first: Client, held: Operation) -> None:
    form = form_at(first, url_of(held))
    assert "nobody else may confirm here yet" in form.offered[0].needs[-1].detail
    people = first.get(url_of(held)).context["page"].people
    assert [owner.name for role, owner in people if role == "Can confirm"] == ["nobody else yet"]


@pytest.mark.parametrize("htmx", [False, True])
def test_proposing_moves_nothing_and_shows_what_waits(
    first: Client, second: Client, held: Operation, htmx: bool
) -> None:
    waiting = f"{reverse('review')}?view=second"
    assert second.get(waiting).context["page"].rows == ()
    answer = post(first, form_at(first, url_of(held)), "applied", htmx=htmx)
    assert answer.status_code == (HTTPStatus.OK if htmx else HTTPStatus.SEE_OTHER)
    assert unmoved(held)
    assert [row.id for row in second.get(waiting).context["page"].rows] == [held.pk]
    page = first.get(url_of(held)).context["page"]
    assert (page.decide, page.proposal.is_yours, page.proposal.form.may) == (None, True, "withdraw")
    assert [entry.state for entry in page.record if entry.kind == "decision"] == ["proposed"]
    (row,) = first.get(reverse("review")).context["page"].rows
    assert row.next_move == "Somebody else confirming or refusing what is proposed."
    text = answer.content.decode() if htmx else first.get(url_of(held)).content.decode()
    assert "Needs a second person" in text
    assert "Withdraw my proposal" in text
    assert NOTE in text


def test_who_proposed_it_takes_it_back_and_decides_anew(first: Client, held: Operation) -> None:
    post(first, form_at(first, url_of(held)), "applied")
    assert verdict(first, url_of(held), "withdraw").status_code == HTTPStatus.SEE_OTHER
    assert form_at(first, url_of(held)).version == 3
    record = first.get(url_of(held)).context["page"].record
    assert [entry.state for entry in record if entry.kind == "decision"] == [
        "proposed",
        "withdrawn",
    ]


# --- the second -------------------------------------------------------------------------------


@pytest.mark.parametrize("htmx", [False, True])
def test_the_second_person_sees_it_all_and_confirms(
    first: Client, second: Client, held: Operation, htmx: bool
) -> None:
    post(first, form_at(first, url_of(held)), "applied")
    shown = proposal_at(second, url_of(held))
    assert (shown.by, shown.note, shown.resource) == ("reviewer_1", NOTE, "c_1")
    assert shown.form.button == "Confirm and record: it is done"
    assert any("tell_requester" in line for line in shown.then)
    answer = verdict(second, url_of(held), "confirm", htmx=htmx)
    assert answer.status_code == (HTTPStatus.OK if htmx else HTTPStatus.SEE_OTHER)
    assert Decision.objects.get().second_name == "second_1"
    assert advanced(held.run).state == "completed"
    page = second.get(url_of(held)).context["page"]
    assert page.decision.by == "reviewer_1, confirmed by second_1"
    assert page.proposal is None


def test_a_refusal_without_a_reason_is_refused_itself(
    first: Client, second: Client, held: Operation
) -> None:
    post(first, form_at(first, url_of(held)), "abandon")
    answer = verdict(second, url_of(held), "refuse", htmx=True, note="No.")
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    form = answer.context["page"].proposal.form
    assert "at least 20 characters" in form.errors["note"]
    assert form.note == "No."
    assert verdict(second, url_of(held), "refuse").status_code == HTTPStatus.SEE_OTHER
    assert ProposalEnd.objects.get().note == NOTE
    assert unmoved(held)
    assert form_at(first, url_of(held)).offered


def test_the_first_person_s_own_form_confirms_nothing(first: Client, held: Operation) -> None:
    post(first, form_at(first, url_of(held)), "applied")
    owner = as_user(owner_of(open_hold_of(held).queue, "reviewer_2"))
    for client in (first, owner):  # the author, and one who may decide but not confirm
        form = proposal_at(client, url_of(held)).form or proposal_at(first, url_of(held)).form
        given = {
            "verdict": "confirm",
            "version": form.version,
            "token": form.token,
            "code": form.code,
        }
        assert client.post(form.url, given).status_code == HTTPStatus.FORBIDDEN
    assert unmoved(held)
    assert not Decision.objects.exists()


def test_who_may_only_look_sees_what_is_proposed_and_no_form(
    first: Client, held: Operation
) -> None:
    post(first, form_at(first, url_of(held)), "applied")
    looks = as_user(reader(open_hold_of(held).queue))
    shown = proposal_at(looks, url_of(held))
    assert shown.form is None
    assert shown.not_yours
    decide = looks.get(url_of(held)).content.decode().split('id="decide"')[1]
    assert "<form" not in decide.split('id="record"')[0]


def test_facts_that_changed_void_the_proposal_in_sight_of_all(
    first: Client, second: Client, held: Operation
) -> None:
    post(first, form_at(first, url_of(held)), "applied")
    early = proposal_at(second, url_of(held)).form
    Evidence.objects.create(operation=held, kind="conflict", source="look-up")
    shown = proposal_at(second, url_of(held))
    assert (shown.is_void, shown.form) == (True, None)
    assert "has changed since" in shown.since
    given = {"verdict": "confirm", "version": early.version, "token": early.token}
    answer = second.post(early.url, given | {"code": early.code})
    assert answer.status_code == HTTPStatus.CONFLICT
    assert "the proposal is void" in answer.content.decode()
    assert ProposalEnd.objects.get().kind == "void"
    record = first.get(url_of(held)).context["page"].record
    assert [entry.state for entry in record if entry.kind == "decision"] == ["proposed", "void"]
    assert post(first, form_at(first, url_of(held)), "abandon").status_code == HTTPStatus.SEE_OTHER


def test_whoever_comes_second_with_a_proposal_sees_the_first_s_beside_it(
    first: Client, held: Operation
) -> None:
    other = as_user(owner_of(open_hold_of(held).queue, "reviewer_2"))
    early, late = form_at(first, url_of(held)), form_at(other, url_of(held))
    post(first, early, "applied")
    answer = post(other, late, "abandon", htmx=True, note="I would rather give this one up.")
    assert answer.status_code == HTTPStatus.CONFLICT
    overtaken = answer.context["page"].overtaken
    assert (overtaken.theirs.title, overtaken.theirs.state) == ("It is done", "proposed")
    assert overtaken.note == "I would rather give this one up."
    draft = DecisionDraft.objects.get()
    assert (draft.user.get_username(), draft.typed["note"]) == ("reviewer_2", overtaken.note)
    assert DecisionProposal.objects.count() == 1


@pytest.mark.parametrize("page", ["operation", "held_run"])
@pytest.mark.parametrize("form", ["second", "correct", "draft"])
@pytest.mark.parametrize("method", ["get", "head"])
def test_looking_records_nothing(
    first: Client, held: Operation, page: str, form: str, method: str
) -> None:
    subject = held.pk if page == "operation" else held.run_id
    url = reverse(f"{page}_{form}", args=[subject])
    assert getattr(first, method)(url).status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert not ProposalEnd.objects.exists()
    assert not DecisionDraft.objects.exists()


def test_two_people_end_a_held_run(destination: RunningDestination) -> None:
    hold = two_needed(run_hold(destination))
    url = reverse("held_run", args=[hold.run_id])
    first, second = as_user(person()), as_user(seconder_of(hold.queue))
    post(first, form_at(first, url), "fail_run")
    assert Hold.objects.get().state == "open"
    assert verdict(second, url, "confirm").status_code == HTTPStatus.SEE_OTHER
    hold.held_run.refresh_from_db()
    assert hold.held_run.state == "failed"


# --- drafts -----------------------------------------------------------------------------------


def test_what_is_typed_is_there_again_after_the_session_has_ended(
    first: Client, held: Operation
) -> None:
    form = form_at(first, url_of(held))
    typed = filled(form, "applied", note="Half a sen", code="abc")
    kept = first.post(form.draft_url, typed, headers={"X-Requested-With": "draft"})
    assert kept.status_code == HTTPStatus.NO_CONTENT
    first.logout()
    assert first.post(form.draft_url, typed).status_code == HTTPStatus.FOUND  # to the login
    again = form_at(as_user(person()), url_of(held))
    assert (again.draft.note, again.draft.kind, again.draft.code) == ("Half a sen", "applied", "")
    assert again.draft_saved_at is not None
    assert next(o for o in again.offered if o.kind == "applied").needs[0].met  # the record c_1
    others = as_user(owner_of(open_hold_of(held).queue, "reviewer_2"))
    assert form_at(others, url_of(held)).draft.note == ""
    assert "Half a sen" not in others.get(url_of(held)).content.decode()
    assert not AuditEntry.objects.filter(detail__icontains="Half").exists()


def test_a_draft_is_saved_and_thrown_away_without_scripts(first: Client, held: Operation) -> None:
    form = form_at(first, url_of(held))
    saved = first.post(form.draft_url, filled(form, "abandon", note="Not yet."))
    assert (saved.status_code, saved["Location"]) == (
        HTTPStatus.SEE_OTHER,
        f"{url_of(held)}#decide",
    )
    assert form_at(first, url_of(held)).draft.note == "Not yet."
    first.post(form.draft_url, filled(form, "abandon") | {"discard": "1"})
    assert form_at(first, url_of(held)).draft.note == ""


def test_what_was_refused_is_kept_and_what_was_recorded_is_not(
    first: Client, held: Operation
) -> None:
    post(first, form_at(first, url_of(held)), "applied", code="zzzzzz")
    form = form_at(first, url_of(held))
    assert (form.draft.note, form.draft.resource) == (NOTE, "c_1")
    post(first, form, "applied")
    assert not DecisionDraft.objects.exists()


def test_nobody_keeps_a_draft_on_what_they_may_not_see(held: Operation) -> None:
    stranger = as_user(person("stranger_1"))
    url = reverse("operation_draft", args=[held.pk])
    assert stranger.post(url, {"note": "Let me in"}).status_code == HTTPStatus.NOT_FOUND


# --- corrections ------------------------------------------------------------------------------


def correction(client: Client, url: str, **fields: str) -> Any:
    form = client.get(url).context["page"].correction
    given = {"token": form.token, "code": form.code, "note": f"It was c_2: {NOTE}"}
    return client.post(form.url, given | fields)


def test_a_correction_stands_beside_the_decision_and_calls_nothing_back(
    destination: RunningDestination,
) -> None:
    ready_provider("desk", destination.url)
    held = held_operation(destination)
    client = as_user(person())
    post(client, form_at(client, url_of(held)), "applied")
    assert advanced(held.run).state == "completed"
    refused = correction(client, url_of(held), note="wrong")
    assert refused.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "at least 20" in refused.context["page"].correction.errors["note"]
    assert correction(client, url_of(held)).status_code == HTTPStatus.SEE_OTHER
    page = client.get(url_of(held)).context["page"]
    assert page.decision.title == "It is done"  # still in force
    assert [entry.lead for entry in page.record if entry.kind == "decision"] == [
        "It is done.",
        "Correction.",
    ]
    looks = as_user(reader(Hold.objects.get().queue))
    assert looks.get(url_of(held)).context["page"].correction is None


def test_the_one_who_came_second_may_turn_what_they_typed_into_a_correction(
    destination: RunningDestination,
) -> None:
    ready_provider("desk", destination.url)
    held = held_operation(destination)
    first = as_user(person())
    other = as_user(owner_of(open_hold_of(held).queue, "reviewer_2"))
    late = form_at(other, url_of(held))
    post(first, form_at(first, url_of(held)), "applied")
    answer = post(other, late, "abandon", note="It was never done: I asked the desk.")
    assert answer.status_code == HTTPStatus.CONFLICT
    assert "Add a correction" in answer.content.decode()
    assert answer.context["page"].correction.note == "It was never done: I asked the desk."
