"""Proposals, the people who answer them, and policies; each name says the state that it leaves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import connection
from guardian.shortcuts import assign_perm

from tests.factories import administrator, advanced, person, started_run, tenant
from workflows.core.boundary.policy import parse_policy
from workflows.core.proposals import Answer
from workflows.models import Approval, PolicyVersion, Proposal, Run
from workflows.services.answers import Given, answer
from workflows.services.policies import add_policy

WHY = "Checked against the order and the customer's letter."


def approver(name: str = "approver_1", group: str = "") -> Any:
    """Somebody who may see the tenant's runs and answer what is proposed for it."""
    user = person(name)
    for right in ("view_tenant", "view_payloads", "approve_actions"):
        assign_perm(f"workflows.{right}", user, tenant())
    if group:
        user.groups.add(Group.objects.get_or_create(name=group)[0])
    return get_user_model().objects.get(pk=user.pk)


def proposed(**input: Any) -> tuple[Run, Proposal]:
    """A run of the approved refund that waits for an answer."""
    run = advanced(started_run("approved_refund", **input))
    return run, proposal_of(run)


def proposal_of(run: Run) -> Proposal:
    found = Proposal.objects.filter(run=run).order_by("-id").first()
    assert found is not None, run.failure
    return found


def answered(proposal: Proposal, user: Any, kind: Answer = Answer.APPROVE) -> Approval:
    given = Given(kind, proposal.parameters_digest, uuid4(), WHY)
    return answer(proposal.pk, user, given)


def policy(**document: Any) -> PolicyVersion:
    """A policy for the tenant that lets the approved refund be proposed, and what is given."""
    plain = {
        "tools": [{"action": "refunds.create", "risk": "high"}],
        "grants": [{"subjects": ["workflow:*"], "actions": ["refunds.*"]}],
    }
    for name in parse_policy(plain | document).groups:
        Group.objects.get_or_create(name=name)
    return add_policy(tenant(), plain | document, by=administrator(), note="For the tests here.")


def aged(proposal: Proposal, by: timedelta) -> None:
    """The proposal was made so much earlier: time passes in the database, for it alone. What it
    proposes cannot be changed by anybody, so its guard is off meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE workflows_proposal DISABLE TRIGGER fixed")
        cursor.execute(
            "UPDATE workflows_proposal SET created_at = created_at - %(by)s, "
            "expires_at = expires_at - %(by)s WHERE id = %(id)s",
            {"by": by, "id": proposal.pk},
        )
        cursor.execute("ALTER TABLE workflows_proposal ENABLE TRIGGER fixed")
