"""What is refused about one step, where it is written: its annotation, choices, times and name.

Everything raises `InvalidDefinition` with file and line. The `output_of_…` functions return the
type of the output that a step of their kind has.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from datetime import datetime, timedelta
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import AwareDatetime

from workflows.core.byte_text import has_undeclared_bytes
from workflows.core.errors import InvalidDefinition
from workflows.core.events import MAX_TYPE
from workflows.core.intents import LONGEST, Intent
from workflows.core.proposals import Approved, ProposedAction
from workflows.core.steps import (
    END,
    NAME,
    ApprovalOptions,
    Child,
    ChildEnd,
    ChildrenOptions,
    Join,
    Leftover,
    OnAbandon,
    OnDeadline,
    OnFailure,
    Step,
    StepFunction,
    WaitOptions,
)
from workflows.core.values import adapter
from workflows.core.waits import ReceivedEvent
from workflows.core.words import is_storable

LONGEST_TIMEOUT = timedelta(days=7)  # longer work is a wait, or more than one step
LONGEST_APPROVAL = timedelta(days=366)  # by then nobody knows what was approved, and why
LONGEST_RETAIN = timedelta(days=36_525)  # a century; a database's dates end somewhere

MOST_EVENTS = 1000  # of one wait; they are one output

MOMENTS = (timedelta, datetime, AwareDatetime)  # what a sleep may say that it gives

# Where a function remembers the place at which it became a write; functools.wraps carries it on.
WRITE_MARK = "_romulus_write"


def place_of(function: StepFunction) -> str:
    code = inspect.unwrap(function).__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


def title_of(function: StepFunction) -> str:
    words = function.__name__.replace("_", " ").capitalize()
    return (inspect.getdoc(function) or words).split("\n")[0]


# --- what a function gives --------------------------------------------------------------------


def output_of_step(function: StepFunction, place: str) -> Any:
    """A step may run again before it commits, so that no write may be inside."""
    refuse_write(function, place)
    returns = return_type(function, place, with_rules=True)
    if names_intent(returns):
        raise InvalidDefinition(
            f"{place}: step {function.__name__!r} is annotated with Intent: decorate it with "
            "write, so that the ledger sends it; a step may run more than once"
        )
    check_storable(returns, place)
    return returns


def output_of_write(
    function: StepFunction, place: str, retries: object = None, undo: object = None
) -> Any:
    check_undo(function, place, undo)
    if retries is not None:
        raise InvalidDefinition(
            f"{place}: write step {function.__name__!r} has no retries: whether it may be sent "
            "again is the contract's matter"
        )
    if return_type(function, place) is not Intent:
        raise InvalidDefinition(
            f"{place}: write step {function.__name__!r} must be annotated -> Intent"
        )
    setattr(getattr(function, "__func__", function), WRITE_MARK, place)
    return Any  # the receipt


def check_undo(function: StepFunction, place: str, undo: object) -> None:
    if undo is None:
        return
    said = f"{place}: undo= of write step {function.__name__!r}"
    if not callable(undo):
        raise InvalidDefinition(f"{said} is a function of the run and the receipt")
    try:
        inspect.signature(undo).bind(object(), {})
    except TypeError as error:
        raise InvalidDefinition(f"{said} takes the run and the receipt: {error}") from error
    if return_type(undo, place) is not Intent:
        raise InvalidDefinition(f"{said} must be annotated -> Intent")


def output_of_branch(function: StepFunction, place: str, to: Sequence[str]) -> Any:
    refuse_write(function, place)
    returns = return_type(function, place)
    named = get_args(returns) if get_origin(returns) is Literal else ()
    if not named and returns not in (str, Any):
        raise InvalidDefinition(
            f"{place}: branch {function.__name__!r} returns the name of the next step: "
            "annotate it -> str, or with a Literal of the names"
        )
    for name in named:
        if name not in to:
            raise InvalidDefinition(
                f"{place}: branch {function.__name__!r} says that it may return {name!r}, "
                "which is not in its to="
            )
    return str


def output_of_sleep(function: StepFunction, place: str) -> Any:
    refuse_write(function, place)
    returns = return_type(function, place)
    parts = get_args(returns) if get_origin(returns) in (Union, UnionType) else (returns,)
    if returns is not Any and not all(part in MOMENTS for part in parts):
        raise InvalidDefinition(
            f"{place}: sleep {function.__name__!r} returns how long, or until when: "
            "annotate it -> timedelta or -> datetime"
        )
    return datetime


def output_of_children(function: StepFunction, place: str) -> Any:
    refuse_write(function, place)
    if return_type(function, place) not in (list[Child], Any):
        raise InvalidDefinition(
            f"{place}: children step {function.__name__!r} returns the runs to start: "
            "annotate it -> list[Child]"
        )
    return list[ChildEnd]


def output_of_wait(function: StepFunction, place: str, options: WaitOptions) -> Any:
    """One event or a list of them; at a deadline that lets the run go on, none or fewer."""
    refuse_write(function, place)
    if return_type(function, place) not in (str, Any):
        raise InvalidDefinition(
            f"{place}: wait {function.__name__!r} returns the correlation of the event, which is "
            "compared character by character: annotate it -> str"
        )
    check_storable(options.payload, place, "a payload")
    event = ReceivedEvent[options.payload]  # type: ignore[name-defined]
    if options.count != 1:
        return list[event]
    return event if options.on_deadline in ("fail", "hold") else event | None


def output_of_approval(function: StepFunction, place: str) -> Any:
    refuse_write(function, place)
    if return_type(function, place) is not ProposedAction:
        raise InvalidDefinition(
            f"{place}: approval {function.__name__!r} must be annotated -> ProposedAction"
        )
    return Approved


def refuse_write(function: StepFunction, place: str) -> None:
    written = getattr(function, WRITE_MARK, None)
    if written:
        raise InvalidDefinition(
            f"{place}: {function.__name__!r} is a write step, at {written}, and cannot be a step "
            "of another kind: inside a step's retry it would be sent twice"
        )


def names_intent(annotation: Any) -> bool:
    return annotation is Intent or any(names_intent(part) for part in get_args(annotation))


def check_storable(annotation: Any, place: str, what: str = "an output") -> None:
    """Raise `InvalidDefinition` for an annotation that no value can be stored under."""
    name = annotation.__name__ if isinstance(annotation, type) else annotation
    try:
        schema = adapter(annotation).core_schema
    except Exception as error:
        # The first line says why; pydantic's others lead to its own documentation.
        why = str(error).partition("\n")[0].rstrip(".")
        raise InvalidDefinition(
            f"{place}: {what} of type {name} cannot be stored ({why}); "
            "use a pydantic model, a dataclass or a plain type"
        ) from error
    if has_undeclared_bytes(schema):
        raise InvalidDefinition(
            f"{place}: {what} of type {name} has bytes, which have no form in JSON; declare their "
            "encoding: `Base64` (workflows.core.definitions), or in a model's configuration "
            "`ser_json_bytes` and `val_json_bytes`, both 'base64' or 'hex'"
        )


def return_type(function: StepFunction, place: str, *, with_rules: bool = False) -> Any:
    """What a function is annotated to give; with what `Annotated` says of it, or without."""
    try:
        return get_type_hints(function, include_extras=with_rules).get("return", Any)
    except Exception as error:  # whatever evaluating the annotations raised
        raise InvalidDefinition(
            f"{place}: its annotations name something unknown: {error}"
        ) from error


# --- what is asked of a step ------------------------------------------------------------------


def check_step(step: Step) -> None:
    """Raise `InvalidDefinition` for options that no step can have."""
    check_choice(step.place, "on_failure", step.on_failure, OnFailure)
    if step.write is not None:
        check_choice(step.place, "on_abandon", step.write.on_abandon, OnAbandon)
    if step.children is not None:
        check_children(step.place, step.children)
    if step.kind == "branch":
        check_branch(step)
    if step.approval is not None:
        check_approval(step.place, step.name, step.approval)
    if step.wait is not None:
        check_wait(step.place, step.name, step.wait)
    check_times(step)
    if not NAME.fullmatch(step.name):
        raise InvalidDefinition(
            f"{step.place}: step name {step.name!r}: use lower case and _, 63 letters at most"
            + ("; give the group a name=" if step.branches else "")
        )


def check_choice(place: str, option: str, choice: str, choices: Any) -> None:
    if choice not in get_args(choices):
        raise InvalidDefinition(f"{place}: {option}={choice!r}: one of {get_args(choices)}")


def check_children(place: str, children: ChildrenOptions) -> None:
    check_choice(place, "join", children.join, Join)
    check_choice(place, "leftover", children.leftover, Leftover)
    if children.at_once is not None and not is_count(children.at_once):
        raise InvalidDefinition(
            f"{place}: at_once={children.at_once!r}: a whole number from 1, or None for no limit"
        )


def check_branch(step: Step) -> None:
    if not step.to:
        raise InvalidDefinition(
            f"{step.place}: branch {step.name!r} leads nowhere: name in to= where it may go"
        )
    twice = next((name for name in step.to if step.to.count(name) > 1), None)
    if twice:
        raise InvalidDefinition(f"{step.place}: branch {step.name!r} names {twice!r} twice in to=")
    if not is_count(step.max_visits):
        raise InvalidDefinition(
            f"{step.place}: max_visits={step.max_visits!r}: a whole number from 1"
        )


def check_wait(place: str, name: str, wait: WaitOptions) -> None:
    said = f"{place}: wait {name!r}"
    if not wait.events or not all(map(is_type, wait.events)):
        raise InvalidDefinition(
            f"{said}: event= names the type of the event, or several, each of 1 to {MAX_TYPE} "
            "characters"
        )
    if wait.within is not None and wait.until is not None:
        raise InvalidDefinition(f"{said} has within= and until=: one deadline is enough")
    if not callable(wait.within) and not isinstance(wait.within, timedelta | None):
        raise InvalidDefinition(f"{said}: within= is a timedelta, or a function that returns one")
    if not callable(wait.until) and not is_moment(wait.until):
        raise InvalidDefinition(
            f"{said}: until= is a datetime with its zone, or a function that returns one"
        )
    if wait.within is None and wait.until is None and wait.on_deadline != "fail":
        raise InvalidDefinition(
            f"{said} says on_deadline={shown(wait.on_deadline)} and has no deadline: add within= "
            "or until="
        )
    if wait.target != END and wait.target and not NAME.fullmatch(wait.target):
        raise InvalidDefinition(
            f"{said}: on_deadline={wait.on_deadline!r}: one of {get_args(OnDeadline)}, END or a "
            "step's name"
        )
    if not is_count(wait.count) or wait.count > MOST_EVENTS:
        raise InvalidDefinition(
            f"{said}: count={wait.count!r}: a whole number from 1 to {MOST_EVENTS:,}"
        )


def check_approval(place: str, name: str, approval: ApprovalOptions) -> None:
    said = f"{place}: approval {name!r}"
    if not approval.action or not is_storable(approval.action, LONGEST["action"]):
        raise InvalidDefinition(f"{said}: action= names the provider's action that is proposed")
    if not timedelta(0) < approval.expires_in <= LONGEST_APPROVAL:
        raise InvalidDefinition(
            f"{said}: expires_in={approval.expires_in}: more than nothing, at most "
            f"{LONGEST_APPROVAL.days} days"
        )
    for target in approval.targets:
        if target != END and not NAME.fullmatch(target):
            raise InvalidDefinition(
                f"{said} goes on at {target!r}: one of {get_args(OnDeadline)}, END or a step's name"
            )


def is_type(name: object) -> bool:
    return isinstance(name, str) and bool(name) and is_storable(name, MAX_TYPE)


def is_moment(until: object) -> bool:
    return until is None or (isinstance(until, datetime) and until.tzinfo is not None)


def shown(target: str) -> str:
    return "END" if target == END else repr(target)


def check_times(step: Step) -> None:
    if not timedelta(0) < step.timeout <= LONGEST_TIMEOUT:
        raise InvalidDefinition(
            f"{step.place}: timeout {step.timeout}: more than nothing, at most {LONGEST_TIMEOUT}"
        )
    check_retain(step.place, step.retain)


def check_retain(place: str, retain: timedelta | None) -> None:
    if retain is not None and not timedelta(0) < retain <= LONGEST_RETAIN:
        raise InvalidDefinition(
            f"{place}: retain {retain}: more than nothing, at most {LONGEST_RETAIN}"
        )


def is_count(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 1
