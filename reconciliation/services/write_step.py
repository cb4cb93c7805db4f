"""The `write` step kind: from the author's intent to a settled operation.

open the operation → decide → send, ask, verify → decide again, until the run moves on, fails,
waits or is held. Everything is read from the ledger anew at each turn, so a worker that takes over
in the middle goes on exactly where the facts are.

The steady write is three commits: opened and about to be sent; answered; settled with the step's
checkpoint, which also keeps what the result check has shown. Asking changes nothing, so a worker
that dies in between asks once more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from uuid import UUID

import structlog

from reconciliation.core.decide import decide, turned_away
from reconciliation.core.errors import (
    AuthorisationLapsed,
    DecisionPointUnasked,
    DispatchTurnedOff,
    RunCancelled,
)
from reconciliation.core.facts import (
    HOLD_SENTENCES,
    Advance,
    Drop,
    Facts,
    GiveUp,
    Hold,
    HoldReason,
    LookUp,
    Move,
    Reject,
    Send,
    Verify,
    Wait,
    WaitReason,
)
from reconciliation.core.states import OperationState, Purpose
from reconciliation.models import Evidence, Operation, Provider
from reconciliation.services.audit import add_entry
from reconciliation.services.authorise import Lapse
from reconciliation.services.facts import facts_to_move, load_facts
from reconciliation.services.following import decided_to_follow, next_in_place
from reconciliation.services.holds import (
    ensure_moved,
    ensure_nothing_new,
    not_ready,
    open_hold,
    open_operation_hold,
    open_run_hold,
    queue_for,
)
from reconciliation.services.ledger import (
    described,
    is_written_down,
    operation_of,
    provider_of,
    write_down,
)
from reconciliation.services.pacing import at_pace
from reconciliation.services.providers import missing_of
from reconciliation.services.reconcile import (
    check_result,
    keep_check,
    look_up,
    parked_until,
    wait_message,
)
from reconciliation.services.transmit import give_up_lost_sends, send
from workflows.core.errors import OutputError, UsageError
from workflows.core.intents import Intent
from workflows.core.proposals import Approved, Asked
from workflows.services import kinds
from workflows.services.authorising import record
from workflows.services.claims import Claim, nothing
from workflows.services.clock import database_now
from workflows.services.failures import after_failure, call
from workflows.services.run_view import RunView
from workflows.services.settling import asked_by, close_all

log = structlog.get_logger(__name__)

LAPSES = (HoldReason.AUTHORISATION_LAPSED, HoldReason.PRECONDITION_GONE)


def execute_write(claim: Claim, view: RunView) -> kinds.Result:
    """Take the step's one operation as far as it goes now; the handler of kind `write`."""
    operation = operation_of(claim)
    following = decided_to_follow(operation) if operation is not None else None
    if operation is not None and following is None:
        # The stored intent counts. The author's code is not asked again: what it reads may have
        # changed meanwhile, and one key must never carry two requests.
        give_up_lost_sends(operation, claim)
    else:
        opened = (
            next_in_place(claim, view, operation, following)
            if operation is not None and following is not None
            else first_opening(claim, view)
        )
        if not isinstance(opened, Operation):
            return opened
        operation = opened
    with structlog.contextvars.bound_contextvars(operation=str(operation.pk)):
        lapse = None if is_written_down(operation) else open_by_sending(claim, operation)
        return settle(claim, operation, lapse)


def first_opening(claim: Claim, view: RunView) -> Operation | kinds.Result:
    """Ask the author's code, once, and describe the operation that it means."""
    value, problem = call(claim, view)
    if problem is not None:
        return problem
    if not isinstance(value, Intent):
        return after_failure(claim, UsageError(not_an_intent(claim, value)))
    provider = provider_of(claim)
    if provider is None or provider.contract_version is None:
        return hold_unready(claim, provider)
    try:
        return described(claim, value, provider, proposal_of(claim, view))
    except UsageError as error:
        return fail_or_hold(claim, "intent_refused", str(error))


def proposal_of(claim: Claim, view: RunView) -> UUID | None:
    """The proposal whose approval the step needs; None where it needs none, or has none."""
    named = claim.step.write.approved_by if claim.step.write else ""
    if not named:
        return None
    try:
        approved: Approved = view.output(named)
    except (UsageError, OutputError):
        return None  # the boundary says so, just before the send
    return approved.proposal


def not_an_intent(claim: Claim, value: object) -> str:
    where = f"step {claim.step.name} ({claim.step.place})"
    if isinstance(value, list | tuple) and any(isinstance(each, Intent) for each in value):
        return (
            f"{where} returned {len(value)} intents: a write step has one; give each its own step"
        )
    return f"{where} returned {type(value).__name__}, not Intent"


def open_by_sending(claim: Claim, operation: Operation) -> Lapse | None:
    """Open the operation and claim its first send in one commit, where it is to be sent at once;
    else open it alone, and return what the boundary has said against it."""
    # As of the moment at which it was described: nothing has happened to it since.
    move = decide(load_facts(operation), operation.created_at)
    lapse = None
    if isinstance(move, Send):
        lapse = send_if_allowed(operation, claim, move.purpose)
    if not is_written_down(operation):
        write_down(operation, claim)
    return lapse


def hold_unready(claim: Claim, provider: Provider | None) -> kinds.Hold:
    """Without a provider and its contract no key and no request can be made: the run is held."""
    assert claim.step.write is not None
    lacks = (
        missing_of(provider, claim.tenant)
        if provider
        else (f"provider {claim.step.write.provider!r}, which is not set up here",)
    )
    queue = provider.default_queue if provider else None
    reason, message = HoldReason.NOT_READY, not_ready(lacks)

    def held() -> None:
        open_hold(claim.run, None, queue or queue_for(claim.tenant, None), reason, message)

    return kinds.Hold(reason, message, also=held)


def fail_or_hold(
    claim: Claim, reason: str, message: str, also: Callable[[], None] = nothing
) -> kinds.Result:
    """What follows when the step cannot have its effect: as its author says."""
    if claim.step.on_failure == "fail":
        return kinds.Fail(reason, message, also=also)

    def held() -> None:
        also()
        open_run_hold(claim, reason, message)

    return kinds.Hold(reason, message, also=held)


def settle(claim: Claim, operation: Operation, lapse: Lapse | None = None) -> kinds.Result:
    """Decide and do, until a decision ends the worker's part."""
    checked: list[Evidence] = []
    while True:
        facts = facts_to_move(operation, checked, lapse)
        move = decide(facts, database_now())
        # The check of what was just sent, or found, is part of that and waits for no turn.
        if isinstance(move, LookUp):
            move = at_pace(operation, facts, move)
        match move:
            case Send(purpose):
                lapse = send_if_allowed(operation, claim, purpose)
            case LookUp():
                look_up(operation)
            case Verify(resource):
                checked.append(check_result(operation, resource))
            case _:
                result = end_of_part(claim, operation, move, facts, lapse)
                return keeping(operation, checked, result) if checked else result


def end_of_part(
    claim: Claim, operation: Operation, move: Move, facts: Facts, lapse: Lapse | None
) -> kinds.Result:
    """What the worker gives back for a move that is not its own to make."""
    match move:
        case Advance(resource):
            return advance(claim, operation, resource, facts)
        case Reject():
            return reject(claim, operation, facts)
        case GiveUp():
            return give_up(claim, operation)
        case Drop():
            return drop(claim, operation, facts)
        case Hold(reason) if lapse is not None and reason in LAPSES:
            return hold_lapsed(operation, reason, facts, lapse)
        case Hold(reason):
            return hold(operation, reason, facts)
        case Wait(until, reason):
            elsewhere = passes_to(claim, operation, reason, facts)
            if elsewhere:
                return pass_by(operation, elsewhere)
            return park(operation, until, reason, facts)
        case _:
            raise AssertionError(f"{move} is the worker's own")


def keeping(operation: Operation, checked: list[Evidence], result: kinds.Result) -> kinds.Result:
    """The same result, which also keeps what was asked about the effect, in the same commit."""
    assert not isinstance(result, kinds.Decide), "a write knows what comes of it"
    follow = result.also or nothing

    def kept() -> None:
        for each in checked:
            keep_check(operation, each)
        follow()

    return replace(result, also=kept)


def send_if_allowed(operation: Operation, claim: Claim, purpose: Purpose) -> Lapse | None:
    """Send, unless dispatch or the run was stopped at the last moment, or the boundary says no:
    then it is decided anew, with what it has said."""
    try:
        send(operation, claim, purpose)
    except AuthorisationLapsed as error:
        lapse: Lapse = error.lapse
        log.info("operation.not_sent", reason="not authorised", check=lapse.verdict.check)
        return lapse
    except DispatchTurnedOff:
        log.info("operation.not_sent", reason="dispatch is not on any more")
    except DecisionPointUnasked:
        log.info("operation.not_sent", reason="the policy was changed while one was asked")
    except RunCancelled:
        log.info("operation.not_sent", reason="its run is to be cancelled")
    return None


def advance(claim: Claim, operation: Operation, resource: str, facts: Facts) -> kinds.Result:
    """The effect is proven: verified, checkpoint and the move past the step in one commit (P7)."""
    receipt = {"operation": str(operation.pk), "resource": resource}

    def verified() -> None:
        if operation.state == OperationState.VERIFIED:
            return
        if operation.state not in (OperationState.APPLIED, OperationState.POSTCONDITION_FAILED):
            ensure_moved(Operation.objects.move(operation, OperationState.APPLIED))
        ensure_moved(
            Operation.objects.move(
                operation, OperationState.VERIFIED, resource=resource, receipt=receipt
            )
        )
        ensure_nothing_new(operation, facts)

    if operation.compensates_id is not None:
        return undone(claim, operation, resource, verified)
    return kinds.Done(receipt, also=verified)


def undone(
    claim: Claim, operation: Operation, resource: str, verified: Callable[[], None]
) -> kinds.Result:
    """The step's effect was taken back: the run goes on as after one that was abandoned."""
    assert claim.step.write is not None
    if claim.step.write.on_abandon == "continue":
        return kinds.Done(None, also=verified)
    message = f"Its effect was undone, as decided: {operation.summary} ({resource})."
    return kinds.Fail("undone", message, also=verified)


def reject(claim: Claim, operation: Operation, facts: Facts) -> kinds.Result:
    last = operation.transmissions.order_by("-number").first()
    detail = f" ({last.detail_redacted})" if last else ""

    def rejected() -> None:
        if operation.state != OperationState.REJECTED:
            ensure_moved(Operation.objects.move(operation, OperationState.REJECTED))
            ensure_nothing_new(operation, facts)

    said = f"{operation.provider.name} refused it: {operation.summary}{detail}."
    if operation.compensates_id is not None:
        return undo_refused(claim, f"{said} What was to be undone is still there.", rejected)
    return fail_or_hold(claim, "rejected", f"{said} Nothing changed there.", rejected)


def undo_refused(claim: Claim, message: str, rejected: Callable[[], None]) -> kinds.Hold:
    """An effect that somebody wanted gone is still there: always a person's, never a silent end."""

    def held() -> None:
        rejected()
        open_run_hold(claim, "undo_refused", message)

    return kinds.Hold("undo_refused", message, also=held)


def give_up(claim: Claim, operation: Operation) -> kinds.Result:
    """A person has abandoned it: the run fails, or goes on without it, as the workflow says."""
    assert claim.step.write is not None
    if claim.step.write.on_abandon == "continue":
        return kinds.Done(None)
    return kinds.Fail(
        "abandoned",
        f"The operation was abandoned: {operation.summary}. Its outcome stays as it was.",
    )


def passes_to(claim: Claim, operation: Operation, reason: WaitReason, facts: Facts) -> str:
    """The step that its author has the run go on at while dispatch is off; empty: it waits.

    What a person had opened, in place of another or to undo it, is never passed by.
    """
    assert claim.step.write is not None
    opened_by_decision = operation.supersedes_id or operation.compensates_id
    if reason is not WaitReason.DISPATCH or opened_by_decision or not turned_away(facts):
        return ""
    return claim.step.write.when_off


def pass_by(operation: Operation, step: str) -> kinds.Result:
    """Dispatch is off and nothing was sent: the run goes on without it, as its author declared."""

    def passed() -> None:
        ensure_moved(Operation.objects.move(operation, OperationState.ABANDONED, due_at=None))
        detail = {"goes_on_at": step}
        add_entry("system", "abandoned: dispatch was off", f"operation:{operation.pk}", detail)

    return kinds.Done(None, also=passed, goto=step)


def drop(claim: Claim, operation: Operation, facts: Facts) -> kinds.Cancel:
    """Nothing of it was done, and the run's end was asked for: the run ends without it."""
    by = asked_by(claim.run)

    def dropped() -> None:
        ensure_moved(Operation.objects.move(operation, OperationState.INTENDED))
        ensure_nothing_new(operation, facts)
        close_all({claim.run: by})  # it closes what is only intended

    return kinds.Cancel(by, also=dropped)


def hold(operation: Operation, reason: HoldReason, facts: Facts) -> kinds.Result:
    def held() -> None:
        open_operation_hold(operation, reason, facts.missing)
        ensure_nothing_new(operation, facts)

    return kinds.Hold(reason, str(HOLD_SENTENCES[reason]), also=held)


def hold_lapsed(
    operation: Operation, reason: HoldReason, facts: Facts, lapse: Lapse
) -> kinds.Result:
    """The boundary's no, on record in the transaction that holds the write for it."""
    message = lapse.said(any(sent.may_have_effect for sent in facts.sent))

    def held() -> None:
        record(lapse.asking, lapse.verdict, Asked.WRITE)
        open_operation_hold(operation, reason, facts.missing, message)
        ensure_nothing_new(operation, facts)

    return kinds.Hold(reason, message, also=held)


def park(
    operation: Operation, until: datetime | None, reason: WaitReason, facts: Facts
) -> kinds.Result:
    """Give the worker back; the sweep brings the operation up again when it is due."""

    changes = parked_until(until, reason)

    def parked() -> None:
        Operation.objects.filter(pk=operation.pk).update(**changes)
        ensure_nothing_new(operation, facts)

    return kinds.Park(reason, wait_message(until, reason), also=parked)
