"""What is held, beside what the model of the contracts says that nobody but a person can settle.

The model (`core.model_history`) is given each operation's history, and knows nothing of what was
decided on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from uuid import UUID

from reconciliation.core.facts import CONFLICT_LATER, Facts
from reconciliation.core.model_history import Stand, stand_of
from reconciliation.core.states import HoldState, OperationState
from reconciliation.models import Hold, Operation
from reconciliation.services.facts import as_known, as_sent
from romulus_site.torture.checks.ledger import named
from romulus_site.torture.record import Record
from workflows.core.states import RunState

PROVEN = (OperationState.VERIFIED, OperationState.REJECTED)


def as_modelled(record: Record) -> Iterator[str]:
    """Operation by operation, and then their number."""
    stands = stands_in_model(record)
    held, wanted = held_operations(record), of_whom_a_person_is_wanted(record, stands)
    for operation in record.operations:
        stand = stands[operation.pk]
        said = f"{named(record, operation)} is {operation.state}"
        if stand is Stand.IMPOSSIBLE:
            yield f"{said}, and its contract permits no such history"
        if operation.state in PROVEN and stand is not Stand.SETTLED:
            yield f"{said}, and by the model it is {stand}"
        if operation.pk in held - wanted:
            yield f"{said}, and by the model it needs no person: it is {stand}"
        if operation.pk in wanted - held:
            yield f"{said} and not held, and by the model it needs a person"
    if len(held) != len(wanted):
        yield f"{len(held)} operations are held, and by the model {len(wanted)} cannot be settled"


def counted(record: Record) -> dict[str, int]:
    """How many operations are held, and how many the model says that only a person settles."""
    wanted = of_whom_a_person_is_wanted(record, stands_in_model(record))
    return {"held": len(held_operations(record)), "by_model": len(wanted)}


def stands_in_model(record: Record) -> dict[UUID, Stand]:
    return {each.pk: stand_in_model(record, each) for each in record.operations}


def held_operations(record: Record) -> set[UUID]:
    return {hold.operation_id for hold in record.holds if hold.operation_id and counts(hold)}


def of_whom_a_person_is_wanted(record: Record, stands: Mapping[UUID, Stand]) -> set[UUID]:
    """Those that nothing but a person settles, by the model.

    Nobody comes to those whose run is held for another reason, such as workers that it has ended;
    and what a person has given up stays as it was.
    """
    return {
        operation.pk
        for operation in record.operations
        if operation.state != OperationState.ABANDONED
        and stands[operation.pk] is Stand.PERSON
        and not waits_for_another_reason(record, operation)
    }


def counts(hold: Hold) -> bool:
    return hold.state == HoldState.OPEN and hold.reason != CONFLICT_LATER


def waits_for_another_reason(record: Record, operation: Operation) -> bool:
    holds = record.holds_of.get(operation.run_id, [])
    return any(counts(hold) and hold.operation_id is None for hold in holds)


def stand_in_model(record: Record, operation: Operation) -> Stand:
    return stand_of(facts_of(record, operation), judged_at(record, operation))


def judged_at(record: Record, operation: Operation) -> datetime:
    """When it came to where it is."""
    holds = record.holds_of.get(operation.run_id, [])
    held = [hold.opened_at for hold in holds if hold.operation_id == operation.pk and counts(hold)]
    sends = record.transmissions_of.get(operation.pk, [])
    times = [*held, operation.settled_at, *(row.ended_at for row in sends[-1:])]
    return next((time for time in times if time is not None), operation.created_at)


def facts_of(record: Record, operation: Operation) -> Facts:
    """Its history, as the ledger keeps it."""
    run = record.run_of[operation.run_id]
    cancelling = run.cancel_asked_at is not None and run.state != RunState.COMPLETED
    return Facts(
        contract=record.contracts[operation.contract_version_id],
        state=OperationState(operation.state),
        opened_at=operation.created_at,
        sent=tuple(map(as_sent, record.transmissions_of.get(operation.pk, []))),
        known=tuple(map(as_known, record.evidence_of.get(operation.pk, []))),
        replay_not_after=operation.replay_not_after,
        send_again=operation.send_again_at,
        cancelling=cancelling,
    )
