"""Case A21 with approvals: the approver lost the right, and the approval counts no more."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm

from reconciliation.models import Hold, Operation, Provider
from reconciliation.services.reconcile import reconcile
from tests.approving import answered, approver, policy, proposed
from tests.destination import RunningDestination
from tests.factories import advanced, person, ready_provider, switched, tenant
from tests.sending import effects
from workflows.models import Approval, Proposal
from workflows.services.asking_again import ask_again

pytestmark = pytest.mark.django_db

GROUP = "finance-approvers"
RULE = {"actions": ["refunds.*"], "groups": [GROUP]}


@pytest.fixture
def payments(destination: RunningDestination) -> Provider:
    return ready_provider("payments", destination.url)


def in_group(name: str = "approver_1") -> Any:
    """Somebody whose right is the group's, as in the case."""
    group, _ = Group.objects.get_or_create(name=GROUP)
    for right in ("view_tenant", "view_payloads", "approve_actions"):
        assign_perm(f"workflows.{right}", group, tenant())
    person(name).groups.add(group)
    return fresh(name)


def fresh(name: str) -> Any:
    return get_user_model().objects.get(username=name)


def leave(name: str = "approver_1") -> None:
    person(name).groups.clear()


def url_of(proposal: Proposal) -> str:
    return reverse("approval", args=[proposal.pk])


def test_approved_and_not_dispatched_it_is_checked_again_and_is_open_again(
    payments: Provider, destination: RunningDestination
) -> None:
    approved_by = in_group()
    policy(approvals=[RULE])
    run, proposal = proposed()
    switched(payments, "paused")
    answered(proposal, approved_by)
    assert advanced(run).state == "waiting"
    leave()
    switched(payments, "on")
    operation = Operation.objects.get(due_at__isnull=False)
    Operation.objects.filter(pk=operation.pk).update(due_at=Now())
    reconcile(operation.pk)
    assert advanced(run).state == "held"
    assert effects(destination) == 0
    hold = Hold.objects.get(state="open")
    assert "person approver_1 may not approve for" in hold.message
    # The same is asked for again, and somebody else's yes lets it go.
    asker = approver("asker_1")
    assign_perm("workflows.control_runs", asker, tenant())
    answered(ask_again(proposal.pk, fresh("asker_1")), in_group("approver_2"))
    assert advanced(run).state == "completed"
    assert effects(destination) == 1


def test_a_page_that_was_open_when_the_right_was_lost_answers_nothing(payments: Provider) -> None:
    _, proposal = proposed()
    client = Client()
    client.force_login(in_group())
    form = client.get(url_of(proposal)).context["page"].form
    given = {"answer": "approve", "digest": form.digest, "token": form.token, "note": ""}
    assert str(proposal.pk) in client.get(reverse("approvals")).content.decode()
    leave()
    answer = client.post(url_of(proposal), given)
    assert answer.status_code in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
    assert not Approval.objects.exists()
    assert str(proposal.pk) not in client.get(reverse("approvals")).content.decode()


def test_what_somebody_began_who_lost_the_right_others_settle(
    payments: Provider, destination: RunningDestination
) -> None:
    """One of two approvals was theirs: it blocks nobody, and is not counted."""
    first, second, third = (in_group(f"approver_{n}") for n in (1, 2, 3))
    policy(approvals=[RULE | {"needed": 2}])
    run, proposal = proposed()
    answered(proposal, first)
    leave()
    answered(proposal, second)
    proposal.refresh_from_db()
    assert proposal.state == "open"
    answered(proposal, third)
    assert advanced(run).state == "completed"
    assert effects(destination) == 1


def test_a_group_made_again_under_the_same_name_inherits_nothing(
    payments: Provider, destination: RunningDestination
) -> None:
    approver("approver_1", GROUP)  # whose right on the tenant is their own
    policy(approvals=[RULE])
    run, old = proposed()
    answered(old, fresh("approver_1"))
    pending = proposed(order="ORD-7002")[1]
    Group.objects.get(name=GROUP).delete()
    approver("approver_1", GROUP)
    newcomer = approver("newcomer_1", GROUP)
    # The old approval is not the new group's.
    assert advanced(run).state == "held"
    assert effects(destination) == 0
    assert "0 of 1 approvals of finance-approvers" in Hold.objects.get(state="open").message
    # Nor is what waits for an answer.
    client = Client()
    client.force_login(newcomer)
    page = client.get(url_of(pending)).context["page"]
    assert "finance-approvers" in next(each.why_not for each in page.form.not_offered)
    # Whoever keeps the policy says that the new group is meant.
    policy(approvals=[RULE])
    answered(pending, fresh("newcomer_1"))
    pending.refresh_from_db()
    assert pending.state == "approved"


def test_a_group_that_is_called_otherwise_is_still_the_group(payments: Provider) -> None:
    user = approver("approver_1", GROUP)
    policy(approvals=[RULE])
    _, proposal = proposed()
    Group.objects.filter(name=GROUP).update(name="finance")
    answered(proposal, fresh(user.get_username()))
    proposal.refresh_from_db()
    assert proposal.state == "approved"
