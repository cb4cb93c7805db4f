"""What a case is held for, in a few words: for filters, tables and the record.

The whole of it, with what is known and what settles it, says `facts.HOLD_SENTENCES`.
"""

from __future__ import annotations

from reconciliation.core.facts import HoldReason

REASONS: dict[str, str] = {
    HoldReason.NOT_READY: "Provider not ready",
    HoldReason.AUTHORISATION_LAPSED: "Not authorised any more",
    HoldReason.PRECONDITION_GONE: "Precondition gone",
    HoldReason.UNGUARDED: "Sent, and nothing guards a repeat",
    HoldReason.WINDOW_CLOSING: "Protection ends soon",
    HoldReason.WINDOW_OVER: "Protection is over",
    HoldReason.NOT_PROVEN: "Promises never shown",
    HoldReason.BUDGET_SPENT: "Sent as often as Romulus may by itself",
    HoldReason.ABSENCE_NOT_PROOF: "No record, which proves nothing",
    HoldReason.LOOK_UP_UNAVAILABLE: "Could not be asked",
    HoldReason.WINDOW_OVER_UNASKED: "Protection is over, and could not be asked",
    HoldReason.CONFLICT: "Records that cannot all be true",
    HoldReason.POSTCONDITION_FAILED: "Result is not as meant",
    HoldReason.NOT_VERIFIABLE: "Result cannot be checked",
    HoldReason.UNREACHABLE: "Provider not reached",
    HoldReason.REFUSED_TOO_OFTEN: "Refused each time",
}


def reason_words(reason: str) -> str:
    """What a case is held for, in a few words; those of a run itself stand for themselves."""
    return REASONS.get(reason) or reason.replace("_", " ").capitalize()
