"""Loading what `decide` looks at. Three queries, whatever the operation has been through."""

from __future__ import annotations

from reconciliation.core.contracts import Meaning, Retry
from reconciliation.core.facts import Dispatch, Facts, Known, Sent
from reconciliation.core.states import EvidenceKind, OperationState, TransmissionState
from reconciliation.models import Evidence, Operation, Transmission
from reconciliation.services.providers import connection_to, contract_of, missing_of


def load_facts(operation: Operation) -> Facts:
    """Return what is known about `operation`, whose provider and contract are loaded with it."""
    provider = operation.provider
    return Facts(
        contract=contract_of(operation),
        state=OperationState(operation.state),
        opened_at=operation.created_at,
        sent=tuple(as_sent(row) for row in operation.transmissions.order_by("number")),
        known=tuple(as_known(row) for row in operation.evidence.order_by("id")),
        replay_not_after=operation.replay_not_after,
        dispatch=Dispatch(provider.dispatch),
        missing=missing_of(provider) + scope_changed(operation),
        replay_trusted=bool(provider.replay_trust),
        look_up_trusted=bool(provider.look_up_trust),
        contradicted=provider.contradicted_at is not None,
        send_again=operation.send_again_at,
    )


def scope_changed(operation: Operation) -> tuple[str, ...]:
    """The key counts in the scope it was made for: elsewhere a replay would be a first send."""
    if connection_to(operation.provider).scope == operation.key_scope:
        return ()
    return ("the account, region and address that this operation's key was made for",)


def as_sent(row: Transmission) -> Sent:
    return Sent(
        number=row.number,
        state=TransmissionState(row.state),
        started_at=row.started_at,
        in_flight_until=row.in_flight_until,
        meaning=Meaning(row.meaning) if row.meaning else Meaning.UNKNOWN,
        resolves_earlier=row.resolves_earlier,
        retry=Retry(row.retry) if row.retry else Retry.NEVER,
        retry_after_at=row.retry_after_at,
    )


def as_known(row: Evidence) -> Known:
    return Known(
        kind=EvidenceKind(row.kind),
        observed_at=row.observed_at,
        completes=row.completes,
        resource=row.resource or None,
        postcondition=row.postcondition,
        denies=row.denies,
        retry_after_at=row.retry_after_at,
    )
