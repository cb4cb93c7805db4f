"""Case A21: somebody who may decide loses that right, and what they had begun counts no more.

Of decisions: what is proposed and not yet confirmed stands for what is approved and not yet
dispatched. The right is a group's on the queue, as in the case. Of approvals: `test_a21_approvals`.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm

from reconciliation.models import Decision, Hold, Operation, ProposalEnd
from tests.console.posting import filled, form_at, post, url_of
from tests.deciding import seconder_of, two_needed
from tests.destination import RunningDestination
from tests.factories import (
    advanced,
    held_operation,
    open_hold_of,
    owner_of,
    person,
    ready_provider,
    tenant,
)

pytestmark = pytest.mark.django_db

GROUP = "finance-approvers"


@pytest.fixture
def held(destination: RunningDestination) -> Operation:
    """A held comment; `approver_1` may decide it as one of the group, `reviewer_1` as its owner."""
    ready_provider("desk", destination.url)
    operation = held_operation(destination)
    person("approver_1").groups.add(entitled(open_hold_of(operation)))
    return operation


def entitled(hold: Hold) -> Group:
    group, _ = Group.objects.get_or_create(name=GROUP)
    for right in ("view_reviewqueue", "decide"):
        assign_perm(f"reconciliation.{right}", group, hold.queue)
    assign_perm("workflows.view_tenant", group, tenant())
    return group


def browser(name: str) -> Client:
    client = Client()
    client.force_login(person(name))
    return client


def leave() -> None:
    person("approver_1").groups.clear()


def test_what_somebody_proposed_before_they_lost_the_right_is_not_carried_out(
    held: Operation,
) -> None:
    hold = two_needed(open_hold_of(held))
    approver, second = browser("approver_1"), Client()
    second.force_login(seconder_of(hold.queue))
    post(approver, form_at(approver, url_of(held)), "applied")
    form = second.get(url_of(held)).context["page"].proposal.form
    leave()
    given = {"verdict": "confirm", "version": form.version, "token": form.token}
    answer = second.post(form.url, given | {"code": form.code})
    assert answer.status_code == HTTPStatus.CONFLICT
    assert "approver_1 may not decide here any more" in answer.content.decode()
    assert ProposalEnd.objects.get().kind == "void"
    # Dependents do not run, and the request is open again.
    assert advanced(held.run).state == "held"
    assert form_at(browser("reviewer_1"), url_of(held)).offered


def test_a_page_that_was_open_when_the_right_was_lost_decides_nothing(held: Operation) -> None:
    approver = browser("approver_1")
    form = form_at(approver, url_of(held))
    assert str(held.pk) in approver.get(reverse("review")).content.decode()
    leave()
    answer = approver.post(form.url, filled(form, "applied"))
    assert answer.status_code in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
    assert not Decision.objects.exists()
    assert str(held.pk) not in approver.get(reverse("review")).content.decode()


def test_what_was_claimed_by_somebody_who_lost_the_right_others_decide(held: Operation) -> None:
    Hold.objects.update(assignee=person("approver_1"))
    leave()
    owner = browser("reviewer_1")
    assert post(owner, form_at(owner, url_of(held)), "applied").status_code == HTTPStatus.SEE_OTHER


def test_a_group_made_again_under_the_same_name_inherits_nothing(held: Operation) -> None:
    two_needed(open_hold_of(held))
    approver = browser("approver_1")
    post(approver, form_at(approver, url_of(held)), "applied")
    Group.objects.get(name=GROUP).delete()
    again = Group.objects.create(name=GROUP)
    for name in ("approver_1", "newcomer_1"):
        person(name).groups.add(again)
        assert browser(name).get(url_of(held)).status_code == HTTPStatus.NOT_FOUND
    shown: Any = browser("reviewer_1").get(url_of(held)).context["page"].proposal
    assert shown.is_void


def test_what_one_person_may_is_not_what_another_of_that_name_may(held: Operation) -> None:
    """An account that was taken away leaves its rights with nobody."""
    owner_of(open_hold_of(held).queue, "reviewer_2")
    person("reviewer_2").delete()
    assert browser("reviewer_2").get(url_of(held)).status_code == HTTPStatus.NOT_FOUND
