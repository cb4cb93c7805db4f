"""A run that is held itself, where no operation is: its page and its decisions."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from reconciliation.models import Decision, Hold, ReviewQueue
from tests.console.posting import form_at, post
from tests.factories import (
    NOTE,
    held_step_run,
    many_held,
    owner_of,
    person,
    quick_contract,
    reader,
    ready_provider,
    stranger,
)
from workflows.models import Run
from workflows.services.stopping import cancel_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def held() -> Run:
    return held_step_run()


@pytest.fixture
def owner(client: Client, held: Run) -> Client:
    client.force_login(person())
    return client


def url_of(run: Run) -> str:
    return reverse("held_run", args=[run.pk])


def page_at(client: Client, run: Run) -> Any:
    answer = client.get(url_of(run))
    assert answer.status_code == HTTPStatus.OK
    return answer.context["page"]


def test_it_says_why_it_is_held_and_offers_three_decisions(owner: Client, held: Run) -> None:
    page = page_at(owner, held)
    assert page.title == "Refund is held at create_refund"
    assert "a contract" in page.lede
    assert "until someone decides" in page.lede
    assert page.position == "step 2 of 3: create_refund"
    assert page.owner.you
    assert [step.name for step in page.blocks] == ["create_refund", "tell_customer"]
    assert [option.kind for option in page.decide.offered] == [
        "try_again",
        "fail_run",
        "keep_holding",
    ]
    assert page.decide.subject == "run"
    assert page.decide.code == held.pk.hex[-6:]


def test_trying_again_makes_the_run_ready(owner: Client, held: Run) -> None:
    answer = post(owner, form_at(owner, url_of(held)), "try_again")
    assert (answer.status_code, answer["Location"]) == (
        HTTPStatus.SEE_OTHER,
        f"{url_of(held)}#record",
    )
    held.refresh_from_db()
    assert held.state == "ready"
    page = page_at(owner, held)
    assert (page.decide, page.is_held, page.decision.title) == (None, False, "Try the step again")
    assert page.title == "Refund was held"


def test_ending_the_run_fails_it_and_htmx_gets_what_moved(owner: Client, held: Run) -> None:
    answer = post(owner, form_at(owner, url_of(held)), "fail_run", htmx=True)
    text = answer.content.decode()
    assert answer.status_code == HTTPStatus.OK
    assert "<html" not in text
    for part in ("decide", "head", "blocks", "record"):
        assert f'id="{part}"' in text
    held.refresh_from_db()
    assert held.state == "failed"


def test_keeping_on_hold_moves_nothing(owner: Client, held: Run) -> None:
    assert post(owner, form_at(owner, url_of(held)), "keep_holding").status_code == 303
    held.refresh_from_db()
    assert held.state == "held"
    assert form_at(owner, url_of(held)).version == 2


@pytest.mark.parametrize(
    ("kind", "fields", "field"),
    [
        ("try_again", {"note": ""}, "note"),
        ("try_again", {"code": "000000"}, "code"),
        ("applied", {}, "kind"),
        ("keep_holding", {"until": ""}, "until"),
    ],
)
def test_a_decision_that_lacks_something_is_refused_in_words(
    owner: Client, held: Run, kind: str, fields: dict[str, Any], field: str
) -> None:
    answer = post(owner, form_at(owner, url_of(held)), kind, htmx=True, **fields)
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert answer.context["page"].decide.errors[field]
    # It stands where it stood: second on the page of a held run.
    assert '<span class="num" aria-hidden="true">2</span>' in answer.content.decode()
    assert not Decision.objects.exists()


def test_the_second_reviewer_sees_who_was_first(owner: Client, held: Run) -> None:
    owner_of(Hold.objects.get().queue, "reviewer_2")
    second = Client()
    second.force_login(person("reviewer_2"))
    late = form_at(second, url_of(held))
    post(owner, form_at(owner, url_of(held)), "fail_run")
    answer = post(second, late, "try_again")
    assert answer.status_code == HTTPStatus.CONFLICT
    overtaken = answer.context["page"].overtaken
    assert (overtaken.theirs.by, overtaken.note) == ("reviewer_1", NOTE)
    held.refresh_from_db()
    assert held.state == "failed"


def test_once_the_run_is_cancelled_it_says_so_and_asks_for_nothing(
    owner: Client, held: Run
) -> None:
    form = form_at(owner, url_of(held))
    cancel_run(held.pk, by="ada")
    page = page_at(owner, held)
    assert page.record[-1].text == "The run was cancelled; no decision was needed."
    assert page.decide is None
    overtaken = post(owner, form, "try_again")
    assert overtaken.status_code == HTTPStatus.CONFLICT
    assert "The run was cancelled meanwhile" in overtaken.content.decode()


def test_submitting_twice_decides_once(owner: Client, held: Run) -> None:
    form = form_at(owner, url_of(held))
    assert {post(owner, form, "try_again").status_code for _ in range(2)} == {303}
    assert Decision.objects.count() == 1


def test_a_run_with_an_unsettled_operation_cannot_be_ended_and_says_why(
    client: Client,
) -> None:
    (hold,) = many_held(1, ready_provider("payments", contract_version=quick_contract("keyed")))
    Hold.objects.filter(pk=hold.pk).update(operation=None)
    client.force_login(person())
    form = form_at(client, url_of(hold.run))
    (refused,) = form.not_offered
    assert refused.kind == "fail_run"
    assert "not settled" in refused.why_not
    assert post(client, form, "fail_run").status_code == HTTPStatus.UNPROCESSABLE_ENTITY


def test_who_may_look_may_not_decide_and_who_may_not_look_finds_nothing(
    owner: Client, held: Run
) -> None:
    form = form_at(owner, url_of(held))
    looks, knows_nothing = Client(), Client()
    looks.force_login(reader(Hold.objects.get().queue))
    knows_nothing.force_login(stranger())
    assert page_at(looks, held).decide is None
    assert post(looks, form, "try_again").status_code == HTTPStatus.FORBIDDEN
    assert knows_nothing.get(url_of(held)).status_code == HTTPStatus.NOT_FOUND
    assert post(knows_nothing, form, "try_again").status_code == HTTPStatus.NOT_FOUND
    of_another_queue = Client()
    queue = ReviewQueue.objects.create(slug="other", name="Other")
    of_another_queue.force_login(reader(queue, "reader_2"))
    assert of_another_queue.get(url_of(held)).status_code == HTTPStatus.NOT_FOUND


def test_a_run_that_was_never_held_has_no_such_page(owner: Client, held: Run) -> None:
    Hold.objects.filter(run=held).update(state="decided", closed_at=held.created_at)
    assert page_at(owner, held).decide is None
    (other,) = many_held(1, ready_provider("machines"))
    assert owner.get(url_of(other.run)).status_code == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("method", ["get", "head"])
def test_only_a_post_decides(owner: Client, held: Run, method: str) -> None:
    form = form_at(owner, url_of(held))
    assert getattr(owner, method)(form.url).status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert owner.head(url_of(held)).status_code == HTTPStatus.OK
    held.refresh_from_db()
    assert held.state == "held"


def test_markup_in_messages_and_notes_is_shown_as_text(owner: Client, held: Run) -> None:
    markup = "<img src=x onerror=alert(1)>"
    Hold.objects.update(message=markup)
    post(owner, form_at(owner, url_of(held)), "keep_holding", note=f"{markup} {markup}")
    text = owner.get(url_of(held)).content.decode()
    assert markup not in text
    assert escape(markup) in text
