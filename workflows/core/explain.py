"""Why a run is not finished: one sentence, what would move it, and who owns it (promise P12)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from workflows.core.states import RunState


class Cause(StrEnum):
    FINISHED = "finished"
    HELD = "held"
    SETTLING = "settling"  # a write's outcome is being found out
    PAUSED = "paused"  # dispatch is not on
    LEASED = "leased"  # a worker is on it
    LEASE_EXPIRED = "lease_expired"
    RETRY = "retry"
    NO_WORKER = "no_worker"  # nobody alive has this workflow and version
    BACKLOG = "backlog"


@dataclass(frozen=True)
class RunFacts:
    """What is known about a run that is looked at. Times are the database's."""

    state: RunState
    step: str
    number: int  # of the step, from 1
    steps: int
    workflow: str
    version: int
    ready_at: datetime
    lease_expires_at: datetime | None
    worker: str
    failure: str
    attempts: int
    workers_with_version: int
    workers_alive: int
    ahead: int  # runs that are ready and were so before this one
    waits_for: str = ""  # filled by whoever parked the run: what would move it
    paused: bool = False
    owner: str = ""


@dataclass(frozen=True)
class Explanation:
    cause: Cause
    sentence: str
    moves: str  # what would move it
    owner: str


def explain(facts: RunFacts, now: datetime) -> Explanation:
    """Return why the run is where it is at `now`, the database's time."""
    at = f"at step {facts.number} of {facts.steps}, {facts.step}"
    match facts.state:
        case RunState.COMPLETED:
            return Explanation(Cause.FINISHED, "Every step is committed.", "Nothing is needed.", "")
        case RunState.FAILED:
            return Explanation(
                Cause.FINISHED, f"It failed {at}: {facts.failure}", "Start a new run.", facts.owner
            )
        case RunState.CANCELLED:
            return Explanation(Cause.FINISHED, f"It was cancelled {at}.", "Nothing is needed.", "")
        case RunState.HELD:
            return Explanation(
                Cause.HELD,
                f"It is held {at}. {facts.failure or facts.waits_for}".strip(),
                "A recorded decision. Waiting longer or restarting workers will not help.",
                facts.owner or "nobody: no queue takes it, an administrator must set one up",
            )
        case RunState.WAITING:
            return waiting(facts, at)
        case RunState.RUNNING:
            return running(facts, at, now)
        case RunState.READY:
            return ready(facts, at, now)


def waiting(facts: RunFacts, at: str) -> Explanation:
    if facts.paused:
        return Explanation(
            Cause.PAUSED, f"It waits {at}: {facts.waits_for}", "Turning dispatch on.", facts.owner
        )
    return Explanation(
        Cause.SETTLING,
        f"It waits {at}: {facts.waits_for or 'the outcome of its write is being found out'}",
        "The provider's answer, or a decision.",
        facts.owner or "Romulus",
    )


def running(facts: RunFacts, at: str, now: datetime) -> Explanation:
    assert facts.lease_expires_at is not None  # the table's own constraint
    if facts.lease_expires_at > now:
        return Explanation(
            Cause.LEASED,
            f"Worker {facts.worker} is on it {at}, try {facts.attempts}.",
            "Nothing is needed.",
            facts.worker,
        )
    if not facts.workers_with_version:
        return no_worker(facts, f"Worker {facts.worker} went quiet {at}")
    return Explanation(
        Cause.LEASE_EXPIRED,
        f"Worker {facts.worker} went quiet {at}; its lease has expired.",
        "The next sweep gives it to another worker.",
        "Romulus",
    )


def ready(facts: RunFacts, at: str, now: datetime) -> Explanation:
    if not facts.workers_with_version:
        return no_worker(facts, f"It is ready {at}")
    if facts.ready_at > now:
        seconds = round((facts.ready_at - now).total_seconds())
        return Explanation(
            Cause.RETRY,
            f"Try {facts.attempts + 1} is due in {seconds} s {at}. {facts.failure}".strip(),
            "Time.",
            "Romulus",
        )
    ahead = {0: "it is the next", 1: "1 run is ahead of it"}.get(
        facts.ahead, f"{facts.ahead:,} runs are ahead of it"
    )
    return Explanation(
        Cause.BACKLOG,
        f"It is ready {at}; {ahead}.",
        f"A free worker; {facts.workers_with_version} have this version.",
        "Romulus",
    )


def no_worker(facts: RunFacts, where: str) -> Explanation:
    return Explanation(
        Cause.NO_WORKER,
        f"{where}, and none of the {facts.workers_alive} live workers "
        f"has {facts.workflow} version {facts.version}.",
        f"Starting a worker that has {facts.workflow} version {facts.version}.",
        "whoever runs the workers",
    )
