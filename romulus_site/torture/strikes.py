"""What fell, and when, in the database's time: the only excuse that the checks take. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

Target = Literal["worker", "database", "destination", "look-ups"]

# From a cut until every process has noticed: a statement that was under way, a connection that
# is tried at its next use.
AFTERMATH = timedelta(seconds=1)


@dataclass(frozen=True)
class Strike:
    """One blow that fell.

    Attributes:
        pid: of the worker that was struck.
        until: when it was over; the death of a process never is.
    """

    target: Target
    what: str
    at: datetime
    until: datetime | None
    pid: int | None = None

    def meets(self, began: datetime, ended: datetime, aftermath: timedelta) -> bool:
        """Whether it fell, or had not worn off, between the two times."""
        over = self.until is not None and self.until + aftermath < began
        return self.at <= ended and not over


@dataclass(frozen=True)
class Strikes:
    """All that fell; the questions that checks ask of it."""

    all: tuple[Strike, ...]
    lease: timedelta

    def on_worker(self, pid: int | None, began: datetime, ended: datetime) -> bool:
        """Whether something fell that can take a run from this worker between the times."""
        return any(
            each.meets(began, ended, self.lease + AFTERMATH)
            for each in self.all
            if each.target == "database" or (each.target == "worker" and each.pid == pid)
        )

    def on_destination(self, began: datetime, ended: datetime) -> bool:
        return self._on("destination", began, ended)

    def on_look_ups(self, began: datetime, ended: datetime) -> bool:
        return self._on("look-ups", began, ended) or self.on_destination(began, ended)

    def _on(self, target: Target, began: datetime, ended: datetime) -> bool:
        return any(
            each.meets(began, ended, AFTERMATH) for each in self.all if each.target == target
        )


def strikes_of(all: Iterable[Strike], lease: float) -> Strikes:
    return Strikes(tuple(all), timedelta(seconds=lease))
