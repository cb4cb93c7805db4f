"""What people see and hear when what one of them proposed came to nothing, and while it waits."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from guardian.shortcuts import remove_perm

from reconciliation.models import DecisionDraft, Notification, Operation
from reconciliation.selectors.letters import is_worth_telling
from tests.console.posting import form_at, post, url_of
from tests.console.test_two_people import (  # noqa: F401 (fixtures)
    first,
    held,
    proposal_at,
    second,
    verdict,
)
from tests.deciding import run_hold, seconder_of, two_needed
from tests.destination import RunningDestination
from tests.factories import NOTE, open_hold_of, owner_of, person

pytestmark = pytest.mark.django_db


def test_whoever_decides_anew_reads_first_that_it_was_refused_and_why(
    first: Client,  # noqa: F811
    second: Client,  # noqa: F811
    held: Operation,  # noqa: F811
) -> None:
    post(first, form_at(first, url_of(held)), "applied")
    verdict(second, url_of(held), "refuse", note="There is no such comment at the desk.")
    ended = form_at(first, url_of(held)).ended
    assert ended.says == "second_1 refused what reviewer_1 proposed: “It is done”."
    assert ended.note == "“There is no such comment at the desk.”"
    page = first.get(url_of(held))
    assert ended.says in page.content.decode()
    # “Not done” is itself something that is decided here, so nothing else is called so.
    assert "is not done" not in page.context["page"].record[-1].text
    assert "does not count" in page.context["page"].record[-1].text
    (told,) = Notification.objects.filter(kind="not_confirmed")
    assert (told.person, is_worth_telling(told)) == (person(), True)
    post(first, form_at(first, url_of(held)), "abandon")
    told.refresh_from_db()
    assert not is_worth_telling(Notification.objects.get(pk=told.pk))


def test_what_its_author_took_back_is_told_to_nobody(
    first: Client,  # noqa: F811
    held: Operation,  # noqa: F811
) -> None:
    post(first, form_at(first, url_of(held)), "applied")
    verdict(first, url_of(held), "withdraw")
    assert form_at(first, url_of(held)).ended is None
    assert not Notification.objects.filter(kind="not_confirmed").exists()


def test_the_head_says_that_it_waits_for_another_and_leads_them_there(
    first: Client,  # noqa: F811
    second: Client,  # noqa: F811
    held: Operation,  # noqa: F811
) -> None:
    post(first, form_at(first, url_of(held)), "applied")
    heads = {}
    for name, client in (("first", first), ("second", second)):
        answer = client.get(url_of(held))
        heads[name] = answer.content.decode().split('id="head"')[1].split('class="facts')[0]
        lede = answer.context["page"].lede
        assert "reviewer_1 proposed “It is done”: nothing moves until somebody else" in lede
    assert "Needs a second person" in heads["first"]
    assert "to-decide" not in heads["first"]
    assert "Confirm or refuse" in heads["second"]


def test_who_may_confirm_does_not_depend_on_who_looks(
    first: Client,  # noqa: F811
    second: Client,  # noqa: F811
    held: Operation,  # noqa: F811
) -> None:
    """Nobody confirms what they proposed, so its author is not named to those who look."""
    queue = open_hold_of(held).queue
    assert queue is not None
    seconder_of(queue, "reviewer_1")
    post(first, form_at(first, url_of(held)), "applied")
    for client in (first, second):
        people = client.get(url_of(held)).context["page"].people
        assert [who.name for role, who in people if role == "Can confirm"] == ["second_1"]


@pytest.mark.parametrize("note", ["", NOTE])
def test_an_answer_that_came_too_late_is_called_one_and_all_that_moved_is_shown(
    first: Client,  # noqa: F811
    second: Client,  # noqa: F811
    held: Operation,  # noqa: F811
    note: str,
) -> None:
    queue = open_hold_of(held).queue
    assert queue is not None
    post(first, form_at(first, url_of(held)), "applied")
    form = proposal_at(second, url_of(held)).form
    remove_perm("reconciliation.decide", person(), queue)
    given = {"verdict": "confirm", "version": form.version, "token": form.token, "note": note}
    answer = second.post(form.url, given | {"code": form.code}, headers={"HX-Request": "true"})
    assert answer.status_code == HTTPStatus.CONFLICT
    overtaken = answer.context["page"].overtaken
    assert overtaken.title == "Your answer to the proposal"
    text = answer.content.decode()
    assert ("kept as your draft" in text) == bool(note) == DecisionDraft.objects.exists()
    record = text.split('id="record"')[1]
    assert "Void." in record


def test_a_proposal_that_was_withdrawn_first_is_called_withdrawn(
    first: Client,  # noqa: F811
    second: Client,  # noqa: F811
    held: Operation,  # noqa: F811
) -> None:
    post(first, form_at(first, url_of(held)), "applied")
    form = proposal_at(second, url_of(held)).form
    verdict(first, url_of(held), "withdraw")
    given = {"verdict": "confirm", "version": form.version, "token": form.token}
    answer = second.post(form.url, given | {"code": form.code})
    assert answer.context["page"].overtaken.theirs.state == "withdrawn"


def test_a_held_run_says_it_too(destination: RunningDestination) -> None:
    hold = two_needed(run_hold(destination))
    assert hold.queue is not None
    other = seconder_of(hold.queue)
    clients = []
    for user in (get_user_model().objects.get(pk=owner_of(hold.queue).pk), other):
        clients.append(Client())
        clients[-1].force_login(user)
    url = f"/runs/{hold.run_id}/hold/"
    post(clients[0], form_at(clients[0], url), "fail_run")
    assert "Confirm or refuse" in clients[1].get(url).content.decode()
    verdict(clients[1], url, "refuse")
    assert "second_1 refused what reviewer_1 proposed" in form_at(clients[0], url).ended.says
