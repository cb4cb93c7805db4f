"""What people may do to a held case short of deciding it, and why not.

Each rule takes what is known and returns a sentence that says why it is refused; empty: it may be
done. The same rule plans a bulk action, refuses a request, and is asked again when it is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class NoteKind(StrEnum):
    COMMENT = "comment"
    QUESTION = "question"  # of one person; shown on the case until it is answered
    ANSWER = "answer"
    HANDOVER = "handover"  # what is said with a case that goes to somebody else


class BulkKind(StrEnum):
    """What may be done to many cases at once. Deciding is not among it, and never will be."""

    ASSIGN = "assign"
    SNOOZE = "snooze"
    REMIND = "remind"
    LOOK_UP = "look_up"


class ItemState(StrEnum):
    PENDING = "pending"
    DONE = "done"
    SKIPPED = "skipped"  # refused by a rule; nothing was changed
    FAILED = "failed"  # something broke on our side; nothing was changed


SETTLED = "It was settled meanwhile: nothing is left to do."
NOT_YOURS = "Giving it to somebody takes the right to assign the cases of its queue."
NO_DECIDER = "You may look at it, and not decide it."


@dataclass(frozen=True, slots=True)
class Assignment:
    """Somebody (`by`) wants a case to be `to`'s; people are their IDs, None is nobody.

    `to_fits`: they may see the case and decide it.
    """

    is_open: bool
    assignee: int | None
    by: int
    to: int | None
    by_may_assign: bool
    by_may_decide: bool
    to_fits: bool
    note: bool = False


def why_not_assign(wanted: Assignment) -> str:
    """Claiming what nobody has takes the right to decide it, giving back what is one's own takes
    nothing, and all else takes the right to assign. Whoever gets a case can see and decide it."""
    if not wanted.is_open:
        return SETTLED
    claims = wanted.to == wanted.by and wanted.assignee is None
    gives_back = wanted.to is None and wanted.assignee == wanted.by
    if claims and not wanted.by_may_decide:
        return NO_DECIDER
    if not (claims or gives_back or wanted.to == wanted.assignee or wanted.by_may_assign):
        return NOT_YOURS
    if wanted.to is not None and not wanted.to_fits:
        return "Whom it would go to may not both see and decide it."
    return ""


def needs_note(assignee: int | None, by: int, to: int | None) -> bool:
    """Handing over one's own case needs a word to the one who gets it."""
    return assignee == by and to is not None and to != by


def why_not_snooze(*, is_open: bool, may_decide: bool, may_assign: bool) -> str:
    """A snoozed case leaves everybody's default lists, so it takes a right on its queue."""
    if not is_open:
        return SETTLED
    return "" if may_decide or may_assign else NO_DECIDER


def why_not_remind(*, is_open: bool) -> str:
    return "" if is_open else SETTLED


def why_not_look_up(
    *, is_open: bool, of_a_write: bool, can_be_asked: bool, may_decide: bool
) -> str:
    if not is_open:
        return SETTLED
    if not of_a_write:
        return "It is about no write, so there is nothing to ask a provider."
    if not can_be_asked:
        return "This provider offers no look-up for it."
    return "" if may_decide else NO_DECIDER
