"""How far back a page looks, and into how many slices it cuts that time. Pure: takes `now`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Range:
    """Attributes:
    key: in an address.
    text, words: on a control, and in a sentence.
    slice, each: how long a part of a chart lasts, and what that is called.
    slices: how many there are.
    ticks: one of so many is labelled.
    """

    key: str
    text: str
    words: str
    slice: timedelta
    each: str
    slices: int
    ticks: int

    @property
    def length(self) -> timedelta:
        return self.slice * self.slices

    @property
    def days(self) -> bool:
        """A time of day does not tell its slices apart."""
        return self.length > timedelta(days=1)

    def starts(self, now: datetime) -> tuple[datetime, ...]:
        """When each slice begins, the earliest first; the last is under way at `now`."""
        last = now - (now - EPOCH) % self.slice
        return tuple(last - self.slice * back for back in reversed(range(self.slices)))


HOUR = Range("1h", "1 h", "hour", timedelta(minutes=5), "five minutes", 12, 3)
DAY = Range("24h", "24 h", "24 hours", timedelta(hours=1), "hour", 24, 6)
WEEK = Range("7d", "7 d", "7 days", timedelta(hours=6), "six hours", 28, 8)
MONTH = Range("30d", "30 d", "30 days", timedelta(days=1), "day, by UTC,", 30, 8)


def range_of(key: str, among: Sequence[Range], otherwise: Range) -> Range:
    """The one that an address names; what names none counts as not said."""
    return next((each for each in among if each.key == key), otherwise)
