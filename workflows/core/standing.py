"""Where a run stands under its version, and what is answered when it is to go on under a later one.

Values only; the rules are in `migrating`, the sentences in `staying`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from workflows.core.graph import Track
from workflows.core.states import RunState
from workflows.core.values import Json

# A hold that is about the code alone: a version that has the step ends it.
STEP_MISSING = "step_missing"


class Reason(StrEnum):
    """Why a run stays under its version."""

    NO_MIGRATION = "no_migration"
    CANCELLING = "cancelling"
    AT_WORK = "at_work"
    IN_GROUP = "in_group"  # it is a branch of another run's parallel group
    UNSETTLED = "unsettled"
    CHILDREN = "children"
    STEP_GONE = "step_gone"
    INTO_GROUP = "into_group"  # its step is in a branch of a group now
    WAITING = "waiting"
    HELD = "held"
    OUTPUT_TWICE = "output_twice"
    OUTPUT_INTO_GROUP = "output_into_group"
    GROUP_PASSED = "group_passed"
    PASSED = "passed"
    OPERATION_KEPT = "operation_kept"
    OUTPUT_UNREADABLE = "output_unreadable"
    CHANGE_FAILED = "change_failed"
    OUTPUT_UNFIT = "output_unfit"
    INPUT_UNFIT = "input_unfit"
    OUTPUT_NOT_KEPT = "output_not_kept"
    MOVED_ON = "moved_on"


# --- what is known ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KnownOperation:
    """A write of a run: not settled, or of the step and visit at which the run stands."""

    step: str
    visit: int
    summary: str
    is_settled: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an unfinished run stands, and what hangs on that.

    Attributes:
        reason: why it waits, is held or is tried again: a machine word.
        leased: a worker holds it, and the lease has not run out.
        cancelling: its end was asked for.
        group: the parallel group whose branch it is; empty for none.
        has_children: it has started runs at this step and visit.
        operations: those of its writes that count here.
        passed: the latest visit of each step that has an output, by name.
        beside: the steps that have an output in branches of groups that it has passed.
        known: the steps of its version; None where nobody here knows them.
    """

    workflow: str
    version: int
    state: RunState
    step: str
    visit: int
    fence: int = 0
    reason: str = ""
    leased: bool = False
    cancelling: bool = False
    group: str = ""
    has_children: bool = False
    operations: tuple[KnownOperation, ...] = ()
    passed: Mapping[str, int] = field(default_factory=dict)
    beside: frozenset[tuple[Track, str]] = frozenset()
    known: frozenset[str] | None = None

    @property
    def state_after(self) -> RunState:
        """Its state when it has moved: it waits or is held as before. One whose step was missing,
        or whose worker went quiet, is for any worker that has the version."""
        missing = self.state is RunState.HELD and self.reason == STEP_MISSING
        return RunState.READY if missing or self.state is RunState.RUNNING else self.state


# --- what is answered -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Carried:
    """An output that goes along.

    Attributes:
        source: the old step.
        step: the new one.
        visit: of a new output of that step; 0 where the old one stays as it is, and has to fit.
    """

    source: str
    step: str
    visit: int = 0


@dataclass(frozen=True, slots=True)
class Moves:
    """The run can go on, as it is at `step`."""

    step: str
    visit: int
    state: RunState
    carried: tuple[Carried, ...] = ()


@dataclass(frozen=True, slots=True)
class Stays:
    """The run stays under its version.

    Attributes:
        message: why; the same for every run that stays for the same reason.
        helps: what would let it move.
        about: what concerns this run alone, such as its operation; may tell of its values.
    """

    reason: Reason
    message: str
    helps: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class NewOutput:
    source: str
    step: str
    visit: int
    value: Json


@dataclass(frozen=True, slots=True)
class Converted:
    """What a run that moves is written anew with."""

    outputs: tuple[NewOutput, ...]
    input: Json
