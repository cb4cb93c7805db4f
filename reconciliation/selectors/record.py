"""The record: everything that happened to an operation or a held run, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import tzinfo

from reconciliation.core.states import (
    EvidenceKind,
    HoldState,
    OperationState,
    ProposalEndKind,
    TransmissionState,
)
from reconciliation.models import (
    AuditEntry,
    Decision,
    DecisionProposal,
    Evidence,
    Hold,
    Operation,
    Transmission,
)
from reconciliation.pages import RecordEntry
from reconciliation.selectors.case import Case
from reconciliation.selectors.evidence import kind_of, text_of
from reconciliation.selectors.words import DECISIONS, both_names, clock
from reconciliation.services.holds import why_closed

SYSTEM = "Romulus"


def record_of(case: Case) -> tuple[RecordEntry, ...]:
    """The newest last."""
    entries = [
        intended(case.operation),
        *(entry for row in case.transmissions for entry in sending(row, case.worker(row))),
        *(evidence_entry(row, case.provider) for row in case.evidence),
        *hold_entries(case.holds),
        *(entry for row in case.proposals for entry in proposal_entries(row)),
        *(decision_entry(row, case.now.tzinfo) for row in case.decisions),
        *(asked_entry(row) for row in case.asked),
        *settled(case.operation),
    ]
    return tuple(sorted(entries, key=lambda entry: entry.at))


def intended(operation: Operation) -> RecordEntry:
    return RecordEntry(
        operation.created_at,
        "operation",
        OperationState.INTENDED,
        "Intended.",
        f"{operation.summary}; written down before anything was sent.",
        SYSTEM,
    )


def settled(operation: Operation) -> Iterator[RecordEntry]:
    if operation.settled_at is None:
        return
    ends = {
        OperationState.VERIFIED: ("Verified.", "It took effect; the run may go on."),
        OperationState.REJECTED: ("Rejected.", "Nothing changed at the provider."),
        OperationState.ABANDONED: ("Abandoned.", "Its outcome stays as it was."),
    }
    lead, text = ends[OperationState(operation.state)]
    yield RecordEntry(operation.settled_at, "operation", operation.state, lead, text, SYSTEM)


def sending(row: Transmission, worker: str) -> Iterator[RecordEntry]:
    purpose = "the first time" if row.purpose == "first" else "again, under the same key"
    text = f"Send {row.number} begins, {purpose}."
    yield RecordEntry(row.started_at, "transmission", "sending", "Sending.", text, worker)
    if row.ended_at is None:
        return
    lead, text = {
        TransmissionState.ACKNOWLEDGED: ("Acknowledged.", "was answered yes"),
        TransmissionState.REJECTED: ("Rejected.", "was answered no"),
        TransmissionState.NOT_SENT: ("Not sent.", "never left this system"),
        TransmissionState.UNKNOWN: ("Unknown.", "got no usable answer"),
    }[TransmissionState(row.state)]
    detail = f": {row.detail_redacted}" if row.detail_redacted else ""
    text = f"Send {row.number} {text}{detail}."
    yield RecordEntry(row.ended_at, "transmission", row.state, lead, text, worker)


def evidence_entry(row: Evidence, provider: str) -> RecordEntry:
    leads = {
        EvidenceKind.RECEIPT: "Match.",
        EvidenceKind.LOOKUP: "Match.",
        EvidenceKind.REJECTION: "Rejected.",
        EvidenceKind.ABSENCE: "No match.",
        EvidenceKind.UNAVAILABLE: "Unavailable.",
        EvidenceKind.CONFLICT: "Conflict.",
        EvidenceKind.OPERATOR: "Stated.",
    }
    kind = kind_of(row)
    record = f" Record {row.resource}." if row.resource else ""
    said_by = row.source if row.kind == EvidenceKind.OPERATOR else provider
    lead = leads[EvidenceKind(kind)]
    return RecordEntry(row.observed_at, "evidence", kind, lead, f"{text_of(row)}{record}", said_by)


def hold_entries(holds: Iterable[Hold]) -> Iterator[RecordEntry]:
    for hold in holds:
        queue = f" Goes to {hold.queue.name}." if hold.queue else " No queue takes it."
        yield RecordEntry(hold.opened_at, "hold", "open", "Held.", f"{hold.message}{queue}", SYSTEM)
        if hold.state == HoldState.CLOSED and hold.closed_at is not None:
            text = f"{why_closed(hold)}; no decision was needed."
            yield RecordEntry(hold.closed_at, "hold", "released", "Released.", text, SYSTEM)


def decision_entry(row: Decision, zone: tzinfo | None) -> RecordEntry:
    title = DECISIONS.get(row.kind, row.kind)
    record = f" Record {row.resource}." if row.resource else ""
    until = f" Until {clock(row.until, zone)}." if row.until else ""
    text = f"“{row.note}”{record}{until}"
    return RecordEntry(row.at, "decision", "recorded", f"{title}.", text, both_names(row))


ENDS = {
    ProposalEndKind.REFUSED: ("refused", "Refused."),
    ProposalEndKind.WITHDRAWN: ("withdrawn", "Withdrawn."),
    ProposalEndKind.VOID: ("void", "Void."),
}


def proposal_entries(row: DecisionProposal) -> Iterator[RecordEntry]:
    """What was proposed, and how it ended where no decision came of it; its end comes with it."""
    title = DECISIONS.get(row.kind, row.kind)
    record = f" Record {row.resource}." if row.resource else ""
    lead = f"Proposed: {title[:1].lower()}{title[1:]}."
    yield RecordEntry(row.at, "decision", "proposed", lead, f"“{row.note}”{record}", row.by_name)
    end = getattr(row, "end", None)
    if end is None or end.kind == ProposalEndKind.CONFIRMED:
        return
    state, lead = ENDS[ProposalEndKind(end.kind)]
    note = end.note if end.kind == ProposalEndKind.VOID else f"“{end.note}”" if end.note else ""
    text = f"What {row.by_name} proposed does not count. {note}".strip()
    yield RecordEntry(end.at, "decision", state, lead, text, end.by_name or SYSTEM)


def asked_entry(row: AuditEntry) -> RecordEntry:
    who = row.actor.partition(" ")[2] or row.actor
    return RecordEntry(row.at, "entry", "asked", "Asked.", "The provider was asked again.", who)
