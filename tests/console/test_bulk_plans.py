"""What a plan for many cases tells of each, and what of it does not count any more when it is
confirmed: whose a case is, when it is due, a time that is past."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus

import pytest
from django.test import Client
from django.urls import reverse

from reconciliation.models import BulkAction, Hold, Provider
from reconciliation.services.bulk import carry_out
from tests.console.test_review_work import (  # noqa: F401 (fixtures)
    bulk_url,
    confirmation,
    lead,
    provider,
)
from tests.factories import many_held, owner_of
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db


def test_a_case_that_went_to_somebody_after_the_plan_stays_theirs(
    lead: Client,  # noqa: F811
    provider: Provider,  # noqa: F811
) -> None:
    """Else whoever took it meanwhile would work on a case that is somebody else's, and not hear."""
    free, handed, taken, late = many_held(4, provider)
    to = owner_of(provider.default_queue, "reviewer_2")
    other = owner_of(provider.default_queue, "reviewer_3")
    Hold.objects.filter(pk=handed.pk).update(assignee=other)
    answer = lead.get(bulk_url([free, handed, taken, late], "assign", to=to.pk))
    page = answer.context["page"]
    assert [case.has for case in page.hit] == ["", "reviewer_3", "", ""]
    assert "reviewer_3 has it." in answer.content.decode()
    Hold.objects.filter(pk=taken.pk).update(assignee=other)

    result = lead.post(reverse("review_bulk"), confirmation(page, to=to.pk))
    action = BulkAction.objects.get()
    under_way = lead.get(result["Location"]).content.decode()
    assert f'href="{reverse("workers")}">their page</a> says why' in under_way
    # So does what went to somebody while no worker was there to carry it out.
    Hold.objects.filter(pk=late.pk).update(assignee=other)
    carry_out(action.pk)
    said = dict(action.items.values_list("hold", "said"))
    assert said == {
        free.pk: "Assigned.",
        handed.pk: "Assigned.",
        taken.pk: "reviewer_3 has it now. Nothing was changed.",
        late.pk: "reviewer_3 has it now. Nothing was changed.",
    }
    assert Hold.objects.get(pk=taken.pk).assignee == other
    shown = lead.get(result["Location"]).content.decode()
    assert "All 4 looked at" in shown
    assert "2 left as they were" in shown


@pytest.mark.parametrize("do", ["snooze", "remind"])
@pytest.mark.parametrize(
    ("until", "said"),
    [("2020-01-01T10:00", "at a time that is not past"), ("2090-01-01T10:00", "within 30 days")],
)
def test_a_time_that_would_be_refused_makes_no_plan(
    lead: Client,  # noqa: F811
    provider: Provider,  # noqa: F811
    do: str,
    until: str,
    said: str,
) -> None:
    answer = lead.get(bulk_url(many_held(2, provider), do, within="at", until=until))
    assert not answer.context["page"].ready
    assert "data-commit" not in answer.content.decode()
    assert said in answer.content.decode()
    assert until in answer.content.decode()


def test_a_plan_says_what_will_happen_and_what_is_due_before_it_comes_back(
    lead: Client,  # noqa: F811
    provider: Provider,  # noqa: F811
) -> None:
    soon, later = many_held(2, provider)
    Hold.objects.filter(pk=later.pk).update(due_at=database_now() + timedelta(hours=2))
    answer = lead.get(bulk_url([soon, later], "snooze", within="1h"))
    assert [case.due_before for case in answer.context["page"].hit] == [True, False]
    text = answer.content.decode()
    assert text.count("Due before that.") == 1
    assert "They leave the lists Mine and Team for everybody until then" in text
    reminded = lead.get(bulk_url([soon, later], "remind", within="1h")).content.decode()
    assert "Only you are reminded." in reminded
    assert "Until when" not in reminded
    assert "Due before that." not in reminded


def test_a_plan_that_hits_nothing_says_so_and_leads_back(
    lead: Client,  # noqa: F811
    provider: Provider,  # noqa: F811
) -> None:
    holds = many_held(2, provider)
    Hold.objects.update(state="closed", closed_at=database_now())
    answer = lead.get(bulk_url(holds, "look_up"))
    assert answer.status_code == HTTPStatus.OK
    assert answer.context["page"].title == "Nothing to look up again"
    assert f'href="{reverse("review")}">Back to the queue</a>' in answer.content.decode()
