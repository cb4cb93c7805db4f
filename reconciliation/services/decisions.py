"""Recording a person's decision on a hold: one transaction, checked again on arrival.

The decision carries the hold's version that was read: of two reviewers the second is told who
decided what and when, and nothing is lost. A form's one-time token makes submitting twice decide
once. Whether a decision is safe is `core.options`' to say, with the facts as they are now.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from reconciliation import access
from reconciliation.core.errors import AlreadyDecided, InvalidDecision, NotAllowed
from reconciliation.core.facts import CONFLICT_LATER, HoldReason
from reconciliation.core.options import Option, options
from reconciliation.core.states import (
    SETTLED,
    DecisionKind,
    EvidenceKind,
    HoldState,
    OperationState,
)
from reconciliation.models import Decision, Evidence, Hold, Operation
from reconciliation.services.audit import actor_of, add_entry
from reconciliation.services.facts import load_facts
from reconciliation.services.holds import why_closed
from reconciliation.services.ledger import WITH_PROVIDER
from workflows.core.states import RunState
from workflows.core.words import is_storable
from workflows.failpoints import failpoint
from workflows.models import Run
from workflows.services import hints
from workflows.services.clock import database_now
from workflows.services.waits import cancel_open

log = structlog.get_logger(__name__)

MIN_NOTE = 20  # characters: who told you, and where it is written down, fit in no fewer
MAX_NOTE = 4000
MAX_RESOURCE = 300
CODE_LENGTH = 6
OF_AN_EVENT = (
    "This hold is of an event: attach the event to a wait or dismiss it, on its page or with "
    "manage.py events. The hold ends with that."
)

# Holds whose step would end as before: why, and what helps instead.
HOPELESS = {
    "rejected": (
        "The provider has refused it for good: it would be refused again.",
        "Ending the run, and starting a new one.",
    ),
    "children_failed": (
        "The runs that it started have ended, and not as the step needs: it would find them so "
        "again.",
        "Ending the run, and starting a new one for what is still to be done.",
    ),
}
RUN_KINDS = (DecisionKind.TRY_AGAIN, DecisionKind.FAIL_RUN, DecisionKind.KEEP_HOLDING)


@dataclass(frozen=True)
class Answer:
    """What a person filled in.

    Attributes:
        version: of the hold, as it was read.
        token: of the form, made when it was shown.
        code: the last six characters of the operation's or run's ID, typed by the person.
        resource: the provider's resource, when the decision is that it was applied.
        until: how long to keep holding.
    """

    kind: DecisionKind
    note: str
    version: int
    token: UUID
    code: str
    resource: str = ""
    until: datetime | None = None


def record_decision(hold_id: UUID, user: User, answer: Answer) -> Decision:
    """Record a decision and move operation and run by it.

    Returns:
        The decision; of a form that was submitted before, the one it recorded then.

    Raises:
        PermissionDenied: this person may not decide this hold.
        InvalidDecision: something the decision needs is missing; names the field.
        AlreadyDecided: somebody decided first; carries theirs.
        NotAllowed: the decision is not offered now; says why.
    """
    failpoint("before_decision")
    with transaction.atomic():
        hold = locked(hold_id)
        access.ensure_may_decide(user, hold)
        before = Decision.objects.filter(token=answer.token, by=user, hold=hold).first()
        if before is not None:
            return before
        if Decision.objects.filter(token=answer.token).exists():
            raise InvalidDecision("token", "This form was used for another case. Load it again.")
        ensure_undecided(hold, answer)
        check_answer(hold, answer)
        offers = offers_on(hold)
        ensure_offered(offers, answer.kind)
        decision = write(hold, user, answer, offers)
        act(hold, decision)
    failpoint("after_decision")
    log.info("hold.decided", hold=str(hold.pk), run=str(hold.run_id), kind=answer.kind)
    return decision


def locked(hold_id: UUID) -> Hold:
    """Lock run, operation and hold, in that order, and return the hold with both."""
    run_id = Hold.objects.values_list("run_id", flat=True).get(pk=hold_id)
    if run_id is None:
        raise NotAllowed(OF_AN_EVENT)
    run = Run.objects.select_for_update().get(pk=run_id)
    hold = Hold.objects.select_for_update(of=("self",)).select_related("queue").get(pk=hold_id)
    hold.run = run
    if hold.operation_id is not None:
        hold.operation = (
            Operation.objects.select_for_update(of=("self",))
            .select_related(*WITH_PROVIDER)
            .get(pk=hold.operation_id)
        )
    return hold


def ensure_undecided(hold: Hold, answer: Answer) -> None:
    last = hold.decisions.select_related("by").order_by("-id").first()
    if hold.state == HoldState.CLOSED:
        raise AlreadyDecided(f"{why_closed(hold)} meanwhile, and the hold was closed by it.", last)
    if hold.state != HoldState.OPEN or hold.version != answer.version:
        kind = last.kind.replace("_", " ") if last else ""
        who = f"{last.by_name} decided first: {kind}" if last else "it has changed"
        raise AlreadyDecided(f"Nothing was recorded of yours: {who}.", last)


def check_answer(hold: Hold, answer: Answer) -> None:
    note = answer.note.strip()
    if len(note) < MIN_NOTE:
        raise InvalidDecision(
            "note", f"Write a note of at least {MIN_NOTE} characters: who told you, and where."
        )
    if not is_storable(note, MAX_NOTE):
        raise InvalidDecision("note", f"Plain text of {MAX_NOTE:,} characters at most.")
    subject = hold.case_id
    if answer.code.strip().lower() != code_of(subject):
        raise InvalidDecision(
            "code", f"The {CODE_LENGTH} characters are not the last ones of this ID."
        )
    if answer.kind is DecisionKind.APPLIED and not answer.resource.strip():
        raise InvalidDecision("resource", "Name the provider's record that shows it was done.")
    if not is_storable(answer.resource.strip(), MAX_RESOURCE):
        raise InvalidDecision("resource", f"Plain text of {MAX_RESOURCE} characters at most.")
    if answer.kind is DecisionKind.KEEP_HOLDING and (
        answer.until is None or answer.until <= database_now()
    ):
        raise InvalidDecision("until", "Say until when, at a time that is not past.")


def code_of(subject: UUID | None) -> str:
    """The characters of an ID that people type, so that a decision cannot land on another case."""
    return subject.hex[-CODE_LENGTH:] if subject else ""


def offers_on(hold: Hold) -> list[Option]:
    """The decisions on a hold, as they are offered now."""
    if hold.operation is None:
        return [offer_on_run(hold, kind) for kind in RUN_KINDS]
    return options(load_facts(hold.operation), database_now())


def offer_on_run(hold: Hold, kind: DecisionKind) -> Option:
    if kind is DecisionKind.TRY_AGAIN and hold.reason in HOPELESS:
        return Option(kind, False, *HOPELESS[hold.reason])
    unsettled = hold.held_run.operations.exclude(state__in=SETTLED).exists()
    if kind is DecisionKind.FAIL_RUN and unsettled:
        return Option(
            kind,
            False,
            "An operation of this run is not settled: its outcome must be known first.",
            "Trying the step again, which settles the operation or holds it.",
        )
    return Option(kind, True)


def ensure_offered(offers: list[Option], kind: DecisionKind) -> None:
    offer = next((offer for offer in offers if offer.kind is kind), None)
    if offer is None:
        raise InvalidDecision("kind", "Choose one of the decisions that are shown.")
    if not offer.allowed:
        raise NotAllowed(offer.why_not)


def write(hold: Hold, user: User, answer: Answer, offers: list[Option]) -> Decision:
    """Write decision, evidence and audit entry."""
    decision = Decision.objects.create(
        hold=hold,
        operation=hold.operation,
        kind=answer.kind,
        by=user,
        by_name=user.get_full_name() or user.get_username(),
        note=answer.note.strip(),
        evidence=stated(hold, user, answer),
        resource=answer.resource.strip(),
        until=answer.until if answer.kind is DecisionKind.KEEP_HOLDING else None,
        hold_version=hold.version,
        token=answer.token,
        shown=what_was_shown(hold, offers),
    )
    subject = f"operation:{hold.operation_id}" if hold.operation_id else f"run:{hold.run_id}"
    detail = {"decision": str(decision.pk), "kind": str(answer.kind), "hold": str(hold.pk)}
    add_entry(actor_of(user), "decided", subject, detail)
    return decision


def stated(hold: Hold, user: User, answer: Answer) -> Evidence | None:
    """What the person states about the outcome, as evidence; some decisions state nothing."""
    if hold.operation is None or answer.kind not in (
        DecisionKind.APPLIED,
        DecisionKind.SEND_AGAIN,
    ):
        return None
    applied = answer.kind is DecisionKind.APPLIED
    result_accepted = (
        hold.operation.state == OperationState.POSTCONDITION_FAILED
        or hold.reason == HoldReason.NOT_VERIFIABLE
    )
    return Evidence.objects.create(
        operation=hold.operation,
        kind=EvidenceKind.OPERATOR,
        completes=applied,
        denies=not applied,
        postcondition=True if applied and result_accepted else None,
        resource=answer.resource.strip() if applied else "",
        source=user.get_full_name() or user.get_username(),
        by=user,
    )


def what_was_shown(hold: Hold, offers: list[Option]) -> dict[str, Any]:
    evidence = hold.operation.evidence.order_by("recorded_at", "id") if hold.operation else []
    return {
        "reason": hold.reason,
        "message": hold.message,
        "options": [
            {"kind": str(offer.kind), "allowed": offer.allowed, "why_not": offer.why_not}
            for offer in offers
        ],
        "evidence": [str(row.pk) for row in evidence],
    }


def act(hold: Hold, decision: Decision) -> None:
    """Do what the decision says, in its transaction."""
    kind = DecisionKind(decision.kind)
    if kind is DecisionKind.KEEP_HOLDING:
        Hold.objects.filter(pk=hold.pk).update(
            due_at=decision.until, tell_at=Now(), version=F("version") + 1
        )
        return
    Hold.objects.filter(pk=hold.pk).update(
        state=HoldState.DECIDED, closed_at=Now(), version=F("version") + 1
    )
    if hold.reason == CONFLICT_LATER:
        return  # its operation is settled, and its run has gone on
    if hold.operation is not None:
        move_operation(hold.operation, kind)
    move_run(hold.held_run, kind)


def move_operation(operation: Operation, kind: DecisionKind) -> None:
    moves: dict[DecisionKind, Callable[[], bool]] = {
        DecisionKind.APPLIED: lambda: applied(operation),
        DecisionKind.SEND_AGAIN: lambda: send_again(operation),
        DecisionKind.ABANDON: lambda: Operation.objects.move(operation, OperationState.ABANDONED),
    }
    if not moves[kind]():
        raise AlreadyDecided("The operation has moved meanwhile; nothing was recorded.")


def applied(operation: Operation) -> bool:
    """It took effect; the worker that goes on checks the result, where the contract can."""
    if operation.state == OperationState.POSTCONDITION_FAILED:
        return True  # the run goes on with what the person accepted as the result
    return Operation.objects.move(operation, OperationState.APPLIED)


def send_again(operation: Operation) -> bool:
    was_sent = operation.transmissions.exists()
    target = OperationState.UNKNOWN if was_sent else OperationState.INTENDED
    return Operation.objects.move(operation, target, send_again_at=Now())


def move_run(run: Run, kind: DecisionKind) -> None:
    if kind is DecisionKind.FAIL_RUN:
        failure = {"reason": "decided", "message": "A person ended it."}
        moved = Run.objects.move(run, RunState.FAILED, failure=failure)
        cancel_open([run.pk])
    else:
        # What was tried before the decision does not count against what comes after it.
        moved = Run.objects.move(run, RunState.READY, failure=None, failures=0, losses=0)
    if not moved:
        raise AlreadyDecided("The run has moved meanwhile; nothing was recorded.")
    hints.run_is_ready(run.pk)
