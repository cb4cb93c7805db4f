"""What is known about a run when it is explained or to be stopped, and the form of what is said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from workflows.core.joining import Ends
from workflows.core.states import RunState
from workflows.core.wait_facts import WaitFacts

# Sweeps come by each second. After so many without one something is wrong, but not before a lease
# is over: workers write down only a few times within a lease that they have swept.
SWEEPS_UNTIL_BEHIND = 5


class Cause(StrEnum):
    FINISHED = "finished"
    CANCELLING = "cancelling"  # its end was asked for, and something is settled first
    HELD = "held"
    RUN_PAUSED = "run_paused"
    PAUSED = "paused"  # its workflow, its tenant, or both together
    DISPATCH = "dispatch"  # nothing is sent to its provider
    SETTLING = "settling"  # a write's outcome is being found out
    WAITING = "waiting"
    SLEEPING = "sleeping"
    EVENT = "event"  # what it waits for has not come
    ARRIVED = "arrived"  # it came, and is not given to the run yet
    AMBIGUOUS = "ambiguous"  # it came, and other waits could take it too
    CHILDREN = "children"  # waits for runs that it started
    TURN = "turn"  # so many runs at once are not allowed beside it
    LEASED = "leased"  # a worker is on it
    LEASE_EXPIRED = "lease_expired"
    RETRY = "retry"
    NO_WORKER = "no_worker"  # nobody alive has this workflow and version
    BROKER_AWAY = "broker_away"
    SWEEP_BEHIND = "sweep_behind"
    BACKLOG = "backlog"


@dataclass(frozen=True)
class Explanation:
    """Why a run is where it is, what would move it, and who owns that.

    `facts` are those that the sentence rests on, by name: text, numbers, times and lists of them.
    """

    cause: Cause
    sentence: str
    moves: str
    owner: str
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Stop:
    """A pause, or a wish for the end: whose, since when, and why where that is known."""

    by: str
    at: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True)
class WholePause:
    """A pause of more than one run. `what` is "workflow refund", "tenant Northwind" or both."""

    what: str
    stop: Stop


@dataclass(frozen=True, slots=True)
class WorkerSeen:
    """A live worker process, and what it has written down of itself."""

    name: str
    workflows: frozenset[tuple[str, int]]
    started_at: datetime
    swept_at: datetime | None = None
    broker_away_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class HeldChild:
    """A run that this one waits for, and that waits for a person."""

    id: str
    name: str
    message: str = ""


@dataclass(frozen=True)
class RunFacts:
    """What is known about a run that is looked at. Times are the database's.

    Attributes:
        number, steps: the step's place among those that the run can pass, from 1; 0 when its
            workflow has it no more.
        reason, message: why it waits, is held, failed or is tried again.
        tries, losses: of this step and visit; losses are those whose worker went quiet.
        workers: those that are alive.
        ahead: runs that are ready, may be taken, and were so before this one.
        cancel, pause: what somebody wished for this very run.
        pauses: of its workflow and its tenant, the most specific first.
        unsettled: what is to be settled before the run may end by somebody's wish.
        children: of the present step, where it waits for runs that it started.
        beside: of a run that waits for its turn: those that were started with it, itself included.
        at_once: how many of those may be at work at a time.
        wait: of the present step and visit, where it waits, or waited, for events.
        owner, helps: who moves it and what would, where another app knows better.
    """

    state: RunState
    step: str
    number: int
    steps: int
    workflow: str
    version: int
    ready_at: datetime
    visit: int = 1
    wake_at: datetime | None = None
    claimed_at: datetime | None = None
    lease_expires_at: datetime | None = None
    worker: str = ""
    reason: str = ""
    message: str = ""
    tries: int = 0
    losses: int = 0
    workers: tuple[WorkerSeen, ...] = ()
    ahead: int = 0
    cancel: Stop | None = None
    pause: Stop | None = None
    pauses: tuple[WholePause, ...] = ()
    unsettled: str = ""
    children: Ends | None = None
    held_children: tuple[HeldChild, ...] = ()
    beside: Ends | None = None
    at_once: int | None = None
    wait: WaitFacts | None = None
    sweep: timedelta = timedelta(seconds=1)
    lease: timedelta = timedelta(seconds=15)
    owner: str = ""
    helps: str = ""

    @property
    def able(self) -> tuple[WorkerSeen, ...]:
        """The live workers that have this version."""
        pair = (self.workflow, self.version)
        return tuple(worker for worker in self.workers if pair in worker.workflows)

    @property
    def place(self) -> str:
        """Where it is, in a sentence: "at step 2 of 3, create_refund"."""
        number = f"{self.number} of {self.steps}, " if self.number else ""
        again = f", visit {self.visit}" if self.visit > 1 else ""
        return f"at step {number}{self.step}{again}"

    def lease_ran_out(self, now: datetime) -> bool:
        """Whether its worker went quiet, so that another one may take over."""
        return self.lease_expires_at is not None and self.lease_expires_at <= now

    @property
    def behind_after(self) -> timedelta:
        """How long nobody may have swept before the sweep is said to be behind."""
        return max(self.sweep * SWEEPS_UNTIL_BEHIND, self.lease)


def swept_last(workers: Iterable[WorkerSeen]) -> datetime | None:
    """When one of `workers` swept last. One that has not yet is given its time from its start."""
    return max((worker.swept_at or worker.started_at for worker in workers), default=None)
