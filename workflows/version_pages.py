"""What the page of versions shows: filled by `selectors.versions`, read by
`templates/workflows/versions.html`. Plain data, as in `pages`.

`versions` answers `versions.html` with {"page": VersionsPage, "now"}. It is not polled: what would
move is looked at anew when somebody asks for the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class StateCount:
    state: str  # of runs
    runs: int


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version of a workflow.

    Attributes:
        states: its unfinished runs that the reader may see, by state.
        workers: the names of live workers that have it, as many as are shown.
        more_workers: how many there are besides.
        place: `latest` or `earlier`, of those that the console has; `gone`, an earlier one that
            it does not have; or `later`, one that it does not have yet.
    """

    workflow: str
    version: int
    states: Sequence[StateCount] = ()
    workers: Sequence[str] = ()
    more_workers: int = 0
    place: str = "latest"

    @property
    def runs(self) -> int:
        return sum(each.runs for each in self.states)

    @property
    def lies(self) -> bool:
        """Whether it has runs, and nobody who could take them."""
        return bool(self.runs) and not self.workers


@dataclass(frozen=True, slots=True)
class MoveRow:
    """Runs that would go, or stay, for the same reason; `examples` are some of them.

    Attributes:
        to_step: where they would go on; empty when they stay.
        message, helps: why they stay, and what would let them move.
    """

    version: int
    step: str
    runs: int
    examples: Sequence[UUID]
    to_step: str = ""
    message: str = ""
    helps: str = ""

    @property
    def moves(self) -> bool:
        return bool(self.to_step)


@dataclass(frozen=True, slots=True)
class WorkflowMoves:
    """What would become of the runs of earlier versions of one workflow.

    Attributes:
        to_version: the latest that the console has.
        earlier: how many of its runs are of an earlier version.
        looked_at: how many of those were looked at: the oldest of each version.
    """

    name: str
    to_version: int
    earlier: int
    rows: Sequence[MoveRow]

    @property
    def looked_at(self) -> int:
        return sum(row.runs for row in self.rows)

    @property
    def would_move(self) -> int:
        return sum(row.runs for row in self.rows if row.moves)

    @property
    def would_stay(self) -> int:
        return self.looked_at - self.would_move


@dataclass(frozen=True, slots=True)
class VersionsPage:
    """`moves` has the workflows that have runs of earlier versions, `versions` all of them."""

    moves: Sequence[WorkflowMoves] = ()
    versions: Sequence[VersionRow] = ()

    @property
    def earlier(self) -> int:
        return sum(each.earlier for each in self.moves)

    @property
    def looked_at(self) -> int:
        return sum(each.looked_at for each in self.moves)

    @property
    def would_move(self) -> int:
        return sum(each.would_move for each in self.moves)

    @property
    def would_stay(self) -> int:
        return self.looked_at - self.would_move

    @property
    def lying(self) -> Sequence[VersionRow]:
        """The versions whose runs wait because no live worker has them."""
        return [row for row in self.versions if row.lies]
