"""The exceptions of the execution record; imports nothing of ours.

    RomulusError
    ├── UsageError                 fix the code or the call
    │   ├── InvalidDefinition      a workflow that cannot work; names file and line
    │   ├── UnknownWorkflow
    │   ├── InvalidInput           names the path of the field
    │   ├── UnstorableValue        names the path in the value
    │   └── IllegalTransition      a bug, never a race
    ├── Conflict                   expected; another one was first
    │   ├── LostOwnership          the run is held by a later claim
    │   ├── RunIsOver              it has ended, and nothing can be done to it
    │   └── StartConflict          this start key started a run with another input
    ├── OutputError                an output that was not kept, or cannot be had
    │   ├── OutputNotKept          its storage did not keep it; the step's work is done
    │   ├── OutputsAway            the storage of outputs does not answer; later it may
    │   ├── OutputPurged           it was kept as long as its workflow says, and no longer
    │   └── OutputDamaged          it is missing, was changed, or no key opens it
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


class StepError(RomulusError):
    """The step could not do its work."""


class PermanentError(StepError):
    """The step cannot succeed however often it is tried."""
