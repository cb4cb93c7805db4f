"""What people are told of, and when a hold that nobody decides is told of to whom.

A hold is told of to the next person on the ladder at each step's own time. Where nobody stands on
a rung, or nobody there can be reached, the next one is told: a hold that nobody hears of would be a
silent stop. Pure: takes the times, and `now`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class Kind(StrEnum):
    """What a notification tells."""

    OPENED = "opened"
    ASSIGNED = "assigned"
    TAKEN = "taken"
    ASKED = "asked"
    REMINDER = "reminder"
    PROPOSED = "proposed"
    NOT_CONFIRMED = "not_confirmed"
    DUE_SOON = "due_soon"
    OVERDUE = "overdue"
    WINDOW = "window"
    PROVEN = "proven"
    CONTRADICTED = "contradicted"
    DISPATCH = "dispatch"
    STOPPED = "stopped"
    DIGEST = "digest"
    TEST = "test"


# What is said of a hold, and is worth nothing any more once it is decided or closed.
OF_OPEN_HOLDS = frozenset(
    {
        Kind.OPENED,
        Kind.ASSIGNED,
        Kind.TAKEN,
        Kind.PROPOSED,
        Kind.NOT_CONFIRMED,
        Kind.ASKED,
        Kind.REMINDER,
        Kind.DUE_SOON,
        Kind.OVERDUE,
        Kind.WINDOW,
    }
)


class Rung(StrEnum):
    """Who is told, from the nearest on."""

    ASSIGNEE = "assignee"
    ON_CALL = "on_call"
    OWNERS = "owners"
    ADMINISTRATORS = "administrators"


LADDER = tuple(Rung)
# Before the window ends in which the provider guards a second send: time to wake someone.
WINDOW_LEAD = timedelta(hours=1)


def rungs_from(rung: Rung) -> tuple[Rung, ...]:
    """`rung` and those above it."""
    return LADDER[LADDER.index(rung) :]


@dataclass(frozen=True)
class Times:
    """When a queue's holds are told of, beside their due time.

    Attributes:
        before: how long before it the assignee hears that it comes; nothing: not at all.
        on_call, owners, administrators: how long after it each of these hears.
    """

    before: timedelta = timedelta(hours=1)
    on_call: timedelta = timedelta(minutes=15)
    owners: timedelta = timedelta(hours=1)
    administrators: timedelta = timedelta(hours=4)


@dataclass(frozen=True)
class Step:
    """Something to tell at a time; no more once `until` is past."""

    kind: Kind
    at: datetime
    rung: Rung
    until: datetime | None = None

    def is_due(self, now: datetime) -> bool:
        return self.at <= now and (self.until is None or now < self.until)


def steps_of(
    opened_at: datetime, due_at: datetime, window_ends_at: datetime | None, times: Times
) -> tuple[Step, ...]:
    """Everything that is to be told of an open hold that nobody decides, in time.

    Args:
        window_ends_at: when the provider guards a second send no longer; None: it never did, or
            nothing was sent.
    """
    steps = [
        Step(Kind.OVERDUE, due_at, Rung.ASSIGNEE),
        Step(Kind.OVERDUE, due_at + times.on_call, Rung.ON_CALL),
        Step(Kind.OVERDUE, due_at + times.owners, Rung.OWNERS),
        Step(Kind.OVERDUE, due_at + times.administrators, Rung.ADMINISTRATORS),
    ]
    # Who has just heard that it was opened need not hear at once that it is due soon.
    if times.before and due_at - times.before > opened_at:
        steps.append(Step(Kind.DUE_SOON, due_at - times.before, Rung.ASSIGNEE, due_at))
    if window_ends_at is not None:
        at = window_ends_at - WINDOW_LEAD
        steps.append(Step(Kind.WINDOW, at, Rung.ASSIGNEE, window_ends_at))
    return tuple(sorted(steps, key=lambda step: step.at))


def next_at(steps: Iterable[Step], now: datetime) -> datetime | None:
    """When the next of `steps` comes; None when all have."""
    return min((step.at for step in steps if step.at > now), default=None)
