"""What a step is: its kind, what it needs, and what its kind adds.

Everything here is a value, made once when the author's module is imported and read by the engine
for every step it takes. What is refused about one step is in `step_checks`, what is refused about
all of them together in `graph`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NotRequired, TypedDict, get_args
from uuid import UUID

from workflows.core.intents import Intent
from workflows.core.retry import RetryPolicy

END: Final = "$end"
"""Where a step goes that is the last: the end of the run or, in a parallel group, of its branch."""

NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")

# A step that says nothing may run this long before it is taken for hung and replaced.
DEFAULT_TIMEOUT = timedelta(minutes=5)

# How often one run may come to a branch that says nothing: plenty for polling and paging, and
# soon enough over for a loop that was never meant.
DEFAULT_VISITS = 100

OnFailure = Literal["fail", "hold"]
OnAbandon = Literal["fail", "continue"]
OnDeadline = Literal["fail", "continue", "hold"]
Join = Literal["all", "first", "any_failure"]
Leftover = Literal["cancel", "leave"]

StepFunction = Callable[[Any], Any]
UndoFunction = Callable[[Any, Mapping[str, str]], Intent]
Target = str | StepFunction
"""A step as an author names it: by its name, or by its function where that is already written."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a `write` step reaches its provider.

    Attributes:
        provider: slug of the provider that the write goes to.
        on_abandon: what the run does when a person abandons the operation, or has it undone:
            `fail`, or `continue` with no output.
        when_off: the step, or `END`, that the run goes on at with no output when dispatch is off
            as it comes to the write and nothing was sent; empty: it waits.
        approved_by: the `approval` step whose approval this very write needs; empty: as the
            policy says.
        undo: given the run and the receipt, describes the write that takes the effect back; None
            where nothing does.
    """

    provider: str
    on_abandon: OnAbandon = "fail"
    when_off: str = ""
    approved_by: str = ""
    undo: UndoFunction | None = None


@dataclass(frozen=True, slots=True)
class ApprovalOptions:
    """What an `approval` step asks people for.

    Attributes:
        action: the provider's action that it proposes.
        expires_in: how long the proposal, and an approval of it, count from the proposal on.
        on_denied, on_question, on_expired: what the run does when it was denied, sent back with a
            question, or not settled in time: `fail`, `hold`, `continue`, or the name of the step
            at which it goes on, or `END`.
    """

    action: str
    expires_in: timedelta
    on_denied: str = "fail"
    on_question: str = "hold"
    on_expired: str = "hold"

    @property
    def targets(self) -> tuple[str, ...]:
        """The steps at which the run may go on, other than the next."""
        ways = (self.on_denied, self.on_question, self.on_expired)
        return tuple(dict.fromkeys(way for way in ways if way not in get_args(OnDeadline)))


@dataclass(frozen=True, slots=True)
class ChildrenOptions:
    """How a `children` step waits for the runs that it starts.

    Attributes:
        join: `all` goes on when every child has ended, whatever its end; `first` with the first
            that completed, and fails when all ended without one; `any_failure` waits for all and
            fails as soon as one did not complete.
        at_once: how many of them may be unfinished at a time; None is no limit.
        leftover: what becomes of children that are unfinished when the step is over.
    """

    join: Join = "all"
    at_once: int | None = None
    leftover: Leftover = "cancel"


@dataclass(frozen=True, slots=True)
class WaitOptions:
    """What a `wait` step expects, and until when.

    Attributes:
        events: the types of which any will do.
        within: how long it waits from its opening on, or a function of the run that says so.
        until: when it ends, or a function of the run that says so; with neither it has no end.
        on_deadline: what the run does then: `fail`, `continue`, `hold`, or the name of the step
            at which it goes on, or `END`.
        count: how many events it takes.
        shared: other waits that are open may have its events too.
        payload: the type of what its events bring.
    """

    events: tuple[str, ...]
    within: timedelta | Callable[[Any], timedelta] | None = None
    until: datetime | Callable[[Any], datetime] | None = None
    on_deadline: str = "fail"
    count: int = 1
    shared: bool = False
    payload: Any = Any

    @property
    def target(self) -> str:
        """The step at which the run goes on when the deadline came, or `END`; empty for none."""
        return "" if self.on_deadline in get_args(OnDeadline) else self.on_deadline

    @property
    def goes_on(self) -> bool:
        """Whether the run goes on when the deadline came, with what it has got until then."""
        return self.on_deadline not in ("fail", "hold")


@dataclass(frozen=True, slots=True)
class Child:
    """One run that a `children` step starts.

    Attributes:
        workflow: its name.
        input: what its input type takes.
        version: the latest that the worker has, when None.
        labels: as for any run.
    """

    workflow: str
    input: Any = field(default_factory=dict)
    version: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """How a child ended, or stood when its `children` step was over.

    Attributes:
        run: its ID.
        workflow: its name.
        state: the state of its run, such as `completed`.
        result: the output of its last step, as plain JSON; None when it did not complete.
        failure: why it did not complete, for people; empty when it did.
    """

    run: UUID
    workflow: str
    state: str
    result: Any = None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A named position in a workflow.

    Attributes:
        returns: the type of its output, as later steps read it. Only of a `step` is it what the
            function returns: a `write` leaves its receipt, a `branch` the name that it chose, a
            `sleep` the moment it slept until, a `wait` its events, an `approval` its answer,
            `children` and a `parallel` group how each ended.
        place: "file:line" of the author's function or call, for messages.
        title: what the step does: the first line of its docstring, or its name in words.
        then: the name of the step that follows, or `END`; empty is the next in written order.
        to: of a `branch`, what it may choose from: names and `END`; of a `wait` or an `approval`,
            where it goes on when what it waits for did not come; of a `write`, where when dispatch
            is off.
        max_visits: of a `branch`, how often one run may come to it.
        atomic: its own ORM writes commit with its checkpoint.
        sensitive: its output is encrypted at rest.
        retain: how long after the run's end its output is kept; None is as the workflow says.
        branches: of a `parallel` group, the names of the steps of each branch, in order.
    """

    name: str
    kind: str
    function: StepFunction
    returns: Any
    retry: RetryPolicy
    timeout: timedelta
    on_failure: OnFailure
    place: str
    title: str
    write: WriteOptions | None = None
    then: str = ""
    to: tuple[str, ...] = ()
    max_visits: int = 0
    atomic: bool = False
    sensitive: bool = False
    retain: timedelta | None = None
    children: ChildrenOptions | None = None
    branches: tuple[tuple[str, ...], ...] = ()
    wait: WaitOptions | None = None
    approval: ApprovalOptions | None = None


class StepOptions(TypedDict):
    """What the decorators hand on to `Step` as it is."""

    retry: RetryPolicy
    timeout: timedelta
    on_failure: OnFailure
    then: str
    write: NotRequired[WriteOptions]
    to: NotRequired[tuple[str, ...]]
    max_visits: NotRequired[int]
    atomic: NotRequired[bool]
    sensitive: NotRequired[bool]
    retain: NotRequired[timedelta | None]
    children: NotRequired[ChildrenOptions]
    branches: NotRequired[tuple[tuple[str, ...], ...]]
    wait: NotRequired[WaitOptions]
    approval: NotRequired[ApprovalOptions]


def policy_of(retries: int | RetryPolicy) -> RetryPolicy:
    """Return the policy of a step that is tried again `retries` times after its first try."""
    return retries if isinstance(retries, RetryPolicy) else RetryPolicy(attempts=retries + 1)


def name_of(target: Target) -> str:
    """Return the name that `target` means.

    What can be no name is returned as it prints: no step is called so, and the check of the
    targets, which knows the place, refuses it.
    """
    if isinstance(target, str) and target:
        return target
    return str(getattr(target, "__name__", repr(target)))


def targets_in(targets: Target | Sequence[Target]) -> Sequence[Target]:
    """Return one target or several as several."""
    if isinstance(targets, str) or callable(targets):
        return [targets]
    return targets


def names_of(targets: Target | Sequence[Target]) -> tuple[str, ...]:
    return tuple(name_of(target) for target in targets_in(targets))


def then_of(then: Target | None) -> str:
    return "" if then is None else name_of(then)


def calling_place(above: int) -> str:
    """Return "file:line" of the code `above` frames over the function that asks."""
    frame = sys._getframe(above + 1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
