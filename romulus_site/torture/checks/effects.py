"""The destination's own record, beside the ledger's: what was really done, and how often."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from reconciliation.core.states import DecisionKind, OperationState, TransmissionState
from reconciliation.models import Operation
from reconciliation.rehearsal.client import JournalEntry
from romulus_site.torture.checks.ledger import named
from romulus_site.torture.record import Record


def one_at_most(record: Record) -> Iterator[str]:
    for operation, effects in record.effects_of.items():
        if len(effects) > 1:
            resources = ", ".join(effect.resource_id for effect in effects)
            yield f"operation {operation} has {len(effects)} effects: {resources}"


def truth(record: Record) -> Iterator[str]:
    """A verified operation has exactly one effect, a rejected or unsent one has none."""
    for operation in record.operations:
        effects = [e.resource_id for e in record.effects_of.get(str(operation.pk), [])]
        said = f"{named(record, operation)} is {operation.state}"
        match OperationState(operation.state):
            case OperationState.VERIFIED | OperationState.APPLIED:
                if not effects:
                    yield f"{said}, and the destination has no effect of it"
                elif operation.resource and operation.resource not in effects:
                    yield f"{said} with {operation.resource}, and the destination has {effects}"
            case OperationState.POSTCONDITION_FAILED if not effects:
                yield f"{said}, and the destination has no effect of it"
            case OperationState.REJECTED | OperationState.INTENDED if effects:
                yield f"{said}, and the destination has {effects}"
            case OperationState.ABANDONED if effects and not was_abandoned(record, operation):
                yield f"{said} without a decision, and the destination has {effects}"
            case _:
                pass
        yield from truth_of_sends(record, operation)


def was_abandoned(record: Record, operation: Operation) -> bool:
    return any(
        row.operation_id == operation.pk and row.kind == DecisionKind.ABANDON
        for row in record.decisions
    )


def truth_of_sends(record: Record, operation: Operation) -> Iterator[str]:
    """What is said of each send is what came of it at the other end."""
    for row in record.transmissions_of.get(operation.pk, []):
        arrived = record.posts_of.get(str(row.pk), [])
        made = [entry.effect for entry in arrived if entry.effect is not None]
        said = f"{named(record, operation)}: send {row.number} is {row.state}"
        if len(arrived) > 1:
            yield f"{said}, and arrived {len(arrived)} times"
        if row.state == TransmissionState.NOT_SENT and arrived:
            yield f"{said}, and arrived"
        if row.state == TransmissionState.REJECTED and made:
            yield f"{said}, and the destination made effect {made}"
        if row.state == TransmissionState.ACKNOWLEDGED and not arrived:
            yield f"{said}, and never arrived"


def one_key(record: Record) -> Iterator[str]:
    """Promise P3: one key, one operation, the very same bytes each time."""
    sent: dict[tuple[str, str], set[tuple[str, bytes, str]]] = defaultdict(set)
    for entry in record.journal:
        if entry.method == "POST" and entry.operation and arrived_whole(entry):
            key = (entry.account or "", entry.idempotency_key or entry.operation)
            sent[key].add((entry.path, entry.body, entry.operation))
    for (_, name), requests in sent.items():
        if len(requests) > 1:
            yield f"key {name} carried {len(requests)} different requests"
    keys = {str(operation.pk): operation.idempotency_key for operation in record.operations}
    for entry in record.journal:
        known = keys.get(entry.operation or "")
        if entry.idempotency_key and known is not None and entry.idempotency_key != known:
            yield f"operation {entry.operation} was sent under {entry.idempotency_key}, not {known}"


def arrived_whole(entry: JournalEntry) -> bool:
    """Whoever is killed in the middle of sending leaves a head without its body, of which the
    destination keeps nothing and does nothing."""
    return bool(entry.body) or entry.done != "nothing"


def known(record: Record) -> Iterator[str]:
    """Promise P3: nothing leaves before it is on record."""
    operations = {str(operation.pk) for operation in record.operations}
    sends = {str(row.pk): str(row.operation_id) for row in record.transmissions}
    for effect in record.effects:
        if effect.operation not in operations:
            yield f"effect {effect.resource_id} is of an unknown operation: {effect.operation}"
    for attempt, entries in record.posts_of.items():
        for entry in entries:
            if sends.get(attempt) != entry.operation:
                yield (
                    f"request {entry.request_id} is of send {attempt or 'none'} of operation "
                    f"{entry.operation}, which is not on record"
                )
