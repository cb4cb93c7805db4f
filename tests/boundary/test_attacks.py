"""Ways round an approval that people, programs and other systems might try."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from guardian.shortcuts import assign_perm

from reconciliation.models import Hold, Operation
from tests.approving import answered, approver, policy, proposal_of, proposed
from tests.boundary.test_answers import ITSM, event_of
from tests.claiming import claim_at_write, expire_lease
from tests.contract.far_side import FarSide, Said, Seen
from tests.destination import RunningDestination
from tests.events import delivered, source
from tests.factories import (
    administrator,
    advanced,
    person,
    ready_provider,
    started_run,
    tenant,
)
from tests.sending import effects
from workflows.core.boundary.canonical import canonical
from workflows.core.definitions import END, Workflow
from workflows.core.errors import InvalidPolicy, NotEntitled, ProposalIsOver, UsageError
from workflows.core.intents import Intent
from workflows.core.proposals import APPROVAL_EVENT, Answer, ProposedAction
from workflows.models import Event, Proposal, Run, ServiceAccount, Wait
from workflows.registry import registry
from workflows.services.answers import Given, answer
from workflows.services.event_items import attach
from workflows.services.event_sending import send_event
from workflows.services.policies import add_policy
from workflows.services.run_view import RunView
from workflows.services.runs import start
from workflows.services.stopping import cancel_run

pytestmark = pytest.mark.django_db

ANY_REFUND = {"subjects": ["agent:*", "workflow:*"], "actions": ["refunds.*"]}


def by_agent(**input: Any) -> tuple[Run, Proposal]:
    owner = person("owner_1")
    ServiceAccount.objects.get_or_create(
        kind="agent", slug="refund-bot", defaults={"name": "Refund bot", "owner": owner}
    )
    return proposed(agent="refund-bot", **input)


# --- approving what is one's own --------------------------------------------------------------


@pytest.mark.usefixtures("payments")
def test_who_answers_for_an_agent_does_not_approve_what_it_wants() -> None:
    _, proposal = by_agent()
    with pytest.raises(NotEntitled, match="somebody else"):
        answered(proposal, approver("owner_1"))


def test_who_became_the_agents_owner_since_has_approved_nothing(
    payments: RunningDestination,
) -> None:
    run, proposal = by_agent()
    user = approver()
    answered(proposal, user)
    ServiceAccount.objects.update(owner=user)
    assert (advanced(run).state, effects(payments)) == ("held", 0)
    assert "approver_1 has proposed it" in Hold.objects.get().message


def test_who_has_started_a_run_does_not_approve_what_it_proposes(
    payments: RunningDestination,
) -> None:
    given = {"order": "ORD-7001", "amount": "125.00"}
    user = approver()
    run = advanced(start("approved_refund", given, tenant=tenant(), by=user))
    with pytest.raises(NotEntitled, match="somebody else"):
        answered(proposal_of(run), user)
    answered(proposal_of(run), approver("second_1"))
    assert advanced(run).state == "completed"


@pytest.mark.usefixtures("payments")
@pytest.mark.parametrize("written", ["ada", "Ada", "ADA", "\uff21da"])
def test_a_name_that_is_written_otherwise_hides_nobody(written: str) -> None:
    _, proposal = proposed(on_behalf_of=written)
    with pytest.raises(NotEntitled, match="somebody else"):
        answered(proposal, approver("ada"))


def test_another_system_does_not_approve_in_the_name_of_who_proposed(
    payments: RunningDestination,
) -> None:
    policy(approvals=[ITSM])
    run, proposal = proposed(on_behalf_of="ada")
    event_of(proposal, source("itsm"), by="Ada")
    assert (advanced(run).state, effects(payments)) == ("waiting", 0)
    event_of(proposal, source("itsm"), by="ben")
    assert advanced(run).state == "completed"


@pytest.mark.usefixtures("payments")
def test_nobody_approves_by_an_event_by_hand() -> None:
    policy(approvals=[ITSM])
    _, proposal = proposed()
    said = json.dumps({"answer": "approve", "digest": proposal.parameters_digest})
    with pytest.raises(UsageError, match="on its own page"):
        send_event(
            source("itsm"),
            type=APPROVAL_EVENT,
            correlation=str(proposal.pk),
            data=said,
            by="user:1 ada",
        )
    assert not Event.objects.exists()


@pytest.mark.parametrize("named", ["workflow:payroll", "source:itsm"])
def test_a_workflow_does_not_speak_as_another_one(named: str) -> None:
    flow = Workflow(f"tests.impostor_{named.partition(':')[0]}")

    @flow.approval(action="refunds.create", expires_in=timedelta(hours=1), on_failure="hold")
    def propose(run: RunView) -> ProposedAction:
        return ProposedAction("refunds.create", "order 1", {}, "Refund", proposed_by=named)

    registry.add(flow)
    run = advanced(start(flow.name, {}, tenant=tenant()))
    assert "proposed_by: person or agent or service" in run.failure["message"]
    assert not Proposal.objects.exists()


# --- an approval of something else --------------------------------------------------------------


def test_an_approval_of_the_same_action_in_another_run_is_not_this_ones(
    payments: RunningDestination,
) -> None:
    """Also where somebody gives its event to this run by hand: the digest is the same."""
    policy(approvals=[ITSM])
    mine, proposal = proposed()
    other, theirs = proposed()
    assert proposal.parameters_digest == theirs.parameters_digest
    cancel_run(other.pk, by="user:1 ada", reason="Not needed any more.")
    data = {"answer": "approve", "digest": proposal.parameters_digest, "by": "j.doe"}
    receipt = delivered(
        str(theirs.pk), type=APPROVAL_EVENT, of=source("itsm"), payload={"data": data}
    )
    wait = Wait.objects.get(run=mine, state="waiting")
    assert attach(receipt.event, wait.pk, by="user:1 ada", reason="It says that it is approved.")
    assert (advanced(mine).state, effects(payments)) == ("waiting", 0)
    proposal.refresh_from_db()
    assert proposal.state == "open"


@pytest.mark.usefixtures("payments")
def test_what_was_sent_back_and_proposed_anew_is_not_approved_by_the_old_form() -> None:
    registry.add(precise)
    written["proposed"] = SHOWN
    run = advanced(start("tests.precise", {}, tenant=tenant()))
    first, user = proposal_of(run), approver()
    form = Given(Answer.APPROVE, first.parameters_digest, uuid4())
    answered(first, user, Answer.QUESTION)
    assert advanced(run).state == "held"
    written["proposed"] = SHOWN | {"amount": 999}
    Run.objects.filter(pk=run.pk).update(state="ready")
    advanced(run)
    second = proposal_of(run)
    assert second.pk != first.pk
    with pytest.raises(ProposalIsOver, match="sent back"):
        answer(first.pk, user, form)
    with pytest.raises(UsageError, match="not what is proposed"):
        answer(second.pk, user, form)


def test_taking_back_counts_also_under_another_username(payments: RunningDestination) -> None:
    run, proposal = proposed()
    user = approver()
    answered(proposal, user)
    get_user_model().objects.filter(pk=user.pk).update(username="married_1")
    answered(proposal, get_user_model().objects.get(pk=user.pk), Answer.WITHDRAW)
    assert (advanced(run).state, effects(payments)) == ("held", 0)


# --- one approval, two writes ------------------------------------------------------------------

looping = Workflow("tests.proposing_in_a_loop")


@looping.approval(action="refunds.create", expires_in=timedelta(hours=1))
def propose(run: RunView) -> ProposedAction:
    said = {"order": "ORD-1", "amount": 100, "currency": "EUR"}
    return ProposedAction("refunds.create", "order ORD-1", said, "Refund order ORD-1")


@looping.write(provider="payments", approved_by=propose, on_failure="hold")
def pay(run: RunView) -> Intent:
    approved: Intent = run.output("propose").action
    return approved


@looping.branch(to=("pay", END), max_visits=3)
def once_more(run: RunView) -> str:
    return "pay"


def test_a_second_visit_does_not_use_the_approval_again(payments: RunningDestination) -> None:
    registry.add(looping)
    run = advanced(start("tests.proposing_in_a_loop", {}, tenant=tenant()))
    answered(proposal_of(run), approver())
    assert advanced(run).state == "held"
    assert effects(payments) == 1
    hold = Hold.objects.get()
    assert "Another write has used the approval." in hold.message
    assert Operation.objects.filter(first_sent_at=None).count() == 1


# --- what leaves ---------------------------------------------------------------------------------

written: dict[str, Any] = {}
precise = Workflow("tests.precise")
SHOWN = {"order": "Zürich", "amount": 100, "currency": "EUR"}


@precise.approval(action="refunds.create", expires_in=timedelta(hours=1))
def ask(run: RunView) -> ProposedAction:
    return ProposedAction("refunds.create", "order 1", written["proposed"], "Refund order 1")


@precise.write(provider="payments", approved_by=ask, on_failure="hold")
def sends(run: RunView) -> Intent:
    return Intent("refunds.create", "order 1", written["parameters"], "Refund order 1")


def left(side: FarSide, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """What leaves when the author's code says `parameters` after `SHOWN` was approved."""
    sent: list[dict[str, Any]] = []

    def provider(seen: Seen) -> Said:
        if seen.method == "POST":
            sent.append(json.loads(seen.body))
        made = (sent[-1] if sent else {}) | {"id": "re_1", "account": "acct_demo"}
        body = json.dumps(made | {"status": "succeeded"}).encode()
        return Said(201 if seen.method == "POST" else 200, {"Request-Id": "r"}, body)

    side.answers = provider
    written.update(proposed=SHOWN, parameters=parameters)
    registry.add(precise)
    ready_provider("payments", side.url)
    run = advanced(start("tests.precise", {}, tenant=tenant()))
    answered(proposal_of(run), approver())
    advanced(run)
    return [{name: each[name] for name in SHOWN} for each in sent]


@pytest.mark.parametrize(
    "changed",
    [
        {"amount": "100"},
        {"amount": 100.5},
        {"amount": True},
        {"amount": -100},
        {"order": "Zu\u0308rich"},  # the same to see, and other characters
        {"order": "Zürich "},
        {"currency": "eur"},
        {"note": None},
    ],
)
def test_what_is_not_exactly_what_was_approved_does_not_leave(
    side: FarSide, changed: dict[str, Any]
) -> None:
    assert left(side, SHOWN | changed) == []
    assert "Otherwise than proposed: the parameters." in Hold.objects.get().message


@pytest.mark.parametrize(
    "same",
    [
        {"amount": 100.0},  # leaves as the 100 that was shown
        dict(reversed(SHOWN.items())),
    ],
)
def test_the_same_values_leave_as_the_same_bytes(side: FarSide, same: dict[str, Any]) -> None:
    (sent,) = left(side, SHOWN | same)
    assert canonical(sent) == canonical(SHOWN)
    assert json.dumps(sent["amount"]) == "100"


# --- policies ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("payments")
def test_a_policy_names_groups_that_are_there() -> None:
    rule = {"actions": ["refunds.*"], "groups": ["finanse"]}
    with pytest.raises(InvalidPolicy, match="no group 'finanse'"):
        add_policy(
            tenant(), {"approvals": [rule]}, by=administrator(), note="With a slip of the pen."
        )


def test_a_run_whose_approval_was_of_another_step_is_held(payments: RunningDestination) -> None:
    """As a migration of the author's might bring it about."""
    policy()
    run, proposal = proposed()
    answered(proposal, approver())
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE workflows_proposal DISABLE TRIGGER fixed")
        advanced_to_write(run)
        cursor.execute("UPDATE workflows_proposal SET step = 'propose_small'")
        cursor.execute("ALTER TABLE workflows_proposal ENABLE TRIGGER fixed")
    assert (advanced(run).state, effects(payments)) == ("held", 0)
    assert "the step, which is to be 'propose'" in Hold.objects.get().message


def advanced_to_write(run: Run) -> None:
    """The run has gone past its approval, and its write has not begun."""
    claim_at_write(run)
    expire_lease(run)


@pytest.mark.usefixtures("payments")
def test_an_agent_without_an_account_proposes_nothing_under_a_policy() -> None:
    policy(grants=[ANY_REFUND])
    run = advanced(started_run("approved_refund", agent="nobody-knows"))
    assert run.state == "held"
    assert "switched off or not known here" in run.failure["message"]


def test_who_may_control_runs_alone_approves_nothing(payments: RunningDestination) -> None:
    _, proposal = proposed()
    user = person("operator_1")
    for right in ("view_tenant", "control_runs"):
        assign_perm(f"workflows.{right}", user, tenant())
    with pytest.raises(NotEntitled, match="not answer it"):
        answered(proposal, get_user_model().objects.get(pk=user.pk))
    assert effects(payments) == 0
