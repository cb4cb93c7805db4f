"""What an approval step proposes, what people may answer, and what later steps read of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID

from workflows.core.boundary.subjects import Subject, SubjectType
from workflows.core.errors import IllegalTransition, UsageError
from workflows.core.intents import Intent, check_intent
from workflows.core.words import is_storable

MAX_REASON, MAX_NOTE = 1000, 2000
APPROVAL_EVENT = "romulus.approval"
"""The type of the event that answers a proposal; its correlation is the proposal's ID."""


class ProposalState(StrEnum):
    OPEN = "open"  # waits for answers
    APPROVED = "approved"
    DENIED = "denied"
    SENT_BACK = "sent_back"  # with a question, to be proposed anew
    EXPIRED = "expired"  # nobody has settled it in time
    CANCELLED = "cancelled"  # its run ended, or went on without it


class Answer(StrEnum):
    APPROVE = "approve"
    DENY = "deny"
    QUESTION = "question"
    REPLY = "reply"  # to a question
    WITHDRAW = "withdraw"  # one's own approval


class Asked(StrEnum):
    """When the boundary was asked."""

    PROPOSAL = "proposal"
    WRITE = "write"
    SERVED = "served"  # by an executor elsewhere


PROPOSAL_TRANSITIONS: dict[ProposalState, frozenset[ProposalState]] = {
    ProposalState.OPEN: frozenset(set(ProposalState) - {ProposalState.OPEN}),
    **{state: frozenset() for state in ProposalState if state is not ProposalState.OPEN},
}


def ensure_may_end(target: ProposalState) -> None:
    """Raise `IllegalTransition` for what no open proposal becomes."""
    if target not in PROPOSAL_TRANSITIONS[ProposalState.OPEN]:
        raise IllegalTransition(f"an open proposal may not become {target}")


# Who may be named. A workflow names no other one, whose grants it would have, nor another system.
NAMED = {
    "proposed_by": (SubjectType.PERSON, SubjectType.AGENT, SubjectType.SERVICE),
    "on_behalf_of": (SubjectType.PERSON,),
}


@dataclass(frozen=True)
class ProposedAction(Intent):
    """What an `approval` step proposes: an intent, who wants it, and why.

    Attributes:
        reason: why, in a sentence or two, for the people who are asked.
        proposed_by: an agent, a service account or a person, such as "agent:refund-bot"; the
            workflow itself when empty.
        on_behalf_of: the person for whom an agent acts, such as "person:ada".
    """

    reason: str = ""
    proposed_by: str = ""
    on_behalf_of: str = ""


@dataclass(frozen=True)
class Approved:
    """How an approval step ended, as later steps read it.

    Attributes:
        proposal: its ID.
        answer: `approved`; or `denied`, `sent_back`, `expired` where the step says how to go on.
        action: what was proposed: an intent, which a write step may return as it is.
        by: who answered, in words.
        note: what they wrote beside the answer that settled it.
    """

    proposal: UUID
    answer: str
    action: ProposedAction
    by: list[str] = field(default_factory=list)
    note: str = ""


def check_action(action: ProposedAction, declared: str) -> None:
    """Raise `UsageError`, naming the field, for what cannot be proposed as it is.

    Args:
        declared: the action that the step's decorator names.
    """
    check_intent(action)
    if action.action != declared:
        raise UsageError(f"proposed action {action.action!r}: the step is for {declared!r}")
    if not is_storable(action.reason, MAX_REASON):
        raise UsageError(f"reason: plain text of {MAX_REASON:,} characters at most")
    for name, kinds in NAMED.items():
        text = getattr(action, name)
        if text and Subject.parse(text).type not in kinds:
            raise UsageError(f"{name}: {' or '.join(kinds)}, not {text!r}")


def as_plain(action: ProposedAction) -> dict[str, Any]:
    """What is sealed of a proposal, beside its columns."""
    return {"parameters": dict(action.parameters), "precondition": dict(action.precondition)}
