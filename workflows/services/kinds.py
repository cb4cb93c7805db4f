"""Step kinds and who executes them.

`step` is executed by the executor itself. The other kinds of this app have a module each; other
apps register theirs when they are ready, so that this app need not know them: `reconciliation`
brings `write`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from workflows.core.values import Json
from workflows.core.words import storable
from workflows.services.claims import Also, Claim, nothing
from workflows.services.run_view import RunView


@dataclass(frozen=True)
class Done:
    """The step has its output; the run moves on, to the step named `goto` if one is."""

    value: Json
    also: Also = nothing
    goto: str = ""
    sensitive: bool = False  # whatever the step says: something sensitive is in it


@dataclass(frozen=True)
class Park:
    """Nothing to do for a worker until something happens outside; the run waits."""

    reason: str  # machine word
    message: str  # for people: what it waits for
    also: Also = nothing
    wake_at: datetime | None = None  # when the step is looked at again, if nothing happens before


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
    counts: bool = True  # towards the step's tries, if there is a message: what failed was its own


@dataclass(frozen=True)
class Cancel:
    """The run ends here because somebody asked for it."""

    by: str
    also: Also = nothing


@dataclass(frozen=True)
class Decide:
    """What comes of the step shows only under locks, in the transaction that writes it down.

    `decide` returns None when nothing is to be written of the run: what it has done is committed,
    and the step is executed anew.
    """

    keys: Sequence[int]  # that are locked before the run (`services.inbox`)
    decide: Callable[[], Result | None]


class Overtaken(Exception):
    """What a result rests on has changed since it was worked out. Raised by its `also`, with which
    everything that it would have written is taken back; the step is executed anew."""


Result = Done | Park | Hold | Fail | Again | Cancel | Decide
LONGEST_MESSAGE = 2000


def fit_to_keep(result: Result) -> Result:
    """The same with a message that can be kept: some quote what was given to them, such as the path
    of a part of it, or what a type of the author's says of it."""
    if isinstance(result, Park | Hold | Fail | Again):
        kept = storable(result.message, LONGEST_MESSAGE)
        return result if kept == result.message else replace(result, message=kept)
    return result


Handler = Callable[[Claim, RunView], Result]

handlers: dict[str, Handler] = {}


def register_kind(name: str, handler: Handler) -> None:
    """Let `handler` execute steps of kind `name`."""
    handlers[name] = handler


def fail_or_hold(claim: Claim, reason: str, message: str, also: Also = nothing) -> Fail | Hold:
    """What follows when a step cannot do what it is for: as its author says."""
    if claim.step.on_failure == "hold":
        return Hold(reason, message)
    return Fail(reason, message, also=also)
