"""What is known about a wait that is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from workflows.core.near_misses import Expected, NearMiss, Said
from workflows.core.states import WaitState


@dataclass(frozen=True, slots=True)
class Taken:
    """An event that a wait got. `by` attached it and said why; empty: the rules did."""

    event: Said
    at: datetime
    by: str = ""
    reason: str = ""


@dataclass(frozen=True)
class WaitFacts:
    """A wait, and what came of it. Times are the database's.

    Attributes:
        needed: so many events resolve it.
        on_deadline: what its author wants then: `fail`, `continue`, `hold` or a step's name;
            empty where this process does not have the run's version.
        taken: the events that it got, the oldest first; `got` counts them all.
        arrived: the oldest that fits and was given to nobody yet.
        ambiguous: `arrived` could be taken by other waits too, and a person is asked.
        near: events that came close; only of a wait that is looked at by itself.
        looked: whether it was looked for those.
    """

    state: WaitState
    expected: Expected
    started_at: datetime
    deadline: datetime | None = None
    needed: int = 1
    on_deadline: str = ""
    resolved_at: datetime | None = None
    taken: tuple[Taken, ...] = ()
    got: int = 0
    arrived: Said | None = None
    ambiguous: bool = False
    near: tuple[NearMiss, ...] = ()
    looked: bool = False

    @property
    def is_open(self) -> bool:
        return self.state is WaitState.WAITING
