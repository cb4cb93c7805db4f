"""The states of operations and transmissions, the kinds of evidence, and which may follow which."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from workflows.core.errors import IllegalTransition


class OperationState(StrEnum):
    INTENDED = "intended"  # written down, nothing unresolved was sent
    SENDING = "sending"  # a transmission may be on its way
    UNKNOWN = "unknown"  # sent, outcome not proven
    HELD = "held"  # only a person can settle it
    APPLIED = "applied"  # it took effect; its result is not checked yet
    VERIFIED = "verified"  # it took effect and the result was checked
    POSTCONDITION_FAILED = "postcondition_failed"  # it took effect, the result is not as meant
    REJECTED = "rejected"  # proven: no effect
    ABANDONED = "abandoned"  # a person gave it up; the outcome stays as it was

    @property
    def is_settled(self) -> bool:
        return self in SETTLED


SETTLED = frozenset({OperationState.VERIFIED, OperationState.REJECTED, OperationState.ABANDONED})


class TransmissionState(StrEnum):
    SENDING = "sending"
    ACKNOWLEDGED = "acknowledged"
    REJECTED = "rejected"
    NOT_SENT = "not_sent"
    UNKNOWN = "unknown"


class Purpose(StrEnum):
    FIRST = "first"
    REPLAY = "replay"  # something of this operation has been sent before


class EvidenceKind(StrEnum):
    RECEIPT = "receipt"  # the answer to our own send names the resource
    LOOKUP = "lookup"  # the provider shows a record that carries our marker
    REJECTION = "rejection"
    ABSENCE = "absence"  # looked, and found nothing
    UNAVAILABLE = "unavailable"  # could not look
    CONFLICT = "conflict"  # records that cannot all be true
    OPERATOR = "operator"  # what a person states


class DecisionKind(StrEnum):
    APPLIED = "applied"
    SEND_AGAIN = "send_again"
    ABANDON = "abandon"
    REPLACE = "replace"  # give it up, and mean the same once more under a new identity
    UNDO = "undo"  # give it up, and take its effect back by a second operation
    KEEP_HOLDING = "keep_holding"
    # Of a case that was decided: it says what was wrong with that, and moves nothing.
    CORRECTION = "correction"
    # Of a run that is held, not an operation:
    TRY_AGAIN = "try_again"
    FAIL_RUN = "fail_run"


class ProposalEndKind(StrEnum):
    """What became of a decision that one person proposed and another must confirm."""

    CONFIRMED = "confirmed"
    REFUSED = "refused"  # by the second person, with a reason
    WITHDRAWN = "withdrawn"  # by whoever proposed it
    VOID = "void"  # what it rested on has changed


class HoldState(StrEnum):
    OPEN = "open"
    DECIDED = "decided"
    CLOSED = "closed"  # proof arrived by itself


S = OperationState
OPERATION_TRANSITIONS: dict[OperationState, frozenset[OperationState]] = {
    S.INTENDED: frozenset({S.SENDING, S.HELD, S.REJECTED, S.ABANDONED}),
    S.SENDING: frozenset({S.INTENDED, S.UNKNOWN, S.APPLIED, S.REJECTED, S.HELD}),
    S.UNKNOWN: frozenset({S.SENDING, S.APPLIED, S.REJECTED, S.INTENDED, S.HELD}),
    S.HELD: frozenset({S.SENDING, S.UNKNOWN, S.INTENDED, S.APPLIED, S.ABANDONED, S.REJECTED}),
    S.APPLIED: frozenset({S.VERIFIED, S.POSTCONDITION_FAILED, S.HELD}),
    S.POSTCONDITION_FAILED: frozenset({S.VERIFIED, S.ABANDONED, S.HELD}),
    S.VERIFIED: frozenset(),
    S.REJECTED: frozenset(),
    S.ABANDONED: frozenset(),
}
del S

T = TransmissionState
TRANSMISSION_TRANSITIONS: dict[TransmissionState, frozenset[TransmissionState]] = {
    T.SENDING: frozenset({T.ACKNOWLEDGED, T.REJECTED, T.NOT_SENT, T.UNKNOWN}),
    T.ACKNOWLEDGED: frozenset(),
    T.REJECTED: frozenset(),
    T.NOT_SENT: frozenset(),
    T.UNKNOWN: frozenset(),
}
del T

State = TypeVar("State", OperationState, TransmissionState)


def ensure_legal(transitions: dict[State, frozenset[State]], current: State, target: State) -> None:
    """Raise `IllegalTransition` unless `target` may follow `current`: a bug, never a race."""
    if target not in transitions[current]:
        raise IllegalTransition(f"{type(current).__name__} {current} may not become {target}")
