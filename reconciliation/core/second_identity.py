"""When a person may have a second operation opened: in the place of one whose outcome is open, or
to take an effect back.

`decide` never makes a second identity; these are the only two ways to one, and both are a person's
recorded decision. A replacement may do it twice: that is said before the button, and where more
than that stands against it, or something better is there, it is not offered at all.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from reconciliation.core.decide import (
    completed_by,
    conflicting,
    seen_absent,
    unresolved_sends,
)
from reconciliation.core.facts import HOLD_SENTENCES, Facts, HoldReason
from reconciliation.core.states import TransmissionState

UNANSWERED = (TransmissionState.SENDING, TransmissionState.UNKNOWN)
Barred = tuple[str, str] | None  # why not, and what would make it possible


class Undoing(StrEnum):
    """What is known about how an operation's effect is taken back."""

    DECLARED = "declared"
    NOT_DECLARED = "not_declared"
    NOT_KNOWN = "not_known"  # this process does not have the workflow's version
    IS_ONE = "is_one"  # it takes another one's effect back itself


ENDING = (
    "The run's end was asked for: nothing more is sent for it.",
    "Nothing. Abandon it if nobody can see whether it was done.",
)


BY_HAND = "If it took effect, undo it at the provider by hand, and say so in the note."
APPROVED_ONCE = "It was approved for one write, and a second one has nobody's approval."


def why_not_replace(facts: Facts, now: datetime, *, may_send_again: bool) -> Barred:
    """Why no new operation may come in the place of this one; None when it may."""
    if facts.cancelling:
        return ENDING
    if completed_by(facts) is not None:
        return (
            "It has taken effect: a new one would do it a second time.",
            "Nothing. Accept it as done, or abandon it.",
        )
    if may_send_again:
        again = " again" if facts.sent else ""
        return (
            f"The same operation can be sent{again} under its own guard; a new one has none "
            "against the old.",
            f"Nothing. Send it{again} instead.",
        )
    if conflicting(facts):
        return (
            "The provider shows records that do not fit what was meant: one of them may be this.",
            "Finding out whose they are, then accepting or abandoning it.",
        )
    if facts.approved_once:
        return (APPROVED_ONCE, "Abandon it, and start a new run, which asks for approval again.")
    lapsed = why_lapsed(facts)
    if lapsed is not None:
        sentence = HOLD_SENTENCES[lapsed]
        return (sentence.known, sentence.settles)
    if facts.missing and not facts.elsewhere:
        return (
            f"The provider is not ready for writes. Missing: {'; '.join(facts.missing)}.",
            "Setting up what is missing.",
        )
    return why_not_beside(facts, now)


def why_lapsed(facts: Facts) -> HoldReason | None:
    if not facts.authorised:
        return HoldReason.AUTHORISATION_LAPSED
    return None if facts.precondition_holds else HoldReason.PRECONDITION_GONE


def why_not_beside(facts: Facts, now: datetime) -> Barred:
    """What the sends whose outcome is open say against a new operation beside them."""
    unresolved = unresolved_sends(facts)
    if not unresolved:
        return None
    if max(sent.in_flight_until for sent in unresolved) > now:
        return ("An earlier send may still be on its way.", "Waiting until it cannot be.")
    if facts.contract.irreversible:
        return (
            "It cannot be called back, and the first one may have arrived: it could happen twice.",
            "Nothing. Abandon it, and write to whoever it concerns.",
        )
    can_be_asked = facts.contract.look_up is not None and facts.look_up_trusted
    if can_be_asked and not facts.elsewhere and not all(seen_absent(facts, s) for s in unresolved):
        return (
            "The provider can be asked, and has not shown that it has no record of it.",
            "Asking the provider again and finding nothing.",
        )
    return None


def why_not_undo(facts: Facts, now: datetime, undoing: Undoing) -> Barred:
    """Why its effect cannot be taken back by a second operation; None when it can."""
    if facts.cancelling:
        return (ENDING[0], "Nothing. Undo it at the provider by hand, and say so in the note.")
    match undoing:
        case Undoing.IS_ONE:
            return ("It is an undo itself.", "Nothing. Abandon it, or start a new run.")
        case Undoing.NOT_KNOWN:
            return (
                "How it is undone is not known here: the console does not have this version of "
                "its workflow.",
                "A console that has that version, or undoing it at the provider by hand.",
            )
        case Undoing.DECLARED | Undoing.NOT_DECLARED if facts.contract.irreversible:
            return (
                "What this provider does cannot be called back.",
                "Nothing. Write to whoever it concerns.",
            )
        case Undoing.NOT_DECLARED:
            return ("Its workflow says no way to undo it.", BY_HAND)
    if facts.approved_once:
        return (APPROVED_ONCE, BY_HAND)
    if completed_by(facts) is None:
        return (
            "Nothing of it is proven to have happened: there is nothing to undo yet.",
            "A record at the provider that proves it.",
        )
    if any(sent.state in UNANSWERED and sent.in_flight_until > now for sent in facts.sent):
        return ("A send of it may still be on its way.", "Waiting until it cannot be.")
    return None
