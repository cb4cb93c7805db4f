"""The figures of the overview, worked out of rows: pure, no Django, no clock of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
# Up to, and what that is called; the last has no end.
AGES = (
    (15 * MINUTE, "<15 m"),
    (HOUR, "15-60 m"),
    (4 * HOUR, "1-4 h"),
    (12 * HOUR, "4-12 h"),
    (24 * HOUR, "12-24 h"),
    (None, ">24 h"),
)
LATENCIES = (
    (timedelta(seconds=10), "<10 s"),
    (MINUTE, "10-60 s"),
    (5 * MINUTE, "1-5 m"),
    (15 * MINUTE, "5-15 m"),
    (HOUR, "15-60 m"),
    (None, ">1 h"),
)
MOST_SENDS = 4  # so many, or more, are one bar


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of one operation.

    Attributes:
        sends: of which anything may have left.
        latency: seconds for which its outcome was not known, from when the first send ended without
            a usable answer; None where it always was known, or still is not.
        by_person: a person decided about it.
    """

    sends: int
    latency: float | None
    settled: bool
    by_person: bool


@dataclass(frozen=True, slots=True)
class Sums:
    """What a stretch of operations came to.

    Attributes:
        by_sends: how many took one send, two, three, and `MOST_SENDS` or more.
        settled, unaided: how many are settled, and of these, how many without a person's decision.
        latencies: how long outcomes were not known, ascending.
    """

    sent: int
    sends: int
    by_sends: tuple[int, ...]
    settled: int
    unaided: int
    latencies: tuple[timedelta, ...]

    @property
    def sends_each(self) -> float | None:
        return self.sends / self.sent if self.sent else None

    @property
    def unaided_share(self) -> float | None:
        return self.unaided / self.settled if self.settled else None


def sums_of(rows: Iterable[Sent]) -> Sums:
    seen = list(rows)
    sent = [row for row in seen if row.sends]
    settled = [row for row in seen if row.settled]
    by_sends = [0] * MOST_SENDS
    for row in sent:
        by_sends[min(row.sends, MOST_SENDS) - 1] += 1
    return Sums(
        sent=len(sent),
        sends=sum(row.sends for row in sent),
        by_sends=tuple(by_sends),
        settled=len(settled),
        unaided=sum(not row.by_person for row in settled),
        latencies=tuple(
            timedelta(seconds=max(length, 0.0))
            for length in sorted(row.latency for row in seen if row.latency is not None)
        ),
    )


def within(lengths: Sequence[timedelta], share: float) -> timedelta | None:
    """The length that `share` of the ascending `lengths` do not exceed; None of none."""
    if not lengths:
        return None
    return lengths[min(int(len(lengths) * share), len(lengths) - 1)]


def place_of(length: timedelta, bounds: Sequence[tuple[timedelta | None, str]]) -> int:
    """Which of `bounds` holds `length`; the last one has no end."""
    return next(place for place, (bound, _) in enumerate(bounds) if bound is None or length < bound)
