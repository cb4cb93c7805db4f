"""Open holds, and what a careful person decides on them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

from reconciliation.core.states import DecisionKind
from reconciliation.models import Decision, Hold, Operation
from reconciliation.services.decisions import Answer, record_decision
from tests.destination import RunningDestination
from tests.factories import NOTE, code_of, person, ready_provider, settled, started_run
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
    return record_decision(hold.pk, by or person(), answer_on(hold, kind, **fields))


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
