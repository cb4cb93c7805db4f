"""The exceptions of operations and their recovery.

RomulusError
├── UsageError
│   ├── InvalidContract        names the field and the file or row
│   ├── InvalidProvider        names the setting
│   ├── InvalidChannel         names the field
│   ├── InvalidDecision        a decision that lacks what it needs; names the field
│   └── InvalidRequest         a note, an assignment and the like; names the field
└── Conflict
    ├── AlreadyDecided         somebody decided first; carries the decision
    ├── ProposalVoid           what a proposal rested on has changed
    ├── NotAllowed             this decision is not safe or not this person's
    ├── AuthorisationLapsed    the boundary said no just before the send; carries its answer
    ├── DecisionPointUnasked   an external decision point is to be asked first; names it
    ├── NotYoursToGive         a right that whoever would give it does not hold
    ├── CaseMoved              somebody was first with an assignment, or the case was settled
    ├── ContradictionMoved     a provider's broken contract was reviewed, or broken once more
    ├── DispatchTurnedOff      between the decision to send and the send
    └── RunCancelled           likewise
"""

from __future__ import annotations

from typing import Any

from workflows.core.errors import Conflict, UsageError


class InvalidContract(UsageError):
    """This provider contract cannot be used."""


class InvalidProvider(UsageError):
    """This provider cannot be used as it is set up."""


class InvalidChannel(UsageError):
    """This channel cannot be used as it is set up."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class InvalidDecision(UsageError):
    """This decision lacks something it needs."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class InvalidRequest(UsageError):
    """What was asked for lacks something it needs."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class CaseMoved(Conflict):
    """Somebody was first with this case."""


class ContradictionMoved(Conflict):
    """What a review of a broken contract was about has changed."""


class AlreadyDecided(Conflict):
    """Somebody decided this first."""

    def __init__(self, message: str, decision: Any = None) -> None:
        super().__init__(message)
        self.decision = decision


class ProposalVoid(Conflict):
    """What this proposal rested on has changed."""


class DispatchTurnedOff(Conflict):
    """Dispatch was turned off before anything was sent."""


class AuthorisationLapsed(Conflict):
    """The authorisation boundary did not allow this write any more."""

    def __init__(self, lapse: Any) -> None:
        super().__init__()
        self.lapse = lapse


class DecisionPointUnasked(Conflict):
    """An external decision point is to be asked before anything is sent."""

    def __init__(self, point: str, policy: Any) -> None:
        super().__init__()
        self.point = point
        self.policy = policy


class RunCancelled(Conflict):
    """The run's end was asked for before anything was sent."""


class NotAllowed(Conflict):
    """This decision is not offered now."""


class NotYoursToGive(Conflict):
    """Nobody gives a right that they do not hold."""
