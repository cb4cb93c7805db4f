"""What became of many runs that were to move, or would: the same told once, with those it is of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from workflows.core.standing import Moves, Stays
from workflows.core.states import RunState


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one run, or would; where it stood before."""

    run: UUID
    version: int
    step: str
    state: RunState
    answer: Moves | Stays


@dataclass(slots=True)
class Moving:
    """Runs that go from one step to the same other."""

    version: int
    step: str
    to_step: str
    runs: list[UUID] = field(default_factory=list)


@dataclass(slots=True)
class Staying:
    """Runs that stay at one step for the same reason; `runs` has what concerns each alone."""

    version: int
    step: str
    why: Stays
    runs: dict[UUID, str] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """Runs in groups, each in the order in which its first was met."""

    moving: dict[tuple[int, str, str], Moving] = field(default_factory=dict)
    staying: dict[tuple[int, str, str, str], Staying] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        version, step, answer = outcome.version, outcome.step, outcome.answer
        if isinstance(answer, Moves):
            group = self.moving.setdefault(
                (version, step, answer.step), Moving(version, step, answer.step)
            )
            group.runs.append(outcome.run)
            return
        stays = self.staying.setdefault(
            (version, step, answer.reason, answer.message), Staying(version, step, answer)
        )
        stays.runs[outcome.run] = answer.about

    @property
    def moved(self) -> int:
        return sum(len(group.runs) for group in self.moving.values())

    @property
    def stayed(self) -> int:
        return sum(len(group.runs) for group in self.staying.values())

    @property
    def looked_at(self) -> int:
        return self.moved + self.stayed


def tally_of(outcomes: Iterable[Outcome]) -> Tally:
    tally = Tally()
    for outcome in outcomes:
        tally.add(outcome)
    return tally
