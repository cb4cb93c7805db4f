"""The pages of approvals: what is asked, answered, refused, and who may see it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import NoReverseMatch, reverse
from guardian.shortcuts import assign_perm

from tests.approving import answered, approver, policy, proposal_of, proposed
from tests.factories import administrator, advanced, ready_provider, started_run, stranger, tenant
from workflows.core.proposals import Answer
from workflows.models import Approval, Proposal, Run, ServiceAccount

pytestmark = pytest.mark.django_db

URL = "/approvals/"
MOST_QUERIES, MOST_OF_A_PAGE = 8, 12


@pytest.fixture
def asked() -> Proposal:
    ready_provider("payments")
    return proposed()[1]


@pytest.fixture
def approving(client: Client) -> Client:
    client.force_login(approver())
    return client


def url_of(proposal: Proposal) -> str:
    return reverse("approval", args=[proposal.pk])


def page_at(client: Client, url: str) -> Any:
    answer = client.get(url)
    assert answer.status_code == HTTPStatus.OK, answer.status_code
    return answer.context["page"]


def filled(client: Client, proposal: Proposal, answer: str, **fields: str) -> dict[str, Any]:
    form = page_at(client, url_of(proposal)).form
    assert form is not None
    return {"answer": answer, "digest": form.digest, "token": form.token, "note": ""} | fields


def test_it_is_shown_in_the_words_of_the_business(approving: Client, asked: Proposal) -> None:
    (row,) = page_at(approving, URL).rows
    assert (row.title, row.amount) == ("Refund USD 125.00 to order ORD-7001", "USD 125.00")
    page = page_at(approving, url_of(asked))
    facts = {fact.term: fact.text for fact in page.facts}
    assert facts["Proposed by"] == "workflow approved_refund"
    assert facts["Target"] == "order ORD-7001"
    assert ("amount", "12500") in [(line.path, line.after) for line in page.parameters]


def test_it_is_approved_without_scripts_and_once(approving: Client, asked: Proposal) -> None:
    given = filled(approving, asked, "approve")
    answer = approving.post(url_of(asked), given)
    assert answer.status_code == HTTPStatus.SEE_OTHER
    assert approving.post(url_of(asked), given).status_code == HTTPStatus.SEE_OTHER
    assert Approval.objects.count() == 1
    assert page_at(approving, url_of(asked)).state == "approved"
    assert Run.objects.get(pk=asked.run_id).state == "ready"


def test_a_no_needs_its_reason_and_what_was_typed_stays(approving: Client, asked: Proposal) -> None:
    answer = approving.post(url_of(asked), filled(approving, asked, "deny", note="No."))
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert answer.context["page"].form.note == "No."
    assert not Approval.objects.exists()
    answer = approving.post(url_of(asked), {"token": "x"}, headers={"HX-Request": "true"})
    assert b"Choose what you answer." in answer.content


def test_who_comes_second_is_told_who_was_first(approving: Client, asked: Proposal) -> None:
    given = filled(approving, asked, "approve")
    answered(asked, approver("first_1"), Answer.DENY)
    answer = approving.post(url_of(asked), given)
    assert answer.status_code == HTTPStatus.CONFLICT
    assert "denied by first_1" in answer.context["page"].overtaken


def test_a_question_brings_the_run_back_and_the_next_proposal_shows_what_differs(
    approving: Client, asked: Proposal
) -> None:
    note = "Is this the full price, or a part of it?"
    approving.post(url_of(asked), filled(approving, asked, "question", note=note))
    run = advanced(Run.objects.get(pk=asked.run_id))
    assert (run.state, note in run.failure["message"]) == ("held", True)
    Run.objects.filter(pk=run.pk).update(
        state="ready", input=run.input | {"reason": "The full price."}
    )
    advanced(run)
    again = proposal_of(run)
    assert again.pk != asked.pk
    page = page_at(approving, url_of(again))
    assert [(each.path, each.after) for each in page.differences] == [("reason", "The full price.")]
    assert "sent back with a question" in page.before


@pytest.fixture
def own(client: Client) -> tuple[Client, Proposal]:
    """Somebody who may approve, and a proposal that an agent made for them."""
    user = approver("ada")
    ServiceAccount.objects.create(kind="agent", slug="refund-bot", name="Bot", owner=user)
    ready_provider("payments")
    run = advanced(started_run("approved_refund", agent="refund-bot", on_behalf_of="ada"))
    client.force_login(user)
    return client, proposal_of(run)


def test_nobody_approves_what_was_proposed_for_them_by_page(own: tuple[Client, Proposal]) -> None:
    client, proposal = own
    page = page_at(client, url_of(proposal))
    facts = {fact.term: fact.text for fact in page.facts}
    assert facts["Proposed by"] == "agent refund-bot"
    assert facts["On behalf of"] == "person ada"
    assert [choice.kind for choice in page.form.not_offered] == ["approve"]
    answer = client.post(url_of(proposal), filled(client, proposal, "approve"))
    assert answer.status_code == HTTPStatus.FORBIDDEN
    assert not Approval.objects.exists()


def test_nor_in_bulk(own: tuple[Client, Proposal]) -> None:
    client, proposal = own
    form = page_at(client, url_of(proposal)).form
    (row,) = page_at(client, URL).rows
    assert row.pick == ""
    answer = client.post(URL, {"pick": f"{proposal.pk} {form.digest} {form.token}"})
    (outcome,) = answer.context["page"].outcomes
    assert (outcome.done, "somebody else" in outcome.said) == (False, True)
    assert not Approval.objects.exists()


def test_nor_in_the_admin(own: tuple[Client, Proposal]) -> None:
    _, proposal = own
    admin = Client()
    admin.force_login(administrator())
    add = reverse("admin:workflows_approval_add")
    assert admin.get(add).status_code == HTTPStatus.FORBIDDEN
    change = reverse("admin:workflows_proposal_change", args=[proposal.pk])
    answer = admin.post(change, {"state": "approved"})
    assert answer.status_code == HTTPStatus.FORBIDDEN
    with pytest.raises(NoReverseMatch):
        reverse("admin:workflows_proposal_approve", args=[proposal.pk])


def test_those_that_are_picked_are_approved_each_by_itself(
    approving: Client, asked: Proposal
) -> None:
    other = proposed(order="ORD-7002")[1]
    rows = page_at(approving, URL).rows
    assert [row.id for row in rows] == [other.pk, asked.pk]
    answered(asked, approver("first_1"))
    answer = approving.post(URL, {"pick": [row.pick for row in rows], "note": "Both were checked."})
    assert [each.done for each in answer.context["page"].outcomes] == [True, False]
    assert Proposal.objects.get(pk=other.pk).state == "approved"


def test_where_one_of_them_is_not_there_none_is_approved(
    approving: Client, asked: Proposal
) -> None:
    """The answer could not tell what became of the others."""
    (row,) = page_at(approving, URL).rows
    gone = f"{uuid4()} x {uuid4()}"
    assert approving.post(URL, {"pick": [row.pick, gone]}).status_code == HTTPStatus.NOT_FOUND
    asked.refresh_from_db()
    assert asked.state == "open"


def test_the_policy_names_other_people(approving: Client, asked: Proposal) -> None:
    policy(approvals=[{"actions": ["refunds.*"], "needed": 2, "groups": ["finance"]}])
    page = page_at(approving, url_of(asked))
    assert "finance" in next(choice.why_not for choice in page.form.not_offered)
    answered(asked, approver("fin_1", "finance"))
    page = page_at(approving, url_of(asked))
    assert (page.state, page.checks[-1].said) == ("open", "1 of 2 approvals of finance.")
    answered(asked, approver("fin_2", "finance"))
    assert page_at(approving, url_of(asked)).state == "approved"


def test_what_may_not_be_seen_is_not_there(client: Client, asked: Proposal) -> None:
    client.force_login(stranger())
    assert page_at(client, URL).rows == ()
    assert client.get(url_of(asked)).status_code == HTTPStatus.NOT_FOUND
    assert (
        client.post(URL, {"pick": f"{asked.pk} x {asked.pk}"}).status_code == HTTPStatus.NOT_FOUND
    )
    again = reverse("approval_again", args=[asked.pk])
    assert client.post(again).status_code == HTTPStatus.NOT_FOUND


def test_who_may_only_look_sees_neither_payloads_nor_a_form(
    client: Client, asked: Proposal
) -> None:
    user = stranger("looker_1")
    assign_perm("workflows.view_tenant", user, tenant())
    client.force_login(get_user_model().objects.get(pk=user.pk))
    page = page_at(client, url_of(asked))
    assert (page.parameters, page.form) == (None, None)
    assert "not answer it" in page.why_no_form
    assert page_at(client, URL).rows[0].pick == ""


def test_the_pages_cost_the_same_however_much_there_is(approving: Client, asked: Proposal) -> None:
    policy(approvals=[{"actions": ["refunds.*"], "needed": 4}])
    for url in (URL, url_of(asked)):
        approving.get(url)  # what is remembered of content types and sites
    counts = {}
    for number in (1, 3):
        for name in range(number):
            user = approver(f"more_{number}_{name}")
            if number == 1 or name:
                answered(asked, user)
        proposed(order=f"ORD-80{number}")
        for url in (URL, url_of(asked)):
            with CaptureQueriesContext(
                connection,
            ) as made:
                approving.get(url)
            counts[url, number] = len(made)
    assert counts[URL, 1] == counts[URL, 3] <= MOST_QUERIES
    assert counts[url_of(asked), 1] == counts[url_of(asked), 3] <= MOST_OF_A_PAGE
