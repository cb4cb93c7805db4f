"""Promise P11, with the refund example: propose, approve, resume, check again, write."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from guardian.shortcuts import assign_perm, remove_perm

from reconciliation.models import Hold, Operation
from tests.approving import aged, answered, approver, policy, proposed
from tests.destination import RunningDestination
from tests.factories import advanced, tenant
from tests.sending import effects
from workflows.core.errors import NotEntitled, ProposalIsOver
from workflows.core.proposals import Answer
from workflows.models import AuthorisationRecord, Run
from workflows.services.asking_again import ask_again

pytestmark = pytest.mark.django_db


def test_nothing_is_sent_before_it_is_approved_and_then_once(payments: RunningDestination) -> None:
    run, proposal = proposed()
    assert (run.state, proposal.state, effects(payments)) == ("waiting", "open", 0)
    assert not Operation.objects.exists()
    answered(proposal, approver())
    assert advanced(run).state == "completed"
    assert effects(payments) == 1
    operation = Operation.objects.get()
    proposal.refresh_from_db()
    assert (proposal.state, proposal.used_by) == ("approved", operation.pk)
    (row,) = AuthorisationRecord.objects.filter(asked="write")
    assert (row.allowed, row.operation, row.proposal_id) == (True, operation.pk, proposal.pk)
    assert "125" not in str(row.findings)


def held_for(run: Run, check: str, payments: RunningDestination) -> Hold:
    """The run's write was not made, and is held for the check that failed."""
    assert advanced(run).state == "held"
    assert effects(payments) == 0
    row = AuthorisationRecord.objects.filter(asked="write").latest("id")
    assert (row.allowed, row.failed) == (False, check), row.reason
    hold = Hold.objects.get(operation__run=run, state="open")
    assert hold.reason == "authorisation_lapsed"
    assert row.reason in hold.message
    return hold


def test_an_approval_that_ran_out_while_no_worker_was_there(payments: RunningDestination) -> None:
    run, proposal = proposed()
    answered(proposal, approver())
    aged(proposal, timedelta(hours=25))
    hold = held_for(run, "expiry", payments)
    assert "Approving the same action again" in hold.message


def test_an_approver_who_lost_the_right(payments: RunningDestination) -> None:
    run, proposal = proposed()
    user = approver()
    answered(proposal, user)
    remove_perm("workflows.approve_actions", user, tenant())
    held_for(run, "approver", payments)


def test_an_approver_whose_account_was_closed(payments: RunningDestination) -> None:
    run, proposal = proposed()
    user = approver()
    answered(proposal, user)
    get_user_model().objects.filter(pk=user.pk).update(is_active=False)
    held_for(run, "approver", payments)


def test_an_approval_that_was_withdrawn(payments: RunningDestination) -> None:
    run, proposal = proposed()
    answered(proposal, approver())
    answered(proposal, approver(), Answer.WITHDRAW)
    held_for(run, "withdrawn", payments)


@pytest.mark.parametrize(
    ("document", "check"),
    [
        ({"grants": []}, "grant"),
        ({"tools": []}, "tool"),
        (
            {"approvals": [{"actions": ["refunds.create"], "needed": 2}]},
            "approvals",
        ),
        (
            {
                "grants": [
                    {
                        "subjects": ["workflow:*"],
                        "actions": ["refunds.create"],
                        "max_amount": "100",
                        "currency": "USD",
                    }
                ]
            },
            "grant",
        ),
    ],
)
def test_a_policy_that_was_changed(
    payments: RunningDestination, document: dict[str, Any], check: str
) -> None:
    policy()
    run, proposal = proposed()
    answered(proposal, approver())
    policy(**document)
    held_for(run, check, payments)


def test_a_lapsed_approval_is_renewed_and_the_write_goes_on(payments: RunningDestination) -> None:
    run, proposal = proposed()
    user = approver()
    answered(proposal, user)
    aged(proposal, timedelta(hours=25))
    hold = held_for(run, "expiry", payments)
    asker = approver("asker_1")
    assign_perm("workflows.control_runs", asker, tenant())
    again = ask_again(proposal.pk, get_user_model().objects.get(pk=asker.pk))
    assert again.parameters_digest == proposal.parameters_digest
    with pytest.raises(NotEntitled, match="somebody else"):
        answered(again, asker)
    answered(again, user)
    hold.refresh_from_db()
    assert hold.state == "closed"
    assert advanced(run).state == "completed"
    assert effects(payments) == 1


def test_a_denied_refund_is_never_sent(payments: RunningDestination) -> None:
    run, proposal = proposed()
    answered(proposal, approver(), Answer.DENY)
    run = advanced(run)
    assert (run.state, effects(payments)) == ("failed", 0)
    assert "denied" in run.failure["message"]
    with pytest.raises(ProposalIsOver):
        answered(proposal, approver("late_1"))
