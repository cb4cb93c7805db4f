"""What a provider's record proves of an operation: its effect, or that something is wrong.

A record comes with the answer to a send, of a look-up or of the duplicate finder, and may come
while somebody settles the operation by what was known before. So its row is locked first
(`holds.locked_state`).
"""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from reconciliation.adapters.base import Prepared
from reconciliation.core.matching import (
    Agreement,
    Comparison,
    Difference,
    Fit,
    Found,
    Intended,
    compare,
)
from reconciliation.core.states import EvidenceKind, OperationState
from reconciliation.models import Evidence, Operation, Transmission
from reconciliation.models.evidence import DUPLICATE_AUDIT
from reconciliation.sealing import REDACTED, unseal
from reconciliation.services.contradictions import contradict
from reconciliation.services.holds import locked_state, open_later_conflict
from workflows.core.words import storable
from workflows.services.clock import database_now


def compare_record(operation: Operation, record: Found | None) -> Comparison | None:
    return compare(intended_by(operation), record, marker_required=False) if record else None


def intended_by(operation: Operation) -> Intended:
    """What was meant, as it was written down with the very bytes that are sent."""
    prepared = Prepared.from_bytes(unseal(operation.request_sealed))
    return Intended(
        operation=str(operation.pk),
        account=operation.provider.account,
        region=operation.provider.region,
        fields=prepared.fields,
    )


def add_record_evidence(
    operation: Operation,
    kind: EvidenceKind,
    record: Found,
    comparison: Comparison,
    source: str,
    transmission: Transmission | None = None,
    observed_at: datetime | None = None,
) -> None:
    """Keep a provider's record as evidence: it completes the operation, or contradicts it."""
    state = locked_state(operation)
    # A record that carries our marker and names nothing that could be kept proves nothing.
    fits = comparison.fit is Fit.MATCH and bool(record.resource)
    broken = contradiction(operation, state, record.resource) if fits else ""
    conflicts = bool(broken) or not fits
    # What was given up with its outcome open, and proves to have been done, is news as well.
    for_later = state.is_settled and (conflicts or was_given_up_unseen(operation, state))
    if broken and not is_known(operation, record.resource, broken):
        contradict(operation, broken)
    Evidence.objects.create(
        operation=operation,
        transmission=transmission,
        kind=EvidenceKind.CONFLICT if conflicts else kind,
        completes=not conflicts,
        resource=record.resource,
        differences=[shown_difference(operation, each) for each in comparison.differences],
        agreements=[shown_agreement(operation, each) for each in comparison.agreements],
        source=source,
        observed_at=observed_at or database_now(),
        detail_redacted=broken[:1000],
    )
    if for_later:
        open_later_conflict(operation)


ALWAYS_SHOWN = ("operation", "account", "region")
SHOWN = 300  # characters of a value that differs


def shown_difference(operation: Operation, each: Difference) -> dict[str, str]:
    """A difference for people: the values only where the provider's allow-list shows them (P9)."""
    if is_shown(operation, each.field):
        intended, found = storable(each.intended, SHOWN), storable(each.found, SHOWN)
        return {"field": each.field, "intended": intended, "found": found}
    return {"field": each.field, "intended": REDACTED, "found": REDACTED}


def shown_agreement(operation: Operation, each: Agreement) -> dict[str, str]:
    found = storable(each.found, SHOWN) if is_shown(operation, each.field) else REDACTED
    return {"field": each.field, "found": found}


def is_shown(operation: Operation, field: str) -> bool:
    return field in (*ALWAYS_SHOWN, *operation.provider.visible_parameters)


def contradiction(operation: Operation, state: OperationState, resource: str) -> str:
    """What an effect of it breaks of the provider's contract, in words; empty for nothing."""
    another = another_resource(operation, resource)
    if another:
        return f"{another} and {resource} for one operation"
    if state is OperationState.REJECTED:
        return f"{resource} of an operation that was refused"
    return ""


def is_known(operation: Operation, resource: str, broken: str) -> bool:
    """Whether that very effect has stopped repeats before. To see it once more is no news, and
    stops nothing anew once it was reviewed."""
    said = Q(detail_redacted=broken[:1000]) | Q(source=DUPLICATE_AUDIT)
    conflicts = operation.evidence.filter(said, kind=EvidenceKind.CONFLICT, resource=resource)
    return conflicts.exists()


def was_given_up_unseen(operation: Operation, state: OperationState) -> bool:
    """Whether nobody knew of its effect when it was given up."""
    known = operation.evidence.filter(completes=True)
    return state is OperationState.ABANDONED and not known.exists()


def another_resource(operation: Operation, resource: str) -> str:
    """The resource that earlier evidence named, if it is another: then there are two effects."""
    earlier = (
        operation.evidence.filter(completes=True)
        # What a person typed is no record of the provider's.
        .exclude(kind=EvidenceKind.OPERATOR)
        .exclude(resource=resource)
        .first()
    )
    return earlier.resource if earlier else ""
