"""Deciding a held operation: recorded once, refused in words, and never around the rules."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse

from reconciliation.models import AuditEntry, Decision, Hold, Operation, ReviewQueue
from reconciliation.services.reconcile import ask_again
from tests.console.posting import HTMX, IN_A_MONTH, filled, form_at, post, url_of
from tests.deciding import learnt, two_needed
from tests.destination import RunningDestination
from tests.factories import (
    NOTE,
    advanced,
    held_operation,
    open_hold_of,
    owner_of,
    person,
    quick_contract,
    reader,
    ready_provider,
    settled,
    started_run,
    stranger,
)
from workflows.models import Run
from workflows.services.results import result_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def held(destination: RunningDestination) -> Operation:
    """A comment whose answer was lost, at a desk with neither key nor look-up."""
    ready_provider("desk", destination.url)
    return held_operation(destination)


@pytest.fixture
def owner(client: Client, held: Operation) -> Client:
    client.force_login(person())
    return client


def unchanged(operation: Operation) -> bool:
    """Whether nothing was decided: no decision, hold open, operation and run still held."""
    operation.refresh_from_db()
    operation.run.refresh_from_db()
    return (
        not Decision.objects.exists()
        and Hold.objects.get(operation=operation).state == "open"
        and (operation.state, operation.run.state) == ("held", "held")
    )


# --- recorded ---------------------------------------------------------------------------------


def test_it_is_done_is_recorded_and_the_dependent_step_runs(owner: Client, held: Operation) -> None:
    answer = post(owner, form_at(owner, url_of(held)), "applied")
    assert answer.status_code == HTTPStatus.SEE_OTHER
    assert answer["Location"] == f"{url_of(held)}#record"
    decision = Decision.objects.get()
    assert (decision.kind, decision.by_name, decision.note) == ("applied", "reviewer_1", NOTE)
    held.run.refresh_from_db()
    assert held.run.state == "ready"
    run = advanced(held.run)
    assert run.state == "completed"
    assert run.attempts.outputs().filter(step="tell_requester").exists()
    shown = owner.get(url_of(held)).content.decode()
    assert NOTE in shown
    assert "Nothing needs a decision" not in shown


def test_htmx_gets_the_form_s_place_and_what_moved_with_it(owner: Client, held: Operation) -> None:
    answer = post(owner, form_at(owner, url_of(held)), "applied", htmx=True)
    assert answer.status_code == HTTPStatus.OK
    text = answer.content.decode()
    assert "<html" not in text
    assert 'id="decide"' in text
    assert 'data-focus="record-h"' in text
    for part in ("head", "blocks", "record", "needs-you"):
        assert f'id="{part}"' in text
    assert "data-decide" not in text


def test_abandoning_lets_the_run_go_on_as_its_workflow_says(owner: Client, held: Operation) -> None:
    assert post(owner, form_at(owner, url_of(held)), "abandon").status_code == HTTPStatus.SEE_OTHER
    run = advanced(held.run)
    held.refresh_from_db()
    assert (run.state, held.state) == ("completed", "abandoned")
    assert "not noted in the desk" in result_of(run)


def test_keeping_on_hold_moves_nothing_but_the_due_time(owner: Client, held: Operation) -> None:
    answer = post(owner, form_at(owner, url_of(held)), "keep_holding")
    assert answer.status_code == HTTPStatus.SEE_OTHER
    hold = open_hold_of(held)
    assert (hold.due_at.strftime("%Y-%m-%dT%H:%M"), hold.version) == (IN_A_MONTH, 2)
    held.run.refresh_from_db()
    assert held.run.state == "held"
    assert form_at(owner, url_of(held)).version == 2


def test_sending_again_says_what_is_sent_and_sends_the_same_request(
    client: Client, destination: RunningDestination
) -> None:
    once = {"transmissions": 1, "first_pause_seconds": 0.01, "longest_pause_seconds": 0.02}
    ready_provider(
        "payments", destination.url, contract_version=quick_contract("keyed", budget=once)
    )
    destination.client.arm("drop_before")
    operation = Operation.objects.get(run=settled(started_run("refund")))
    client.force_login(person())
    form = form_at(client, url_of(operation))
    told = {option.kind: option.consequence for option in form.offered}["send_again"]
    assert operation.summary in told
    assert "same request" in told
    assert f"under the same key {operation.idempotency_key}" in told
    assert "If an earlier one took effect after all, it still happens once: until " in told
    assert post(client, form, "send_again").status_code == HTTPStatus.SEE_OTHER
    assert advanced(operation.run).state == "completed"
    posts = [
        entry
        for entry in destination.client.journal(operation=str(operation.pk))
        if entry.method == "POST"
    ]
    assert len(posts) == 2
    assert {(entry.body, entry.idempotency_key) for entry in posts} == {
        (posts[0].body, operation.idempotency_key)
    }


def test_what_it_rests_on_is_kept_with_the_note(owner: Client, held: Operation) -> None:
    form = form_at(owner, url_of(held))
    post(owner, form, "applied", evidence="seen")
    assert Decision.objects.get().note == f"{NOTE}\n\nRests on: I have seen it at Desk."


def test_submitting_twice_decides_once_and_answers_alike(owner: Client, held: Operation) -> None:
    form = form_at(owner, url_of(held))
    first = post(owner, form, "applied")
    second = post(owner, form, "applied")
    assert (first.status_code, first["Location"]) == (second.status_code, second["Location"])
    assert Decision.objects.count() == 1
    assert post(owner, form, "applied", htmx=True).status_code == HTTPStatus.OK


# --- the form ---------------------------------------------------------------------------------


def test_all_six_decisions_are_shown_and_those_not_offered_say_why(
    owner: Client, held: Operation
) -> None:
    form = form_at(owner, url_of(held))
    kinds = [option.kind for option in form.options]
    assert set(kinds) == {"applied", "send_again", "replace", "undo", "abandon", "keep_holding"}
    assert [option.kind for option in form.not_offered] == ["send_again", "replace", "undo"]
    assert all(option.why_not and option.what_would_help for option in form.not_offered)
    assert all(option.consequence and option.button for option in form.offered)
    assert form.draft.kind == ""  # nothing weighty is chosen for anyone


# --- refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "fields", "field", "sentence"),
    [
        ("applied", {"note": "  too short  "}, "note", "at least 20 characters"),
        ("applied", {"note": 30 * "\u200b"}, "note", "at least 20 characters"),
        ("applied", {"note": "x" * 4001}, "note", "4,000 characters at most"),
        ("applied", {"note": "short", "evidence": "seen"}, "note", "at least 20 characters"),
        ("applied", {"code": "abcdez"}, "code", "not the last 6"),
        ("applied", {"code": ""}, "code", "not the last 6"),
        ("applied", {"resource": " "}, "resource", "Name the provider"),
        ("applied", {"resource": "\u200b"}, "resource", "Name the provider"),
        ("applied", {"resource": "r" * 301}, "resource", "300 characters at most"),
        ("applied", {"note": f"{NOTE}\x00"}, "note", "Null characters"),
        ("keep_holding", {"until": ""}, "until", "Say until when"),
        ("keep_holding", {"until": "2020-01-01T10:00"}, "until", "not past"),
        ("keep_holding", {"until": "9999-12-31T23:59"}, "until", "within 366 days"),
        ("keep_holding", {"until": "tomorrow"}, "until", "Give date and time"),
        ("send_again", {}, "kind", "no key that guards a second send"),
        ("replace", {}, "kind", "still be on its way"),
        ("undo", {}, "kind", "cannot be called back"),
        ("correction", {}, "kind", "Choose one of the decisions"),
        ("try_again", {}, "kind", "Choose one of the decisions"),
        ("", {}, "kind", "Choose what you decide"),
        ("applied", {"token": "nonsense"}, "", "Reload the page"),
        ("applied", {"version": "two"}, "", "Reload the page"),
    ],
)
@pytest.mark.parametrize("htmx", [False, True])
def test_a_decision_that_lacks_something_is_refused_in_words_and_kept(
    owner: Client,
    held: Operation,
    kind: str,
    fields: dict[str, Any],
    field: str,
    sentence: str,
    htmx: bool,
) -> None:
    answer = post(owner, form_at(owner, url_of(held)), kind, htmx=htmx, **fields)
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    form = answer.context["page"].decide
    assert sentence in form.errors[field]
    assert form.draft.note == fields.get("note", NOTE)
    assert form.draft.kind == kind
    text = answer.content.decode()
    assert ("<html" in text) is not htmx
    assert 'id="errors"' in text
    assert unchanged(held)


def test_a_decision_without_a_form_token_is_refused(owner: Client, held: Operation) -> None:
    form = form_at(owner, url_of(held))
    bare = filled(form, "applied")
    del bare["token"], bare["version"]
    assert owner.post(form.url, bare).status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert unchanged(held)


# --- somebody was first -----------------------------------------------------------------------


@pytest.mark.parametrize("htmx", [False, True])
def test_the_second_of_two_reviewers_sees_the_first_s_decision_beside_theirs(
    owner: Client, held: Operation, htmx: bool
) -> None:
    owner_of(open_hold_of(held).queue, "reviewer_2")
    second = Client()
    second.force_login(person("reviewer_2"))
    early, late = form_at(owner, url_of(held)), form_at(second, url_of(held))
    post(owner, early, "applied")
    answer = post(second, late, "abandon", htmx=htmx, note="I would rather give this one up.")
    assert answer.status_code == HTTPStatus.CONFLICT
    page = answer.context["page"]
    assert (page.overtaken.theirs.by, page.overtaken.theirs.title) == ("reviewer_1", "It is done")
    assert page.overtaken.note == "I would rather give this one up."
    assert page.decide is None
    assert Decision.objects.count() == 1
    assert "reviewer_1 decided before you." in answer.content.decode()


def test_a_stale_version_is_refused_and_what_was_typed_stays(
    owner: Client, held: Operation
) -> None:
    stale = form_at(owner, url_of(held))
    post(owner, form_at(owner, url_of(held)), "keep_holding")
    answer = post(owner, stale, "abandon")
    assert answer.status_code == HTTPStatus.CONFLICT
    page = answer.context["page"]
    assert page.overtaken.theirs.title == "Keep holding"
    assert (page.decide.version, page.decide.draft.note) == (2, NOTE)
    assert Decision.objects.count() == 1


def test_a_form_of_an_earlier_hold_cannot_decide_the_next_one(
    client: Client, destination: RunningDestination
) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("drop_before")
    operation = Operation.objects.get(run=settled(started_run("replacement_worker")))
    client.force_login(person())
    old = form_at(client, url_of(operation))
    Hold.objects.filter(operation=operation).update(
        state="decided", closed_at=open_hold_of(operation).opened_at
    )
    first = Hold.objects.get(operation=operation)
    second = Hold.objects.create(
        run=operation.run,
        operation=operation,
        queue=first.queue,
        reason=first.reason,
        message=first.message,
        due_at=first.due_at,
    )
    assert second.version == old.version
    answer = post(client, old, "applied", resource="m_1")
    assert answer.status_code == HTTPStatus.CONFLICT
    assert not Decision.objects.exists()


def test_a_form_of_another_case_decides_nothing(owner: Client, held: Operation) -> None:
    form = form_at(owner, url_of(held))
    other = filled(form, "applied", token=f"{uuid4().hex}-{uuid4().hex}")
    assert owner.post(form.url, other).status_code == HTTPStatus.NOT_FOUND
    assert unchanged(held)


def test_proof_that_arrived_meanwhile_wins_over_a_decision(
    client: Client, destination: RunningDestination
) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("apply_then_drop")
    destination.client.arm("lookup_unavailable", times=None)
    operation = Operation.objects.get(run=settled(started_run("replacement_worker")))
    client.force_login(person())
    form = form_at(client, url_of(operation))
    destination.client.disarm()
    ask_again(operation.pk)
    answer = post(client, form, "abandon", htmx=True)
    assert answer.status_code == HTTPStatus.CONFLICT
    overtaken = answer.context["page"].overtaken
    assert overtaken.theirs is None
    assert "Proof arrived" in overtaken.message
    assert not Decision.objects.exists()


def test_what_became_known_after_the_form_was_opened_is_read_before_it_is_decided(
    owner: Client, held: Operation
) -> None:
    form = form_at(owner, url_of(held))
    contradicts = learnt(held, "conflict")
    answer = post(owner, form, "abandon")
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "What is known has changed since you opened this form" in answer.content.decode()
    assert unchanged(held)
    anew = answer.context["page"].decide
    assert (anew.draft.kind, anew.draft.note) == ("abandon", NOTE)
    assert post(owner, anew, "abandon").status_code == HTTPStatus.SEE_OTHER
    # So that what is on record as shown is what was shown.
    assert str(contradicts.pk) in Decision.objects.get().shown["evidence"]


def test_that_the_provider_could_not_be_asked_meanwhile_changes_nothing(
    owner: Client, held: Operation
) -> None:
    form = form_at(owner, url_of(held))
    learnt(held, "unavailable")
    assert post(owner, form, "abandon").status_code == HTTPStatus.SEE_OTHER


def test_a_form_that_was_to_propose_does_not_decide_alone(owner: Client, held: Operation) -> None:
    """The queue asked for two people when it was opened, and asks for one by now."""
    queue = two_needed(open_hold_of(held)).queue
    assert queue is not None
    form = form_at(owner, url_of(held))
    assert form.takes_two
    ReviewQueue.objects.filter(pk=queue.pk).update(approvals_needed=1)
    answer = post(owner, form, "abandon")
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "has changed since you opened this form" in answer.content.decode()
    assert unchanged(held)
    assert post(owner, form_at(owner, url_of(held)), "abandon").status_code == HTTPStatus.SEE_OTHER


def test_a_form_that_was_shown_with_another_version_of_the_workflow_decides_nothing(
    owner: Client, held: Operation
) -> None:
    """What starts by a decision, or fails by it, is the version's to say."""
    form = form_at(owner, url_of(held))
    Run.objects.filter(pk=held.run_id).update(version=2)
    assert post(owner, form, "abandon").status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert unchanged(held)


def test_a_form_that_does_not_say_what_it_was_shown_with_decides_nothing(
    owner: Client, held: Operation
) -> None:
    answer = post(owner, form_at(owner, url_of(held)), "abandon", basis="")
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert unchanged(held)


# --- not this person's, not this way ----------------------------------------------------------


def test_who_may_look_but_not_decide_is_told_so_and_who_may_not_look_finds_nothing(
    owner: Client, held: Operation
) -> None:
    form = form_at(owner, url_of(held))
    looks, knows_nothing = Client(), Client()
    looks.force_login(reader(open_hold_of(held).queue))
    knows_nothing.force_login(stranger())
    page = looks.get(url_of(held)).context["page"]
    assert page.decide is None
    assert "reviewer_1" in page.not_yours
    refused = post(looks, form, "applied")
    assert refused.status_code == HTTPStatus.FORBIDDEN
    assert "owners decide it" in refused.content.decode()
    in_panel = post(looks, form, "applied", htmx=True)
    assert in_panel.status_code == HTTPStatus.FORBIDDEN
    assert "<html" not in in_panel.content.decode()
    assert post(knows_nothing, form, "applied").status_code == HTTPStatus.NOT_FOUND
    assert unchanged(held)


@pytest.mark.parametrize("method", ["get", "head", "put", "delete"])
def test_only_a_post_decides(owner: Client, held: Operation, method: str) -> None:
    form = form_at(owner, url_of(held))
    answer = getattr(owner, method)(form.url, filled(form, "applied"))
    assert answer.status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert unchanged(held)


def test_a_session_that_has_ended_goes_to_the_login_page_and_records_nothing(
    owner: Client, held: Operation
) -> None:
    form = form_at(owner, url_of(held))
    owner.logout()
    page = f"http://testserver{url_of(held)}"
    answer = owner.post(form.url, filled(form, "applied"), headers=HTMX | {"HX-Current-URL": page})
    assert answer.status_code == HTTPStatus.UNAUTHORIZED
    assert answer["HX-Redirect"].startswith(reverse("login"))
    assert "ended=1" in answer["HX-Redirect"]
    assert str(held.pk) in answer["HX-Redirect"]
    assert unchanged(held)


def test_without_scripts_too_one_comes_back_to_the_case_and_is_told(
    owner: Client, held: Operation
) -> None:
    """Case A24: not to the address that a form goes to, which nobody can open."""
    form = form_at(owner, url_of(held))
    owner.logout()
    page = f"http://testserver{url_of(held)}"
    answer = owner.post(form.url, filled(form, "applied"), headers={"Referer": page}, follow=True)
    assert "was not recorded in your name" in answer.content.decode()
    back = answer.context["redirect_field_value"]
    assert back == url_of(held)
    elsewhere = owner.post(form.url, filled(form, "applied"), headers={"Referer": "//evil.example"})
    assert "evil" not in elsewhere["Location"]
    assert unchanged(held)


def test_another_site_s_form_decides_nothing(held: Operation) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(person())
    form = form_at(strict, url_of(held))
    assert post(strict, form, "applied").status_code == HTTPStatus.FORBIDDEN
    assert unchanged(held)


def test_a_decision_is_audited_without_its_note(owner: Client, held: Operation) -> None:
    post(owner, form_at(owner, url_of(held)), "applied")
    entry = AuditEntry.objects.get(verb="decided")
    assert entry.actor.endswith("reviewer_1")
    assert entry.object == f"operation:{held.pk}"
    assert NOTE not in str(entry.detail)


# --- what is said of a repeat -----------------------------------------------------------------


def card_at(client: Client, operation: Operation) -> Any:
    return client.get(url_of(operation)).context["page"].contract


@pytest.mark.parametrize(
    ("fields", "advice"),
    [
        ({"replay_trust": ""}, "nobody has shown here that it guards a second send"),
        ({"contradicted_at": Now(), "contradiction": "two"}, "was seen to break its contract"),
    ],
    ids=["never shown", "contradicted"],
)
def test_a_key_that_is_not_relied_on_promises_nothing(
    client: Client, destination: RunningDestination, fields: dict[str, Any], advice: str
) -> None:
    once = {"transmissions": 1, "first_pause_seconds": 0.01, "longest_pause_seconds": 0.02}
    provider = ready_provider(
        "payments", destination.url, contract_version=quick_contract("keyed", budget=once)
    )
    destination.client.arm("drop_before")
    operation = Operation.objects.get(run=settled(started_run("refund")))
    client.force_login(person())
    relied_on = card_at(client, operation)
    assert relied_on.before == "A send with the same key takes effect once at most."
    type(provider).objects.update(**fields)
    card = card_at(client, operation)
    assert (card.window.relied_on, card.before, card.after) == (False, "", "")
    assert card.advice.startswith("Do not rely on the key: ")
    assert advice in card.advice
    text = client.get(url_of(operation)).content.decode()
    assert "Not relied on" in text
    assert "of protection left" not in text


def test_without_a_look_up_it_is_said_that_the_provider_cannot_be_asked(
    owner: Client, held: Operation
) -> None:
    assert owner.get(url_of(held)).context["page"].says == (
        "Nothing yet, and Desk cannot be asked: its contract has no way to look a write up."
    )
