"""Case A20 with approvals: two clicks, a changed mind, and links that machines open first."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from tests.acceptance.test_a20_pressed_twice import links_on
from tests.approving import approver, proposed
from tests.destination import RunningDestination
from tests.factories import advanced, ready_provider
from tests.racing import at_once
from tests.sending import effects
from workflows.models import Approval, Event, Proposal, Run

pytestmark = pytest.mark.usefixtures("committed_db")


@pytest.fixture
def asked(destination: RunningDestination) -> Proposal:
    ready_provider("payments", destination.url)
    return proposed(order="ORD-7020")[1]


@pytest.fixture
def approving(asked: Proposal) -> Client:
    client = Client()
    client.force_login(approver())
    return client


def url_of(proposal: Proposal) -> str:
    return reverse("approval", args=[proposal.pk])


def filled(client: Client, proposal: Proposal, kind: str) -> dict[str, Any]:
    form = client.get(url_of(proposal)).context["page"].form
    return {"answer": kind, "digest": form.digest, "token": form.token, "note": "It was checked."}


def test_two_clicks_land_on_one_result_and_send_once(
    approving: Client, asked: Proposal, destination: RunningDestination
) -> None:
    given = filled(approving, asked, "approve")
    answers = at_once(*[lambda: approving.post(url_of(asked), given)] * 2)
    assert {(each.status_code, each["Location"]) for each in answers} == {
        (HTTPStatus.SEE_OTHER, f"{url_of(asked)}#answers")
    }
    assert (Approval.objects.count(), Event.objects.count()) == (1, 1)
    assert advanced(Run.objects.get(pk=asked.run_id)).state == "completed"
    assert effects(destination) == 1


def test_two_clicks_of_many_at_once_approve_each_once(approving: Client, asked: Proposal) -> None:
    list_url = reverse("approvals")
    picked = [row.pick for row in approving.get(list_url).context["page"].rows]
    given = {"pick": picked, "note": "Both were checked."}
    for answer in at_once(*[lambda: approving.post(list_url, given)] * 2):
        assert [each.done for each in answer.context["page"].outcomes] == [True]
    assert Approval.objects.count() == 1


def test_a_changed_mind_after_going_back_is_refused_as_already_answered(
    approving: Client, asked: Proposal
) -> None:
    given = filled(approving, asked, "approve")
    other_tab = filled(approving, asked, "deny")
    approving.post(url_of(asked), given)
    # The same form, out of the browser's history, with the other choice: it says what it did.
    again = approving.post(url_of(asked), given | {"answer": "deny"})
    assert again.status_code == HTTPStatus.SEE_OTHER
    refused = approving.post(url_of(asked), other_tab)
    assert refused.status_code == HTTPStatus.CONFLICT
    assert "approved by approver_1 already" in refused.content.decode()
    assert Approval.objects.get().answer == "approve"


def test_opening_every_link_with_and_without_a_session_changes_nothing(
    approving: Client, asked: Proposal
) -> None:
    pages = [url_of(asked), reverse("approvals"), reverse("run", args=[asked.run_id])]
    own = {
        reverse("approval_again", args=[asked.pk]),
        reverse("api_approval", args=[asked.pk]),
        reverse("api_answers", args=[asked.pk]),
    }
    links = sorted({*links_on(approving, *pages), *own} - {reverse("logout")})
    kept = (Proposal, Approval, Event, Run)
    before = [list(model.objects.order_by("pk").values()) for model in kept]
    for client in (approving, Client()):
        for link in links:
            for method in (client.get, client.head):
                assert method(link).status_code < HTTPStatus.INTERNAL_SERVER_ERROR
    assert [list(model.objects.order_by("pk").values()) for model in kept] == before


def test_a_form_of_one_proposal_answers_no_other(approving: Client, asked: Proposal) -> None:
    given = filled(approving, asked, "approve") | {"token": str(uuid4())}
    # It differs by what is sent, so what was shown is not what would be approved.
    other = proposed(order="ORD-7021")[1]
    answer = approving.post(url_of(other), given)
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert not Approval.objects.exists()
