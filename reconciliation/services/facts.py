"""Loading what `decide` looks at: some five queries, whatever the operation has been through; two
where the effect is proven, for nothing is sent any more then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cryptography.fernet import InvalidToken

from reconciliation.core.contracts import Meaning, Retry
from reconciliation.core.facts import Facts, Known, Sent
from reconciliation.core.states import EvidenceKind, OperationState, TransmissionState
from reconciliation.models import DispatchStop, Evidence, Hold, Operation, Transmission
from reconciliation.sealing import unseal
from reconciliation.services.authorise import Approved, Lapse, still_lapsed
from reconciliation.services.dispatch import dispatch_of, strictest
from reconciliation.services.ledger import is_written_down
from reconciliation.services.providers import contract_of, is_in_scope, missing_of


@dataclass(frozen=True)
class Rows:
    """All that is written down of an operation, in the order in which it came."""

    transmissions: Sequence[Transmission]
    evidence: Sequence[Evidence]
    holds: Sequence[Hold]
    stops: Sequence[DispatchStop]  # in force over it, the strictest first
    approved: Approved  # what it was approved with


def load_facts(
    operation: Operation, seen: Sequence[Evidence] = (), rows: Rows | None = None
) -> Facts:
    """Return what is known about `operation`, whose provider and contract are loaded with it.

    Args:
        seen: what was learnt since, and is written down with what follows from it.
        rows: where they were read already.
    """
    facts = facts_to_move(operation, seen, rows=rows)
    return with_what_bars(facts, operation, rows=rows) if is_proven(facts) else facts


def facts_to_move(
    operation: Operation,
    seen: Sequence[Evidence] = (),
    lapse: Lapse | None = None,
    rows: Rows | None = None,
) -> Facts:
    """The same for whoever only acts on it: whether something might be sent is not asked where the
    effect is proven, since `decide` does not ask that then.

    Args:
        lapse: what the boundary has just said against sending it.
    """
    kept = is_written_down(operation)
    provider = operation.provider
    facts = Facts(
        contract=contract_of(operation),
        state=OperationState(operation.state),
        opened_at=operation.created_at,
        sent=sent_so_far(operation, rows) if kept else (),
        known=(*(known_so_far(operation, rows) if kept else ()), *map(as_known, seen)),
        replay_not_after=operation.replay_not_after,
        replay_trusted=bool(provider.replay_trust),
        look_up_trusted=bool(provider.look_up_trust),
        contradicted=provider.contradicted_at is not None,
        approved_once=operation.proposal_id is not None,
        send_again=operation.send_again_at,
        cancelling=operation.run.cancel_asked_at is not None,
    )
    return facts if is_proven(facts) else with_what_bars(facts, operation, lapse, rows)


def is_proven(facts: Facts) -> bool:
    return any(known.completes for known in facts.known)


def with_what_bars(
    facts: Facts, operation: Operation, lapse: Lapse | None = None, rows: Rows | None = None
) -> Facts:
    """What stands against sending it: dispatch, what provider and operation lack, and what the
    boundary has said."""
    elsewhere = not is_in_scope(operation)
    lacks = missing_of(operation.provider, operation.run.tenant_id)
    return replace(
        facts,
        dispatch=dispatch_of(operation) if rows is None else strictest(rows.stops),
        missing=lacks + missing_for(operation, elsewhere),
        elsewhere=elsewhere,
        authorised=not still_lapsed(operation, *((rows.holds, rows.approved) if rows else ()))
        if lapse is None
        else lapse.precondition_alone,
        precondition_holds=lapse is None or not lapse.precondition_alone,
    )


def sent_so_far(operation: Operation, rows: Rows | None) -> tuple[Sent, ...]:
    sent = rows.transmissions if rows else operation.transmissions.order_by("number")
    return tuple(map(as_sent, sent))


def known_so_far(operation: Operation, rows: Rows | None) -> tuple[Known, ...]:
    known = rows.evidence if rows else operation.evidence.order_by("recorded_at", "id")
    return tuple(map(as_known, known))


def missing_for(operation: Operation, elsewhere: bool) -> tuple[str, ...]:
    """What this very operation lacks, beside what its provider lacks."""
    lacks: list[str] = []
    if elsewhere:
        lacks.append("the account, region, address and credential that its key was made for")
    if not can_be_unsealed(operation):
        lacks.append("the key that its request was sealed with")
    return tuple(lacks)


def can_be_unsealed(operation: Operation) -> bool:
    try:
        unseal(operation.request_sealed)
    except InvalidToken:
        return False
    return True


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
