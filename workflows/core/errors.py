"""The exceptions of the execution record; imports nothing of ours.

    RomulusError
    ├── UsageError                 fix the code or the call
    │   ├── InvalidSource          names the field that does not fit
    │   ├── InvalidPolicy          names the place in the policy
    │   ├── InvalidDefinition      a workflow that cannot work; names file and line
    │   ├── UnknownWorkflow
    │   ├── InvalidInput           names the path of the field
    │   ├── UnstorableValue        names the path in the value
    │   └── IllegalTransition      a bug, never a race
    ├── Conflict                   expected; another one was first
    │   ├── LostOwnership          the run is held by a later claim
    │   ├── RunIsOver              it has ended, and nothing can be done to it
    │   ├── WaitIsOver             it has what it needed, its deadline came, or it was cancelled
    │   ├── ProposalIsOver         it was answered, has expired, or its run is past it
    │   ├── EventIsTaken           a wait has it, or a person has dismissed it
    │   └── StartConflict          this start key started a run with another input
    ├── OutputError                an output that was not kept, or cannot be had
    │   ├── OutputNotKept          its storage did not keep it; the step's work is done
    │   ├── OutputsAway            the storage of outputs does not answer; later it may
    │   ├── OutputPurged           it was kept as long as its workflow says, and no longer
    │   └── OutputDamaged          it is missing, was changed, or no key opens it
    ├── NotEntitled                this person may not answer this proposal; says why
    ├── DeliveryRefused            what came to a source's address is not taken; says why
    │   └── BodyBroken             its body is not what its headers say
    └── StepError                  raised by a step's own code to say how to go on
        └── PermanentError         do not try again

Each class docstring is its default message.
"""

from __future__ import annotations


class RomulusError(Exception):
    """Something went wrong."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip())


class UsageError(RomulusError):
    """This call or definition cannot work."""


class InvalidSource(UsageError):
    """This source of events cannot work.

    Attributes:
        problems: by field, in sentences.
    """

    def __init__(self, problems: dict[str, list[str]]) -> None:
        said = (f"{field}: {' '.join(each)}" for field, each in sorted(problems.items()))
        super().__init__("; ".join(said))
        self.problems = problems


class InvalidPolicy(UsageError):
    """This policy cannot work."""


class InvalidDefinition(UsageError):
    """This workflow definition cannot work."""


class UnknownWorkflow(UsageError):
    """No workflow has this name and version."""


class InvalidInput(UsageError):
    """This input does not fit the workflow."""


class UnstorableValue(UsageError):
    """This value cannot be stored."""


class IllegalTransition(UsageError):
    """This state may not follow that one."""


class Conflict(RomulusError):
    """Somebody else was first."""


class LostOwnership(Conflict):
    """This run is held by a later claim."""


class RunIsOver(Conflict):
    """This run has ended already."""


class WaitIsOver(Conflict):
    """This wait is over already."""


class EventIsTaken(Conflict):
    """This event is with a wait already, or was dismissed."""


class ProposalIsOver(Conflict):
    """This proposal waits for no answer any more."""


class StartConflict(Conflict):
    """This start key was used to start a run with another input."""


class OutputError(RomulusError):
    """This output cannot be had."""


class OutputNotKept(OutputError):
    """The storage did not keep this output."""


class OutputsAway(OutputError):
    """The storage of outputs does not answer."""


class OutputPurged(OutputError):
    """This output was purged."""


class OutputDamaged(OutputError):
    """This output is missing or was changed."""


class NotEntitled(RomulusError):
    """This person may not answer this proposal."""


class DeliveryRefused(RomulusError):
    """This delivery is not taken.

    Attributes:
        reason: as it is counted (`core.sources.Refusal`).

    The message is kept as a note and answered to the sender: it holds nothing of the delivery.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class BodyBroken(DeliveryRefused):
    """This body is not what its headers say."""


class StepError(RomulusError):
    """The step could not do its work."""


class PermanentError(StepError):
    """The step cannot succeed however often it is tried."""
