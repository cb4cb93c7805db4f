"""Which faults a request meets: what a header or an admin call asks for, and the match of both.

One grammar for the two: `name;parameter=value, name;parameter=value`. Faults of different stages
combine (an effect that fails *and* an answer that is lost); two of one stage do not. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from reconciliation.rehearsal.faults import (
    CATALOGUE,
    BadFault,
    FaultKind,
    Value,
    kind_of,
    parameters_told,
    shown,
)
from reconciliation.rehearsal.wire import Request, at_path


@dataclass(frozen=True)
class Fault:
    """One fault with its parameters, defaults filled in (`None`: not given and no default)."""

    name: str
    parameters: Mapping[str, Value | None]

    @property
    def kind(self) -> FaultKind:
        """Its entry in the catalogue."""
        return CATALOGUE[self.name]

    def number(self, name: str) -> float | None:
        """A parameter that is a number of seconds or a status."""
        value = self.parameters[name]
        return None if value is None else float(value)

    def text(self, name: str) -> str | None:
        """A parameter that is a word."""
        value = self.parameters[name]
        return None if value is None else str(value)

    def flag(self, name: str) -> bool:
        """A parameter that is true or false."""
        return bool(self.parameters[name])

    def __str__(self) -> str:
        given = {name: value for name, value in self.parameters.items() if value is not None}
        return ";".join([self.name, *(f"{name}={shown(value)}" for name, value in given.items())])


@dataclass(frozen=True)
class Plan:
    """The faults that one request meets; usually none or one."""

    faults: tuple[Fault, ...] = ()

    def get(self, name: str) -> Fault | None:
        """The fault of that name, if the request meets it."""
        return next((fault for fault in self.faults if fault.name == name), None)

    def misfit(self, *, method: str | None, personality: str | None) -> str | None:
        """Why these faults can never happen to such a request, or `None` when they can."""
        for fault in self.faults:
            kind = fault.kind
            if method is not None and kind.on not in ("both", kind_of(method)):
                return f"{fault.name} happens to {kind.on}, and this is a {method}"
            if personality is not None and personality not in kind.personalities:
                return f"{fault.name} does not happen to the personality {personality}"
        return None

    def __str__(self) -> str:
        return ", ".join(map(str, self.faults))


NO_FAULT = Plan()


def parse(text: str, extra: Mapping[str, Any] | None = None) -> Plan:
    """Return the plan in `text`; `extra` are parameters of its only fault. Raises `BadFault`."""
    parts = [part.strip() for part in text.split(",")]
    if extra and len(parts) > 1:
        message = "parameters beside the name belong to one fault: write them in the text"
        raise BadFault(message, next(iter(extra)))
    plan = Plan(tuple(_fault(part, extra or {}) for part in parts))
    stages = [fault.kind.stage for fault in plan.faults]
    if len(set(stages)) < len(stages):
        message = f"two faults of one stage cannot meet in one request: {plan}"
        raise BadFault(message, "fault", {name: kind.stage for name, kind in CATALOGUE.items()})
    return plan


def _fault(text: str, extra: Mapping[str, Any]) -> Fault:
    name, *pairs = (part.strip() for part in text.split(";"))
    kind = CATALOGUE.get(name)
    if kind is None:
        message = f"there is no fault {name!r}"
        raise BadFault(message, "fault", list(CATALOGUE))
    given: dict[str, Any] = {}
    for pair in pairs:
        parameter, _, value = pair.partition("=")
        given[parameter.strip()] = value.strip()
    return Fault(name, _parameters_read(name, kind, {**given, **extra}))


def _parameters_read(
    name: str, kind: FaultKind, given: Mapping[str, Any]
) -> dict[str, Value | None]:
    unknown = set(given) - set(kind.parameters)
    if unknown:
        message = f"{name} has no parameter {min(unknown)!r}"
        raise BadFault(message, min(unknown), parameters_told(kind))
    read: dict[str, Value | None] = {
        parameter: known.default for parameter, known in kind.parameters.items()
    }
    for parameter, value in given.items():
        try:
            read[parameter] = kind.parameters[parameter].read(shown(value))
        except (ValueError, KeyError, OverflowError):
            message = f"{parameter} of {name} must be {kind.parameters[parameter].says}"
            raise BadFault(message, parameter, parameters_told(kind)) from None
    return read


@dataclass(frozen=True)
class Match:
    """Which requests an armed fault is for; what is `None` or empty does not matter."""

    personality: str | None = None
    operation: str | None = None
    path: str | None = None
    method: str | None = None
    account: str | None = None
    body: Mapping[str, Any] = field(default_factory=dict)

    def accepts(self, request: Request, plan: Plan) -> bool:
        """Say whether `plan` happens to `request`.

        A fault that could happen to reads and writes alike happens to writes, unless the match
        names the method: who loses "the answer" of an operation means that of its write.
        """
        return (
            # The commonest reason first: a torture run arms a thousand faults, each for one.
            (self.operation is None or self.operation in request.operations)
            and request.personality is not None
            and request.method == self.method_of(plan)
            and plan.misfit(method=request.method, personality=request.personality) is None
            and self.personality in (None, request.personality)
            and self.account in (None, request.account)
            and (self.path is None or fnmatchcase(request.path, self.path))
            and all(_same(at_path(request.document, at), value) for at, value in self.body.items())
        )

    def method_of(self, plan: Plan) -> str:
        """Return the method that a request must have to meet `plan`."""
        reads_only = any(fault.kind.on == "reads" for fault in plan.faults)
        return self.method or ("GET" if reads_only else "POST")


def _same(found: object, wanted: object) -> bool:
    # True equals 1 in Python and not in JSON.
    return found == wanted and isinstance(found, bool) == isinstance(wanted, bool)
