"""Who answers for a queue at a given moment: its rota, by local clocks.

A shift is kept as people say it: these weekdays, from then to then, in a named zone. Whether it
covers a moment is asked of that zone's rules, so it follows the clocks when they change: a night
shift is an hour shorter or longer then, and where one person's shift ends as another's begins,
there is never nobody and never both. Pure: takes `now`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from zoneinfo import ZoneInfo

DAY = timedelta(days=1)
NOTHING = timedelta()
LOOK_AHEAD = timedelta(days=8)  # every weekly shift begins and ends in it


Span = tuple[datetime, datetime]
"""From when until when; the end does not belong to it."""


@dataclass(frozen=True)
class Weekly:
    """A shift of each week.

    Attributes:
        person: their ID.
        weekdays: on which it begins; Monday is 0.
        starts, ends: local times. One that ends no later than it starts ends on the next day.
        zone: of the IANA time zone database.
    """

    person: int
    weekdays: frozenset[int]
    starts: time
    ends: time
    zone: str

    @cached_property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.zone)

    def spans(self, first: date, days: int) -> Iterator[Span]:
        """When it begins and ends, of those that begin in `days` local days from `first` on."""
        for day in (first + DAY * number for number in range(days)):
            if day.weekday() in self.weekdays:
                last = day if self.ends > self.starts else day + DAY
                yield instant(day, self.starts, self._zone), instant(last, self.ends, self._zone)

    def around(self, now: datetime, ahead: timedelta = NOTHING) -> list[Span]:
        """Those that `now` may lie in, and those that begin within `ahead`."""
        yesterday = now.astimezone(self._zone).date() - DAY
        return list(self.spans(yesterday, 2 + ahead.days))


@dataclass(frozen=True)
class Dated:
    """A shift of certain dates: where one covers a moment, the weekly ones do not count."""

    person: int
    starts_at: datetime
    ends_at: datetime

    def around(self, _now: datetime, _ahead: timedelta = NOTHING) -> list[Span]:
        return [(self.starts_at, self.ends_at)]


@dataclass(frozen=True)
class Rota:
    weekly: tuple[Weekly, ...] = ()
    dated: tuple[Dated, ...] = ()


def instant(day: date, at: time, zone: ZoneInfo) -> datetime:
    """The moment at which a local clock shows `at` on `day`.

    Of a time that comes twice the first; a time that is left out counts as if the clocks had not
    been put forward yet. What matters is that the same words always mean the same moment.
    """
    return datetime.combine(day, at, tzinfo=zone).astimezone(UTC)


def covers(shift: Weekly | Dated, now: datetime) -> bool:
    return any(starts <= now < ends for starts, ends in shift.around(now))


def on_call(rota: Rota, now: datetime) -> tuple[int, ...]:
    """Who is on call at `now`, each person once; nobody where no shift covers it."""
    found = [shift.person for shift in rota.dated if covers(shift, now)]
    found = found or [shift.person for shift in rota.weekly if covers(shift, now)]
    return tuple(dict.fromkeys(found))


def changes_at(rota: Rota, now: datetime) -> datetime | None:
    """When somebody else is on call next; None when nobody else will be within a week."""
    shifts: tuple[Weekly | Dated, ...] = (*rota.dated, *rota.weekly)
    moments = sorted(
        moment
        for shift in shifts
        for span in shift.around(now, LOOK_AHEAD)
        for moment in span
        if moment > now
    )
    present = on_call(rota, now)
    return next((moment for moment in moments if on_call(rota, moment) != present), None)
