"""Open holds, and what a careful person decides on them."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

from django.contrib.auth import get_user_model
from guardian.shortcuts import assign_perm

from reconciliation.core.states import DecisionKind
from reconciliation.models import (
    Decision,
    DecisionProposal,
    Evidence,
    Hold,
    Operation,
    ProposalEnd,
    ReviewQueue,
)
from reconciliation.services.answers import Verdict, VerdictGiven
from reconciliation.services.confirming import settle_proposal
from reconciliation.services.decisions import Answer, record_decision
from tests.destination import RunningDestination
from tests.factories import (
    NOTE,
    code_of,
    person,
    reader,
    ready_provider,
    settled,
    started_run,
)
from workflows.models import Run
from workflows.services.clock import database_now

APPLIED, SEND_AGAIN = DecisionKind.APPLIED, DecisionKind.SEND_AGAIN
ABANDON, KEEP_HOLDING = DecisionKind.ABANDON, DecisionKind.KEEP_HOLDING
TRY_AGAIN, FAIL_RUN = DecisionKind.TRY_AGAIN, DecisionKind.FAIL_RUN


def answer_on(hold: Hold, kind: DecisionKind = APPLIED, **fields: Any) -> Answer:
    """What a careful person fills in."""
    given: dict[str, Any] = {
        "note": NOTE,
        "version": hold.version,
        "token": uuid4(),
        "code": code_of(hold.operation_id or hold.run_id),
        "resource": "c_1" if kind is APPLIED else "",
        "until": database_now() + timedelta(hours=2) if kind is KEEP_HOLDING else None,
    }
    return Answer(kind=kind, **(given | fields))


def decide(hold: Hold, kind: DecisionKind = APPLIED, by: Any = None, **fields: Any) -> Decision:
    decision = record_decision(hold.pk, by or person(), answer_on(hold, kind, **fields))
    assert isinstance(decision, Decision)
    return decision


def learnt(operation: Operation, kind: str) -> Evidence:
    """Something became known about it just now."""
    return Evidence.objects.create(
        operation=operation, kind=kind, source="desk", observed_at=database_now()
    )


def propose(
    hold: Hold, kind: DecisionKind = APPLIED, by: Any = None, **fields: Any
) -> DecisionProposal:
    hold.refresh_from_db()
    proposal = record_decision(hold.pk, by or person(), answer_on(hold, kind, **fields))
    assert isinstance(proposal, DecisionProposal)
    hold.refresh_from_db()
    return proposal


def verdict_on(hold: Hold, verdict: Verdict, **fields: Any) -> VerdictGiven:
    given: dict[str, Any] = {
        "version": hold.version,
        "token": uuid4(),
        "code": code_of(hold.case_id),
        "note": NOTE if verdict is Verdict.REFUSE else "",
    }
    return VerdictGiven(verdict, **(given | fields))


def settle_as(hold: Hold, verdict: Verdict, by: Any, **fields: Any) -> ProposalEnd:
    """Confirm, refuse or withdraw what is proposed on `hold`, as it is now."""
    hold.refresh_from_db()
    return settle_proposal(hold.pk, by, verdict_on(hold, verdict, **fields))


def two_needed(hold: Hold, second_from: Decimal | None = None) -> Hold:
    """Let the hold's queue ask for two people; or for two from an amount."""
    assert hold.queue is not None
    hold.queue.approvals_needed = 1 if second_from else 2
    hold.queue.second_from = second_from
    hold.queue.save()
    return hold


def seconder_of(queue: ReviewQueue, name: str = "second_1") -> Any:
    """Somebody who may see the queue and confirm there, and not decide."""
    user = reader(queue, name)
    assign_perm("reconciliation.second", user, queue)
    return get_user_model().objects.get(pk=user.pk)


def run_hold(destination: RunningDestination) -> Hold:
    """The open hold of a run whose provider had no contract when it came to its write."""
    ready_provider("desk", destination.url, contract_version=None)
    settled(started_run("ticket_triage"))
    return Hold.objects.get(state="open")


def states(hold: Hold) -> tuple[str, str, str]:
    hold.refresh_from_db()
    run = Run.objects.get(pk=hold.run_id)
    operation = Operation.objects.filter(pk=hold.operation_id).first()
    return (hold.state, operation.state if operation else "", run.state)
