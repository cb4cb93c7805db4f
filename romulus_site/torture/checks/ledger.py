"""Operations and their transmissions, as the ledger has them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from reconciliation.core.states import (
    DecisionKind,
    EvidenceKind,
    OperationState,
    TransmissionState,
)
from reconciliation.models import Operation, Transmission
from romulus_site.torture.checks.walks import is_passage
from romulus_site.torture.faults import OF_PERSONALITY
from romulus_site.torture.record import Record
from workflows.core.states import AttemptState, RunState
from workflows.models import Attempt

FAULTS = [fault for kinds in OF_PERSONALITY.values() for fault in kinds]
LOSSY = {fault.text.partition(";")[0] for fault in FAULTS if fault.lossy}
GONE = (AttemptState.LOST, AttemptState.SUPERSEDED)


def sends(record: Record) -> Iterator[str]:
    for operation in record.operations:
        rows = record.transmissions_of.get(operation.pk, [])
        numbers = [row.number for row in rows]
        if numbers != list(range(1, len(rows) + 1)):
            yield f"{named(record, operation)}: its sends are numbered {numbers}"
        for row in rows:
            yield from of_an_attempt(record, operation, row)
        if operation.state == OperationState.SENDING and is_over(record, operation):
            yield f"{named(record, operation)} is sending, and its run is over"


def of_an_attempt(record: Record, operation: Operation, row: Transmission) -> Iterator[str]:
    """Each send was one attempt's, at this step, under its fence, and is over."""
    said = f"{named(record, operation)}: send {row.number}"
    if row.state == TransmissionState.SENDING:
        yield f"{said} is recorded as on its way"
    attempt = record.attempt_of.get(row.attempt)
    if attempt is None:
        yield f"{said} is of attempt {row.attempt}, which is not on record"
        return
    whose = (attempt.run_id, attempt.step, attempt.visit, attempt.fence, attempt.worker)
    if whose != (operation.run_id, operation.step, operation.visit, row.fence, row.worker):
        yield f"{said} says fence {row.fence}, worker {row.worker}, and its attempt {whose}"
    if not attempt.claimed_at <= row.started_at <= attempt.ended_at:
        yield (
            f"{said} began at {row.started_at}, and its attempt lasted from {attempt.claimed_at} "
            f"to {attempt.ended_at}"
        )


def unknown(record: Record) -> Iterator[str]:
    """Where nothing was struck and the destination answered well, there is nothing unknown."""
    for operation in record.operations:
        for row in record.transmissions_of.get(operation.pk, []):
            if row.state == TransmissionState.UNKNOWN and not is_excused(record, row):
                yield (
                    f"{named(record, operation)}: send {row.number} is unknown "
                    f"({row.detail_redacted}), and nothing fell on its worker or the destination"
                )


def no_blind_repeat(record: Record) -> Iterator[str]:
    """Promise P5: without a key nothing follows a send that may have had an effect."""
    for operation in record.operations:
        if record.personality_of(operation) == "keyed" or was_sent_again(record, operation):
            continue
        for row in record.transmissions_of.get(operation.pk, [])[:-1]:
            if row.state not in (TransmissionState.REJECTED, TransmissionState.NOT_SENT):
                yield f"{named(record, operation)}: send {row.number} is {row.state}, and repeated"


def was_sent_again(record: Record, operation: Operation) -> bool:
    return any(
        row.operation_id == operation.pk and row.kind == DecisionKind.SEND_AGAIN
        for row in record.decisions
    )


def settled(record: Record) -> Iterator[str]:
    """Promise P7: a run is past its write only when that is verified."""
    by_step = {(op.run_id, op.step, op.visit): op for op in record.operations}
    for attempt in record.attempts:
        if not is_passage(attempt) or attempt.step not in WRITES:
            continue
        operation = by_step.get((attempt.run_id, attempt.step, attempt.visit))
        if operation is None:
            yield f"{record.name(attempt.run_id)} is past {attempt.step}, without an operation"
        elif operation.state != OperationState.VERIFIED:
            yield f"{named(record, operation)} is {operation.state}, and its run is past it"
    for operation in record.operations:
        run = record.run_of[operation.run_id]
        unsettled = not OperationState(operation.state).is_settled
        if unsettled and RunState(run.state).is_final:
            yield f"{named(record, operation)} is {operation.state}, and its run is {run.state}"


WRITES = {"refund", "machine", "comment"}


def proofs(record: Record) -> Iterator[str]:
    """Promise P4: an outcome rests on evidence, or on somebody's decision."""
    for operation in record.operations:
        known = record.evidence_of.get(operation.pk, [])
        kinds = {row.kind for row in record.decisions if row.operation_id == operation.pk}
        run = record.run_of[operation.run_id]
        said = f"{named(record, operation)} is {operation.state}"
        match OperationState(operation.state):
            case OperationState.VERIFIED | OperationState.APPLIED:
                if not any(row.completes for row in known):
                    yield f"{said}, and nothing on record proves it"
            case OperationState.REJECTED:
                if not any(row.kind == EvidenceKind.REJECTION for row in known):
                    yield f"{said}, and no refusal is on record"
            case OperationState.ABANDONED:
                if DecisionKind.ABANDON not in kinds and run.cancel_asked_at is None:
                    yield f"{said}, and nobody has decided that"
            case _:
                pass


# --- what is shared with other checks ---------------------------------------------------------


def named(record: Record, operation: Operation) -> str:
    return f"operation {operation.pk} of {record.name(operation.run_id)}"


def is_over(record: Record, operation: Operation) -> bool:
    return record.run_of[operation.run_id].state != RunState.RUNNING


def lost_answers(record: Record, operation: Operation) -> list[Transmission]:
    """The sends of which nobody knows what became of them, each for a reason that is on record."""
    rows = record.transmissions_of.get(operation.pk, [])
    return [
        row for row in rows if row.state == TransmissionState.UNKNOWN and is_excused(record, row)
    ]


def is_excused(record: Record, row: Transmission) -> bool:
    """Whether its answer was lost by a fault, with its worker, or with the destination."""
    return met_lossy_fault(record, row) or is_struck(record, row) or was_conflict(record, row)


def met_fault(record: Record, row: Transmission) -> bool:
    return any(entry.fault for entry in record.posts_of.get(str(row.pk), []))


def met_lossy_fault(record: Record, row: Transmission) -> bool:
    names = {
        (entry.fault or "").partition(";")[0] for entry in record.posts_of.get(str(row.pk), [])
    }
    return not LOSSY.isdisjoint(names)


def is_struck(record: Record, row: Transmission) -> bool:
    """Whether something fell on its worker, the database or the destination while it was sent."""
    strikes = record.performance.strikes
    until = end_of_send(record, row)
    pid = record.workers.get(row.worker)
    return strikes.on_worker(pid, row.started_at, until) or strikes.on_destination(
        row.started_at, until
    )


def end_of_send(record: Record, row: Transmission) -> datetime:
    attempt: Attempt | None = record.attempt_of.get(row.attempt)
    ends = [row.ended_at, attempt.ended_at if attempt else None]
    return max((end for end in ends if end), default=row.started_at + timedelta(seconds=60))


def was_conflict(record: Record, row: Transmission) -> bool:
    """A replay that met its own first send still under way, or the error kept under its key."""
    return (
        any(
            entry.status is not None and entry.done in ("nothing", "replay")
            for entry in record.posts_of.get(str(row.pk), [])
        )
        and row.number > 1
    )
