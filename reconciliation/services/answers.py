"""What a person fills in on a decision form, and what is missing from it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from reconciliation.core.errors import InvalidDecision
from reconciliation.core.states import DecisionKind
from reconciliation.models import Hold
from workflows.core.words import is_storable, read_length
from workflows.services.clock import database_now

LONGEST_KEPT = timedelta(days=366)
MIN_NOTE = 20  # characters: who told you, and where it is written down, fit in no fewer
MAX_NOTE = 4000
MAX_RESOURCE = 300
CODE_LENGTH = 6
OTHER_CASE = "This form was used for another case. Load it again."


@dataclass(frozen=True)
class Answer:
    """A decision, as it was filled in.

    Attributes:
        version: of the hold, as it was read.
        token: of the form, made when it was shown.
        code: the last six characters of the operation's or run's ID, typed by the person.
        resource: the provider's resource, when the decision is that it was applied.
        until: how long to keep holding.
        basis: what was known when it was read, as `offers.basis_digest` has it; empty where that
            was not shown in a form.
    """

    kind: DecisionKind
    note: str
    version: int
    token: UUID
    code: str
    resource: str = ""
    until: datetime | None = None
    basis: str = ""


class Verdict(StrEnum):
    CONFIRM = "confirm"
    REFUSE = "refuse"
    WITHDRAW = "withdraw"


@dataclass(frozen=True)
class VerdictGiven:
    """What becomes of an open proposal, as it was filled in; the fields are as in `Answer`."""

    verdict: Verdict
    version: int
    token: UUID
    note: str = ""
    code: str = ""


def check_answer(hold: Hold, answer: Answer) -> None:
    """Raise `InvalidDecision`, naming the field, for what a decision lacks."""
    check_note(answer.note)
    check_code(hold, answer.code)
    if answer.kind is DecisionKind.APPLIED and not read_length(answer.resource):
        raise InvalidDecision("resource", "Name the provider's record that shows it was done.")
    if not is_storable(answer.resource.strip(), MAX_RESOURCE):
        raise InvalidDecision("resource", f"Plain text of {MAX_RESOURCE} characters at most.")
    if answer.kind is DecisionKind.KEEP_HOLDING:
        check_until(answer.until)


def check_until(until: datetime | None) -> None:
    """A case that is put off for long is seen again: a mistyped year would be a silent stop."""
    now = database_now()
    if until is None or until <= now:
        raise InvalidDecision("until", "Say until when, at a time that is not past.")
    if until > now + LONGEST_KEPT:
        raise InvalidDecision("until", f"Say a time within {LONGEST_KEPT.days} days.")


def check_verdict(hold: Hold, given: VerdictGiven) -> None:
    """As `check_answer`, for what ends a proposal: a refusal says why, a confirmation its case."""
    if given.verdict is Verdict.REFUSE:
        check_note(given.note, REFUSING)
    elif not is_storable(given.note.strip(), MAX_NOTE):
        raise InvalidDecision("note", f"Plain text of {MAX_NOTE:,} characters at most.")
    if given.verdict is Verdict.CONFIRM:
        check_code(hold, given.code)


DECIDING = f"Write a note of at least {MIN_NOTE} characters: who told you, and where."
REFUSING = f"Say why you refuse it, in at least {MIN_NOTE} characters."


def check_note(note: str, missing: str = DECIDING) -> None:
    if read_length(note) < MIN_NOTE:
        raise InvalidDecision("note", missing)
    if not is_storable(note.strip(), MAX_NOTE):
        raise InvalidDecision("note", f"Plain text of {MAX_NOTE:,} characters at most.")


def check_code(hold: Hold, code: str) -> None:
    if code.strip().lower() != code_of(hold.case_id):
        case = "operation" if hold.operation_id else "run"
        raise InvalidDecision("code", f"These are not the last {CODE_LENGTH} of the {case}'s ID.")


def code_of(subject: UUID | None) -> str:
    """The characters of an ID that people type, so that a decision cannot land on another case."""
    return subject.hex[-CODE_LENGTH:] if subject else ""
