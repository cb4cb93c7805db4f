"""The states of runs, attempts, waits and events, and which may follow which.

The core says whether an edge exists; the conditional update says whether it is still true.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from workflows.core.errors import IllegalTransition


class RunState(StrEnum):
    READY = "ready"  # a worker may claim it from `ready_at` on
    RUNNING = "running"  # a worker holds it under a lease and a fence
    WAITING = "waiting"  # waits for something that is not a person
    HELD = "held"  # waits for a person
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in FINAL_RUN_STATES


FINAL_RUN_STATES = frozenset({RunState.COMPLETED, RunState.FAILED, RunState.CANCELLED})


class OutputForm(StrEnum):
    """How an attempt's output is kept in its row."""

    PLAIN = "plain"  # as it is
    SEALED = "sealed"  # encrypted
    OBJECT = "object"  # a reference to an object in the storage `outputs`


class AttemptState(StrEnum):
    RUNNING = "running"  # under way: a row of its run, written here when it ends
    COMMITTED = "committed"  # its result counts
    FAILED = "failed"  # ended with a known error
    LOST = "lost"  # its worker went quiet and the lease ran out
    SUPERSEDED = "superseded"  # it came back too late and was refused


class WaitState(StrEnum):
    WAITING = "waiting"
    RESOLVED = "resolved"  # by its events
    EXPIRED = "expired"  # its deadline came first
    CANCELLED = "cancelled"  # its run ended, or went on by a person's wish


class EventState(StrEnum):
    STORED = "stored"  # no wait has taken it
    MATCHED = "matched"
    LATE = "late"  # the wait that it would have fitted is over
    REJECTED = "rejected"  # authentic, but not of the shape that its source declares


RUN_TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    RunState.READY: frozenset({RunState.RUNNING, RunState.HELD, RunState.CANCELLED}),
    RunState.RUNNING: frozenset(
        {
            RunState.RUNNING,  # the next step at once, or a take-over after the lease ran out
            RunState.READY,  # a retry, or handed back
            RunState.WAITING,
            RunState.HELD,
            RunState.COMPLETED,
            RunState.FAILED,
            RunState.CANCELLED,
        }
    ),
    RunState.WAITING: frozenset({RunState.READY, RunState.HELD, RunState.CANCELLED}),
    RunState.HELD: frozenset({RunState.READY, RunState.FAILED, RunState.CANCELLED}),
    RunState.COMPLETED: frozenset(),
    RunState.FAILED: frozenset(),
    RunState.CANCELLED: frozenset(),
}

ATTEMPT_TRANSITIONS: dict[AttemptState, frozenset[AttemptState]] = {
    AttemptState.RUNNING: frozenset(
        {AttemptState.COMMITTED, AttemptState.FAILED, AttemptState.LOST, AttemptState.SUPERSEDED}
    ),
    AttemptState.COMMITTED: frozenset(),
    AttemptState.FAILED: frozenset(),
    AttemptState.LOST: frozenset({AttemptState.SUPERSEDED}),
    AttemptState.SUPERSEDED: frozenset(),
}

WAIT_TRANSITIONS: dict[WaitState, frozenset[WaitState]] = {
    WaitState.WAITING: frozenset({WaitState.RESOLVED, WaitState.EXPIRED, WaitState.CANCELLED}),
    WaitState.RESOLVED: frozenset(),
    WaitState.EXPIRED: frozenset(),
    WaitState.CANCELLED: frozenset(),
}

EVENT_TRANSITIONS: dict[EventState, frozenset[EventState]] = {
    EventState.STORED: frozenset({EventState.MATCHED}),
    EventState.MATCHED: frozenset(),
    EventState.LATE: frozenset({EventState.MATCHED}),
    # A replay after its source's paths were mended.
    EventState.REJECTED: frozenset({EventState.STORED, EventState.MATCHED, EventState.LATE}),
}

State = TypeVar("State", RunState, AttemptState, WaitState, EventState)


def ensure_legal(transitions: dict[State, frozenset[State]], current: State, target: State) -> None:
    """Raise `IllegalTransition` unless `target` may follow `current`: a bug, never a race."""
    if target not in transitions[current]:
        raise IllegalTransition(f"{type(current).__name__} {current} may not become {target}")
