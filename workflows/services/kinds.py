"""Step kinds and who executes them.

`step` is executed here. Other apps register theirs when they are ready, so that this app need not
know them: `reconciliation` brings `write`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from workflows.core.values import Json
from workflows.services.claims import Also, Claim, nothing
from workflows.services.run_view import RunView


@dataclass(frozen=True)
class Done:
    """The step has its output; the run moves on."""

    value: Json
    also: Also = nothing


@dataclass(frozen=True)
class Park:
    """Nothing to do for a worker until something happens outside; the run waits."""

    reason: str  # machine word
    message: str  # for people: what it waits for
    also: Also = nothing


@dataclass(frozen=True)
class Hold:
    """Only a person can say how the run goes on."""

    reason: str
    message: str
    also: Also | None = None  # opens the hold; without it the run itself is held


@dataclass(frozen=True)
class Fail:
    """The step failed for a known reason."""

    reason: str
    message: str
    also: Also = nothing


@dataclass(frozen=True)
class Again:
    """The step is to be tried again after a rest."""

    delay: timedelta = timedelta(0)
    message: str = ""
    also: Also = nothing


Result = Done | Park | Hold | Fail | Again
Handler = Callable[[Claim, RunView], Result]

handlers: dict[str, Handler] = {}


def register_kind(name: str, handler: Handler) -> None:
    """Let `handler` execute steps of kind `name`."""
    handlers[name] = handler
