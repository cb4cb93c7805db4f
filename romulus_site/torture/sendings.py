"""The events of a torture, from its seed alone: what is sent for each run that waits, and when.

Pure. When an event is meant to come is one thing; when it came is on record, and that decides what
it has to lead to (`checks.events`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

TYPE, OTHER_TYPE = "answer.given", "answer.taken_back"
# For how many seconds a run waits: those whose deadline is to win or to be close, and the others.
PATIENCE = (0.3, 2.0)
LONG = 3600.0
# Before and after a deadline, as far as anybody knows when it will be.
AROUND = 0.2
# The clerk dies at one of these while it takes an event, and is asked again.
DEATHS = ("before_event", "event_stored", "after_event")


class Coming(StrEnum):
    """How the event of a run comes."""

    EARLY = "early"  # before the run is started
    IN_TIME = "in_time"
    TWICE = "twice"  # the same ID again
    AROUND = "around"  # about when the deadline comes
    LATE = "late"  # when the deadline has come
    NEAR_MISS = "near_miss"  # only what is like it comes
    KILLED = "killed"  # whoever takes it is killed over it, and another is told again


# Those whose run waits for as long as it takes: what they need is certain to come.
CERTAIN = frozenset({Coming.EARLY, Coming.IN_TIME, Coming.TWICE, Coming.KILLED})


@dataclass(frozen=True)
class PlannedSending:
    """One delivery for the run of that number.

    Attributes:
        event_id: the sender's own; the same for what is sent twice.
        failpoint: where whoever takes it dies.
    """

    at: float
    run: int
    event_id: str
    type: str
    correlation: str
    failpoint: str = ""


def correlation_of(number: int) -> str:
    return f"question {number}"


def patience_for(draw: random.Random, coming: Coming) -> float:
    return LONG if coming in CERTAIN else round(draw.uniform(*PATIENCE), 3)


def sendings_for(
    draw: random.Random, number: int, started: float, coming: Coming, patience: float
) -> Iterator[PlannedSending]:
    """What is sent for the run `number` that is `started` then; some of it may be past the end."""
    soon = started + draw.uniform(0.3, 2.0)
    ends = started + patience
    right = (f"e-{number}", TYPE, correlation_of(number))
    match coming:
        case Coming.EARLY:
            yield PlannedSending(started - draw.uniform(0.05, 1.0), number, *right)
        case Coming.IN_TIME:
            yield PlannedSending(soon, number, *right)
        case Coming.TWICE:
            yield PlannedSending(soon, number, *right)
            yield PlannedSending(soon + draw.uniform(0.0, 1.0), number, *right)
        case Coming.AROUND:
            yield PlannedSending(ends + draw.uniform(-AROUND, AROUND), number, *right)
        case Coming.LATE:
            yield PlannedSending(ends + draw.uniform(1.0, 3.0), number, *right)
        case Coming.KILLED:
            yield PlannedSending(soon, number, *right, failpoint=draw.choice(DEATHS))
        case Coming.NEAR_MISS:
            near = f"{correlation_of(number)} "
            yield PlannedSending(started, number, f"n-{number}", OTHER_TYPE, right[2])
            yield PlannedSending(started, number, f"m-{number}", TYPE, near)


def in_order(sendings: Iterable[PlannedSending], seconds: float) -> tuple[PlannedSending, ...]:
    """The sendings by their times; what would be outside of the torture is at its edge."""
    within = (replace(each, at=min(max(0.0, each.at), seconds)) for each in sendings)
    return tuple(sorted(within, key=lambda sending: sending.at))
