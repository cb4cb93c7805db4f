"""What an author writes: a workflow, its steps in order, and what each step needs.

    refund = Workflow("refund", version=3, input=RefundRequest)

    @refund.step(retries=3)
    def load_order(run) -> Order: ...

    @refund.write(provider="payments")
    def create_refund(run) -> Intent: ...

Steps run in the order written. A definition that cannot work is refused where it is written, with
file and line. Step kinds beyond `step` are executed by whoever registered them
(`workflows.services.kinds`); the definition only names them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, get_args, get_type_hints

from workflows.core.errors import InvalidDefinition, UnknownWorkflow
from workflows.core.intents import Intent
from workflows.core.retry import RetryPolicy
from workflows.core.values import adapter

NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
WORKFLOW_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")

# A step that says nothing may run this long before it is taken for hung and replaced.
DEFAULT_TIMEOUT = timedelta(minutes=5)
LONGEST_TIMEOUT = timedelta(days=7)  # longer work is a wait, or more than one step
MAX_NAME = 200  # its column's length

OnFailure = Literal["fail", "hold"]
OnAbandon = Literal["fail", "continue"]
StepFunction = Callable[[Any], Any]


@dataclass(frozen=True)
class WriteOptions:
    """How a `write` step reaches its provider.

    Attributes:
        provider: slug of the provider that the write goes to.
        on_abandon: what the run does when a person abandons the operation: `fail`, or `continue`
            with no output.
    """

    provider: str
    on_abandon: OnAbandon = "fail"


@dataclass(frozen=True)
class Step:
    """A named position in a workflow."""

    name: str
    kind: str
    function: StepFunction
    returns: Any
    retry: RetryPolicy
    timeout: timedelta
    on_failure: OnFailure
    place: str  # "file:line" of the author's function, for messages
    title: str  # what the step does, in the first words of its docstring, or its name
    write: WriteOptions | None = None


@dataclass
class Workflow:
    """A named, versioned list of steps in code.

    Args:
        name: letters, digits and underscores, in parts separated by dots.
        version: a whole number from 1; a run keeps the version it started with.
        input: the type of the input: a pydantic model, dataclass, TypedDict or plain dict.

    Raises:
        InvalidDefinition: names the file and line of what cannot work.
    """

    name: str
    version: int = 1
    input: Any = dict[str, Any]
    steps: dict[str, Step] = field(default_factory=dict, init=False)
    place: str = field(default="", init=False)

    def __post_init__(self) -> None:
        caller = inspect.stack()[2]
        self.place = f"{caller.filename}:{caller.lineno}"
        if not WORKFLOW_NAME.fullmatch(self.name) or len(self.name) > MAX_NAME:
            raise InvalidDefinition(
                f"{self.place}: workflow name {self.name!r}: use lower-case letters, digits and _, "
                f"{MAX_NAME} at most"
            )
        if self.version < 1:
            raise InvalidDefinition(f"{self.place}: version {self.version}: start at 1")

    # --- for authors ------------------------------------------------------------------------

    def step(
        self,
        *,
        retries: int | RetryPolicy = 0,
        timeout: timedelta = DEFAULT_TIMEOUT,
        on_failure: OnFailure = "fail",
    ) -> Callable[[StepFunction], StepFunction]:
        """Add a step that computes or reads; it may run more than once before it commits."""
        policy = retries if isinstance(retries, RetryPolicy) else RetryPolicy(attempts=retries + 1)
        return self._adder("step", policy, timeout, on_failure)

    def write(
        self,
        *,
        provider: str,
        timeout: timedelta = DEFAULT_TIMEOUT,
        on_failure: OnFailure = "fail",
        on_abandon: OnAbandon = "fail",
    ) -> Callable[[StepFunction], StepFunction]:
        """Add a step that describes one external effect; the ledger sends and settles it.

        The function returns an `Intent` and must not write by itself. It has no retries: whether
        a write may be sent again is the provider contract's matter, never the step's.
        """
        options = WriteOptions(provider, on_abandon)
        return self._adder("write", RetryPolicy(), timeout, on_failure, options)

    def _adder(
        self,
        kind: str,
        retry: RetryPolicy,
        timeout: timedelta,
        on_failure: OnFailure,
        write: WriteOptions | None = None,
    ) -> Callable[[StepFunction], StepFunction]:
        def add(function: StepFunction) -> StepFunction:
            name, place = function.__name__, place_of(function)
            returns = return_type(function, place)
            if kind == "write" and returns is not Intent:
                raise InvalidDefinition(f"{place}: write step {name!r} must be annotated -> Intent")
            check_choices(place, on_failure, write)
            if not timedelta(0) < timeout <= LONGEST_TIMEOUT:
                raise InvalidDefinition(
                    f"{place}: timeout {timeout}: more than nothing, at most {LONGEST_TIMEOUT}"
                )
            if kind != "write":
                check_storable(returns, place)
            if not NAME.fullmatch(name):
                raise InvalidDefinition(f"{place}: step name {name!r}: use lower case and _")
            if name in self.steps:
                raise InvalidDefinition(
                    f"{place}: step {name!r} is already defined at {self.steps[name].place}"
                )
            title = (inspect.getdoc(function) or name.replace("_", " ").capitalize()).split("\n")[0]
            self.steps[name] = Step(
                name, kind, function, returns, retry, timeout, on_failure, place, title, write
            )
            return function

        return add

    # --- for the engine ---------------------------------------------------------------------

    @property
    def first(self) -> Step:
        return next(iter(self.steps.values()))

    def after(self, step: str) -> Step | None:
        """Return the step that follows `step`, or None at the end."""
        names = list(self.steps)
        position = names.index(step) + 1
        return self.steps[names[position]] if position < len(names) else None

    @property
    def graph(self) -> list[dict[str, Any]]:
        """The steps as data, in order, each with the names of those that can follow."""
        return [
            {
                "name": step.name,
                "kind": step.kind,
                "title": step.title,
                "next": [following.name] if (following := self.after(step.name)) else [],
            }
            for step in self.steps.values()
        ]


class Registry:
    """The workflows that this process has, by name and version."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], Workflow] = {}

    def add(self, workflow: Workflow) -> None:
        """Make `workflow` known.

        Raises:
            InvalidDefinition: it has no step, or this name and version is taken.
        """
        if not workflow.steps:
            raise InvalidDefinition(f"{workflow.place}: workflow {workflow.name!r} has no step")
        taken = self._known.get((workflow.name, workflow.version))
        if taken is workflow:
            return
        if taken:
            raise InvalidDefinition(
                f"{workflow.place}: {workflow.name} version {workflow.version} "
                f"is already defined at {taken.place}"
            )
        self._known[workflow.name, workflow.version] = workflow

    def get(self, name: str, version: int) -> Workflow:
        """Raises `UnknownWorkflow`, naming what is known."""
        try:
            return self._known[name, version]
        except KeyError:
            raise UnknownWorkflow(
                f"no workflow {name!r} version {version} here; known: {self.summary()}"
            ) from None

    def latest(self, name: str) -> Workflow:
        """Raises `UnknownWorkflow`, naming what is known."""
        versions = [version for known, version in self._known if known == name]
        if not versions:
            raise UnknownWorkflow(f"no workflow {name!r} here; known: {self.summary()}")
        return self._known[name, max(versions)]

    def has(self, name: str, version: int) -> bool:
        return (name, version) in self._known

    def steps(self) -> list[tuple[Workflow, Step]]:
        return [(known, step) for known in self._known.values() for step in known.steps.values()]

    def pairs(self) -> list[tuple[str, int]]:
        return sorted(self._known)

    def summary(self) -> str:
        return ", ".join(f"{name} v{version}" for name, version in self.pairs()) or "none"


def workflows_in(namespace: Mapping[str, Any]) -> list[Workflow]:
    """Return the workflows among the names of a module, each once."""
    found: list[Workflow] = []
    for value in namespace.values():
        if isinstance(value, Workflow) and not any(value is known for known in found):
            found.append(value)
    return found


def place_of(function: StepFunction) -> str:
    code = inspect.unwrap(function).__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


def check_choices(place: str, on_failure: str, write: WriteOptions | None) -> None:
    if on_failure not in get_args(OnFailure):
        raise InvalidDefinition(f"{place}: on_failure={on_failure!r}: one of {get_args(OnFailure)}")
    if write is not None and write.on_abandon not in get_args(OnAbandon):
        choices = get_args(OnAbandon)
        raise InvalidDefinition(f"{place}: on_abandon={write.on_abandon!r}: one of {choices}")


def check_storable(returns: Any, place: str) -> None:
    """Raise `InvalidDefinition` for an annotation that no value can be stored under."""
    try:
        adapter(returns)
    except Exception as error:
        name = getattr(returns, "__name__", returns)
        raise InvalidDefinition(
            f"{place}: an output of type {name} cannot be stored; "
            "use a pydantic model, a dataclass or a plain type"
        ) from error


def return_type(function: StepFunction, place: str) -> Any:
    try:
        return get_type_hints(function).get("return", Any)
    except Exception as error:  # whatever evaluating the annotations raised
        raise InvalidDefinition(
            f"{place}: its annotations name something unknown: {error}"
        ) from error
