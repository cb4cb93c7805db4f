"""The faults by name: what each does, its parameters, and which requests it can happen to.

A catalogue, pure. How faults are asked for is in `plans`, what they look like on the wire in
`misbehaviour`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from reconciliation.rehearsal.wire import PERSONALITIES, STRIPE_V1, STRIPE_V2

Value = str | float | bool
Kind = Literal["writes", "reads", "both"]

# Longer than any client waits, short enough that a forgotten fault does not hold a thread all day.
LONGEST_SECONDS = 600.0
ERROR_STATUSES = range(400, 600)
REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
WORD = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class BadFault(ValueError):
    """A fault that does not exist or cannot be as asked."""

    def __init__(self, message: str, param: str, known: object = None) -> None:
        super().__init__(message)
        self.message, self.param, self.known = message, param, known


@dataclass(frozen=True)
class Parameter:
    """One parameter of a fault: what a caller is told of it, how it is read, what it is else."""

    says: str
    read: Callable[[str], Value]
    default: Value | None = None


@dataclass(frozen=True)
class FaultKind:
    """One entry of the catalogue."""

    stage: str
    on: Kind
    meaning: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    personalities: tuple[str, ...] = PERSONALITIES


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value <= LONGEST_SECONDS:
        raise ValueError
    return value


def _one_of(*words: str) -> Callable[[str], Value]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError
        return text

    return read


def _status(text: str) -> float:
    value = int(text)
    if value not in ERROR_STATUSES:
        raise ValueError
    return value


def _redirect_status(text: str) -> float:
    value = int(text)
    if value not in REDIRECT_STATUSES:
        raise ValueError
    return value


def _truth(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _word(text: str) -> str:
    if not WORD.fullmatch(text):
        raise ValueError
    return text


def _delay(default: float | None) -> Parameter:
    return Parameter(f"seconds, 0 to {LONGEST_SECONDS:.0f}", _seconds, default)


def _closing(default: str) -> Parameter:
    return Parameter("fin or rst", _one_of("fin", "rst"), default)


_ERROR = {
    "status": Parameter("an HTTP status, 400 to 599", _status, 500),
    "type": Parameter("the error type in the body", _word),
    "code": Parameter("the error code in the body", _word),
    "retry_after": Parameter("seconds for a Retry-After header", _seconds),
}
_KEYS_ONLY = ("keyed", STRIPE_V1, STRIPE_V2)
_LOOK_UPS = ("keyed", "lookup", STRIPE_V1, STRIPE_V2)

CATALOGUE: Mapping[str, FaultKind] = {
    "drop_before": FaultKind(
        "arrival", "both", "the connection is closed before any effect", {"close": _closing("rst")}
    ),
    "never_apply": FaultKind(
        "arrival",
        "writes",
        "accepted, then hung up on after a while, never applied",
        {"seconds": _delay(0.2), "close": _closing("fin")},
    ),
    "error_before": FaultKind(
        "arrival", "both", "a typed error, before any effect; not kept under the key", _ERROR
    ),
    "redirect": FaultKind(
        "arrival",
        "both",
        "sent elsewhere, before any effect; who follows shows in the journal under /elsewhere",
        {"status": Parameter("301, 302, 303, 307 or 308", _redirect_status, 302)},
    ),
    "lookup_unavailable": FaultKind(
        "arrival",
        "reads",
        "look-ups answer 503",
        {"retry_after": Parameter("seconds for a Retry-After header", _seconds)},
        _LOOK_UPS,
    ),
    "slow": FaultKind("wait", "both", "a delay before the effect", {"seconds": _delay(1.0)}),
    "key_in_flight": FaultKind(
        "key", "writes", "409, as if the key were still executing", {}, _KEYS_ONLY
    ),
    "key_pruned": FaultKind(
        "key", "writes", "the key is forgotten before the request is handled", {}, _KEYS_ONLY
    ),
    "apply_twice": FaultKind(
        "key", "writes", "the key is ignored: asked again, it applies again", {}, _KEYS_ONLY
    ),
    "postcondition": FaultKind(
        "effect",
        "writes",
        "the effect is made and does not end well; with seconds it recovers after that time",
        {
            "status": Parameter("failed or pending", _one_of("failed", "pending"), "failed"),
            "seconds": _delay(None),
        },
    ),
    "mismatched_receipt": FaultKind(
        "receipt",
        "writes",
        "the effect is made as asked, the answer (also a replayed one) tells of another",
        {"field": Parameter("the member that differs, or `operation`", _word)},
    ),
    "apply_then_drop": FaultKind(
        "answer", "both", "applied, then closed without a byte", {"close": _closing("fin")}
    ),
    "apply_then_delay": FaultKind(
        "answer", "both", "applied, then a delay before the answer", {"seconds": _delay(1.0)}
    ),
    "error_after": FaultKind(
        "answer",
        "writes",
        "applied, then a typed error; kept under the key as its answer unless stored=false",
        {**_ERROR, "stored": Parameter("true or false", _truth, True)},
    ),
    "truncated_body": FaultKind(
        "answer", "both", "applied, then the full Content-Length, half the body, and closed"
    ),
    "proxy_502": FaultKind(
        "answer",
        "both",
        "applied (unless applied=false), then a proxy's HTML page instead of the answer",
        {"applied": Parameter("true or false", _truth, True)},
    ),
    "lookup_lag": FaultKind(
        "lookup",
        "reads",
        "what is younger than this is not found",
        {"seconds": _delay(60.0)},
        _LOOK_UPS,
    ),
    "lookup_wrong_scope": FaultKind(
        "lookup",
        "reads",
        "the record comes back as another account's, or another zone's",
        {"scope": Parameter("account or zone", _one_of("account", "zone"), "account")},
        _LOOK_UPS,
    ),
    "lookup_ignores_filter": FaultKind(
        "lookup", "reads", "the filter is ignored: every record of the account", {}, _LOOK_UPS
    ),
}


def kind_of(method: str) -> Kind:
    """Say whether a method asks or writes."""
    return "reads" if method in ("GET", "HEAD") else "writes"


def catalogue() -> dict[str, Any]:
    """Return every fault with its meaning and parameters, as told to a caller."""
    return {
        name: {"meaning": kind.meaning, "on": kind.on, "parameters": parameters_told(kind)}
        for name, kind in CATALOGUE.items()
    }


def parameters_told(kind: FaultKind) -> dict[str, str]:
    """Return what a caller may set of a fault."""
    return {
        name: parameter.says
        + ("" if parameter.default is None else f" (else {shown(parameter.default)})")
        for name, parameter in kind.parameters.items()
    }


def shown(value: object) -> str:
    """A parameter as text, the same whether it came from a header or from JSON."""
    return str(value).lower() if isinstance(value, bool) else str(value)
