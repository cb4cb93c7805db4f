"""When a run that waits for the runs it started goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from workflows.core.states import RunState


class JoinPolicy(StrEnum):
    ALL = "all"  # when all have ended, whatever their end
    FIRST = "first"  # with the first that completed; fails when all ended without one
    ANY_FAILURE = "any_failure"  # when all completed; fails as soon as one did not
    EVERY = "every"  # a parallel group: when all have ended; fails then if one did not complete


class Joined(StrEnum):
    NOT_YET = "not_yet"
    GO_ON = "go_on"
    FAIL = "fail"


@dataclass(frozen=True)
class Ends:
    """How many of the started runs are where."""

    completed: int = 0
    failed: int = 0  # or cancelled
    held: int = 0
    at_work: int = 0  # ready, running or waiting
    queued: int = 0  # not begun: so many at once are not allowed

    @property
    def unfinished(self) -> int:
        return self.held + self.at_work + self.queued

    @property
    def total(self) -> int:
        return self.unfinished + self.completed + self.failed


def ends_of(counts: Mapping[tuple[str, bool], int]) -> Ends:
    """Sum up counts by (state, whether it waits for its turn)."""

    def of(*states: RunState) -> int:
        return sum(
            number for (state, queued), number in counts.items() if state in states and not queued
        )

    return Ends(
        completed=of(RunState.COMPLETED),
        failed=of(RunState.FAILED, RunState.CANCELLED),
        held=of(RunState.HELD),
        at_work=of(RunState.READY, RunState.RUNNING, RunState.WAITING),
        queued=sum(number for (_, queued), number in counts.items() if queued),
    )


def join(policy: JoinPolicy, ends: Ends) -> Joined:
    """Say whether the run that waits goes on, fails or waits on."""
    over = ends.unfinished == 0
    match policy:
        case JoinPolicy.ALL:
            return Joined.GO_ON if over else Joined.NOT_YET
        case JoinPolicy.FIRST:
            if ends.completed:
                return Joined.GO_ON
            return Joined.FAIL if over else Joined.NOT_YET
        case JoinPolicy.ANY_FAILURE:
            if ends.failed:
                return Joined.FAIL
            return Joined.GO_ON if over else Joined.NOT_YET
        case JoinPolicy.EVERY:
            if not over:
                return Joined.NOT_YET
            return Joined.FAIL if ends.failed else Joined.GO_ON


def may_begin(ends: Ends, at_once: int | None) -> int:
    """Return how many of the queued runs may begin now. A held one takes up no place."""
    if at_once is None:
        return ends.queued
    return max(0, min(ends.queued, at_once - ends.at_work))


def waiting_for(ends: Ends) -> str:
    """Say for people what is waited for."""
    ended = ends.completed + ends.failed
    parts = [f"{ended:,} of {ends.total:,} runs that it started have ended"]
    if ends.held:
        parts.append(f"{ends.held:,} held for a person")
    if ends.queued:
        parts.append(f"{ends.queued:,} wait for their turn")
    return "; ".join(parts) + "."
