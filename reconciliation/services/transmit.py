"""One transmission: claimed in the ledger, sent once, and its answer recorded.

    ask       elsewhere: what must be true before it, and an external decision point, if any
    begin     one transaction: run held, dispatch on, authorised (P11), row `sending`, window
              stored; of a first send that is made at once also the operation itself, before any
              byte of it (P3)
    transmit  no transaction: one request on the wire
    record    one transaction: what it proves, with its evidence

A worker that dies between the two leaves a row that says `sending`; the next attempt makes it
`unknown`, and the contract says what may follow. Nothing is ever guessed from the error.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from django.db import transaction

from reconciliation.adapters.base import Prepared, Transmitted
from reconciliation.adapters.uptime import uptime
from reconciliation.core.classify import UNKNOWN, Classification, Phase, Report, classify
from reconciliation.core.contracts import Contract, Meaning
from reconciliation.core.errors import DecisionPointUnasked, DispatchTurnedOff, RunCancelled
from reconciliation.core.facts import Dispatch
from reconciliation.core.matching import Comparison, Fit
from reconciliation.core.protection import in_flight_until
from reconciliation.core.states import EvidenceKind, OperationState, Purpose, TransmissionState
from reconciliation.models import Evidence, Operation, Transmission
from reconciliation.sealing import unseal
from reconciliation.services.authorise import (
    NOT_ASKED,
    Elsewhere,
    ask_elsewhere,
    authorise,
    read_before,
)
from reconciliation.services.dispatch import dispatch_now, dispatch_of
from reconciliation.services.holds import locked_state
from reconciliation.services.ledger import ensure_held, is_written_down, lock_held
from reconciliation.services.providers import adapter_of, contract_of
from reconciliation.services.records import add_record_evidence, compare_record
from workflows.failpoints import failpoint
from workflows.services.claims import Claim
from workflows.services.clock import database_now
from workflows.services.taken_back import again_if_taken_back

log = structlog.get_logger(__name__)

# Longer between its claim to send and the send, and a worker was frozen, or as good as that.
STOOD_STILL = timedelta(seconds=1)


def send(operation: Operation, claim: Claim, purpose: Purpose) -> None:
    """Transmit the stored bytes once and record what that proves.

    Raises:
        LostOwnership: a later claim holds the run; nothing was sent.
        DispatchTurnedOff, RunCancelled, AuthorisationLapsed: nothing was sent.
        DecisionPointUnasked: nothing was sent; the policy was changed while one was asked.
    """
    contract = contract_of(operation)
    opens = not is_written_down(operation)
    if opens:
        failpoint("before_open", claim.step.name)
    elsewhere = read_before(operation, contract)
    failpoint("before_dispatch", claim.step.name)
    try:
        transmission = begin(operation, claim, purpose, contract, elsewhere)
    except DecisionPointUnasked as unasked:
        elsewhere = ask_elsewhere(operation, unasked, elsewhere)
        transmission = begin(operation, claim, purpose, contract, elsewhere)
    if opens:
        failpoint("after_open", claim.step.name)
        log.info("operation.opened", operation=str(operation.pk), action=operation.action)
    failpoint("after_dispatch", claim.step.name)
    outcome = transmit(operation, transmission, contract)
    failpoint("after_answer", claim.step.name)
    failpoint("before_settle", claim.step.name)
    record(operation, transmission, outcome, contract)
    failpoint("after_settle", claim.step.name)


def begin(
    operation: Operation,
    claim: Claim,
    purpose: Purpose,
    contract: Contract,
    elsewhere: Elsewhere = NOT_ASKED,
) -> Transmission:
    """Write the transmission down before a byte of it leaves; store what protects it.

    An operation that is not written down yet is opened in the same commit.
    """
    # Read first: a worker that is frozen from here on finds its time over when it thaws.
    send_before = uptime() + contract.timeout.total_seconds()
    with transaction.atomic():
        run = lock_held(claim)
        if run.cancel_asked_at is not None:
            operation.run.cancel_asked_at = run.cancel_asked_at
            raise RunCancelled
        if dispatch_now(operation) is not Dispatch.ON:
            raise DispatchTurnedOff
        now = database_now()
        authorise(operation, claim, elsewhere, now)
        sent_before = operation.transmissions.count() if is_written_down(operation) else 0
        move_to_sending(operation, protected_from(operation, now, contract))
        transmission = Transmission.objects.create(
            operation=operation,
            number=sent_before + 1,
            attempt=claim.attempt,
            worker=claim.worker,
            fence=claim.fence,
            purpose=purpose,
            started_at=now,
            in_flight_until=in_flight_until(contract, now),
        )
    transmission.send_before = send_before
    return transmission


def protected_from(operation: Operation, now: datetime, contract: Contract) -> dict[str, Any]:
    """What is stored with the first send: when it began, and until when it may be repeated."""
    if operation.first_sent_at is not None:
        return {}
    window = contract.replay.window if contract.replay is not None else None
    return {"first_sent_at": now, "replay_not_after": now + window if window else None}


def move_to_sending(operation: Operation, changes: dict[str, Any]) -> None:
    changes["due_at"] = None
    if is_written_down(operation):
        moved = Operation.objects.move(operation, OperationState.SENDING, **changes)
        assert moved, "the run's lock keeps others away"
    for name, value in changes.items():
        setattr(operation, name, value)
    if not is_written_down(operation):
        operation.state = OperationState.SENDING
        operation.save(force_insert=True)


def transmit(operation: Operation, transmission: Transmission, contract: Contract) -> Transmitted:
    """Send the stored bytes. What goes wrong in the adapter itself leaves the outcome unknown."""
    if was_turned_off(operation, transmission, contract):
        return Transmitted(Report(Phase.RESOLVE), detail="dispatch was turned off before it left")
    adapter = adapter_of(operation.provider, contract)
    prepared = Prepared.from_bytes(unseal(operation.request_sealed))
    try:
        return adapter.transmit(
            prepared,
            operation.action,
            operation.pk,
            transmission.pk,
            max(transmission.send_before - uptime(), 0.0),
        )
    except Exception as error:
        log.exception("transmission.crashed", transmission=str(transmission.pk))
        return Transmitted(Report(Phase.SEND), detail=f"the adapter broke ({type(error).__name__})")


def was_turned_off(operation: Operation, transmission: Transmission, contract: Contract) -> bool:
    """Whether dispatch was turned off since the claim to send: a worker that was frozen meanwhile
    asks once more (promise P13)."""
    claimed = transmission.send_before - contract.timeout.total_seconds()
    if uptime() - claimed <= STOOD_STILL.total_seconds():
        return False
    return dispatch_of(operation) is not Dispatch.ON


def record(
    operation: Operation, transmission: Transmission, outcome: Transmitted, contract: Contract
) -> None:
    """Record what the transmission proves, and the evidence that came with it.

    When the row says `sending` no more, another attempt has taken over: then the answer is kept as
    evidence, which is true whoever brings it, and nothing else changes (promise P2).
    """
    proves = classify(outcome.report, contract)
    if proves.state is TransmissionState.ACKNOWLEDGED and outcome.record is None:
        proves = UNKNOWN  # a yes that shows nothing proves nothing
    comparison = compare_record(operation, outcome.record)
    # An answer comes once: what was lost of it would be a person's to find out.
    in_time = again_if_taken_back(
        partial(write_answer, operation, transmission, outcome, proves, comparison, operation.state)
    )
    log.info(
        "transmission.ended",
        operation=str(operation.pk),
        transmission=str(transmission.pk),
        state=proves.state,
        phase=outcome.report.phase,
        in_time=in_time,
    )


def write_answer(
    operation: Operation,
    transmission: Transmission,
    outcome: Transmitted,
    proves: Classification,
    comparison: Comparison | None,
    state: str,
) -> bool:
    """Write it down in one transaction; False when another attempt has taken over.

    Args:
        state: of the operation, as it is on record. An earlier try that was taken back has moved
            it here, and only here.
    """
    operation.state = state
    with transaction.atomic():
        now = database_now()
        in_time = close(transmission, outcome, proves, now)
        add_answer_evidence(operation, transmission, outcome, proves, comparison, now)
        if in_time:
            follow(operation, transmission, proves, comparison)
        else:
            bring_forward(operation)
    return in_time


def close(
    transmission: Transmission, outcome: Transmitted, proves: Classification, now: datetime
) -> bool:
    """End the transmission's row; False when somebody ended it before."""
    answer = outcome.report.answer
    pause = answer.retry_after_seconds if answer else None
    changed = Transmission.objects.filter(
        pk=transmission.pk, state=TransmissionState.SENDING
    ).update(
        state=proves.state,
        ended_at=now,
        phase=outcome.report.phase,
        meaning=proves.meaning,
        status=answer.status if answer else None,
        resolves_earlier=proves.resolves_earlier,
        retry=proves.retry,
        retry_after_at=now + timedelta(seconds=pause) if pause else None,
        provider_request_id=outcome.request_id,
        detail_redacted=outcome.detail[:500],
    )
    return changed == 1


def add_answer_evidence(
    operation: Operation,
    transmission: Transmission,
    outcome: Transmitted,
    proves: Classification,
    comparison: Comparison | None,
    now: datetime,
) -> None:
    source = f"answer to send {transmission.number}"
    match proves.state:
        case TransmissionState.ACKNOWLEDGED if outcome.record and comparison:
            add_record_evidence(
                operation,
                EvidenceKind.RECEIPT,
                outcome.record,
                comparison,
                source,
                transmission,
                observed_at=now,
            )
        case TransmissionState.REJECTED:
            Evidence.objects.create(
                operation=operation,
                transmission=transmission,
                kind=EvidenceKind.REJECTION,
                source=source,
                detail_redacted=outcome.detail,
            )
        case _:
            pass


def follow(
    operation: Operation,
    transmission: Transmission,
    proves: Classification,
    comparison: Comparison | None,
) -> None:
    """Move the operation by what its own latest transmission proves."""
    earlier = operation.transmissions.filter(state=TransmissionState.UNKNOWN)
    unresolved_before = transmission.number > 1 and earlier.exists()
    target = OperationState.UNKNOWN
    changes: dict[str, Any] = {}
    match proves.state:
        case TransmissionState.ACKNOWLEDGED:
            fits = comparison is not None and comparison.fit is Fit.MATCH
            target = OperationState.APPLIED if fits else OperationState.UNKNOWN
        case TransmissionState.NOT_SENT | TransmissionState.REJECTED:
            resolved = proves.resolves_earlier or not unresolved_before
            target = OperationState.INTENDED if resolved else OperationState.UNKNOWN
            if not operation.transmissions.exclude(state=TransmissionState.NOT_SENT).exists():
                # It was never sent: the key was never shown, and its time has not begun.
                changes = {"first_sent_at": None, "replay_not_after": None}
        case _:
            pass
    moved = Operation.objects.move(operation, target, **changes)
    assert moved, "only the attempt that sends moves an operation out of sending"
    for name, value in changes.items():
        setattr(operation, name, value)


def bring_forward(operation: Operation) -> None:
    """Have Romulus look at a parked operation soon: something new is known."""
    Operation.objects.filter(
        pk=operation.pk,
        state__in=[OperationState.UNKNOWN, OperationState.HELD, OperationState.INTENDED],
    ).update(due_at=database_now())


def give_up_lost_sends(operation: Operation, claim: Claim) -> None:
    """Whatever an earlier attempt was sending is unknown: its worker is not ours to ask."""
    failpoint("before_give_up", claim.step.name)
    with transaction.atomic():
        ensure_held(claim)
        # The sends before their operation, as `record` does, which may be at it.
        lost = operation.transmissions.filter(state=TransmissionState.SENDING).exclude(
            attempt=claim.attempt
        )
        changed = lost.update(
            state=TransmissionState.UNKNOWN,
            ended_at=database_now(),
            meaning=Meaning.UNKNOWN,
            detail_redacted="the worker that sent it went quiet",
        )
        # Its sender's answer may have come meanwhile.
        operation.state = locked_state(operation)
        if changed or operation.state == OperationState.SENDING:
            Operation.objects.move(operation, OperationState.UNKNOWN)
    failpoint("after_give_up", claim.step.name)
