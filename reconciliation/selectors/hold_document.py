"""A hold as programs read it: what waits, why, what would settle it, and no payload."""

from __future__ import annotations

from typing import Any

from reconciliation.models import Hold
from reconciliation.selectors.queue import detail_of, subject_of
from reconciliation.selectors.words import sentence_of

SHOWN_WITH = ("queue", "operation", "run", "event__source", "proposal")


def hold_line(hold: Hold) -> dict[str, Any]:
    said = sentence_of(hold)
    return {
        "id": hold.pk,
        "version": hold.version,
        "run": hold.run_id,
        "operation": hold.operation_id,
        "event": hold.event_id,
        "summary": summary_of(hold),
        "reason": hold.reason,
        "message": hold.message,
        "settles": said.settles,
        "queue": hold.queue.slug if hold.queue else None,
        "proposal": proposal_of(hold),
        "opened_at": hold.opened_at.isoformat(),
        "due_at": hold.due_at.isoformat(),
    }


def proposal_of(hold: Hold) -> dict[str, Any] | None:
    """What somebody has proposed on it and nobody has confirmed."""
    if hold.proposal is None:
        return None
    return {
        "id": hold.proposal.pk,
        "kind": hold.proposal.kind,
        "by": hold.proposal.by_name,
        "at": hold.proposal.at.isoformat(),
    }


def summary_of(hold: Hold) -> str:
    if hold.event is not None:
        return f"{subject_of(hold)}, {detail_of(hold)}"
    return hold.operation.summary if hold.operation else f"step {hold.held_run.step}"
