"""Who is on call: local clocks, weeks, nights, certain dates, and the nights clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest

from reconciliation.core.digests import Every, next_digest
from reconciliation.core.rota import Dated, Rota, Weekly, changes_at, on_call

ADA, BEN, CLEO = 1, 2, 3
ALL_DAYS = frozenset(range(7))
BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def weekly(person: int, starts: str, ends: str, zone: str = "UTC", days: str = "0123456") -> Weekly:
    return Weekly(
        person,
        frozenset(map(int, days)),
        time.fromisoformat(starts),
        time.fromisoformat(ends),
        zone,
    )


DAY_AND_NIGHT = Rota((weekly(ADA, "08:00", "20:00", BERLIN), weekly(BEN, "20:00", "08:00", BERLIN)))
WEEKDAYS = Rota((weekly(ADA, "09:00", "17:00", days="01234"),))
WHOLE_SUNDAY = Rota((weekly(CLEO, "00:00", "00:00", NEW_YORK, days="6"),))
# The clocks of Berlin go from 02:00 to 03:00 on 29 March 2026, and from 03:00 to 02:00 on
# 25 October: shifts that meet at 02:30 meet at a time that is not there, or there twice.
MEET_AT_HALF_PAST_TWO = Rota(
    (weekly(ADA, "14:30", "02:30", BERLIN), weekly(BEN, "02:30", "14:30", BERLIN))
)


@pytest.mark.parametrize(
    ("rota", "now", "people"),
    [
        (Rota(), "2026-03-10 03:12", ()),
        (WEEKDAYS, "2026-03-10 08:59", ()),  # a Tuesday
        (WEEKDAYS, "2026-03-10 09:00", (ADA,)),
        (WEEKDAYS, "2026-03-10 16:59", (ADA,)),
        (WEEKDAYS, "2026-03-10 17:00", ()),
        (WEEKDAYS, "2026-03-14 12:00", ()),  # a Saturday
        # Winter in Berlin is UTC+1, summer UTC+2.
        (DAY_AND_NIGHT, "2026-03-10 06:59", (BEN,)),
        (DAY_AND_NIGHT, "2026-03-10 07:00", (ADA,)),
        (DAY_AND_NIGHT, "2026-07-10 05:59", (BEN,)),
        (DAY_AND_NIGHT, "2026-07-10 06:00", (ADA,)),
        (DAY_AND_NIGHT, "2026-07-10 18:00", (BEN,)),
        # The night in which the clocks go forward is an hour shorter, back an hour longer.
        (DAY_AND_NIGHT, "2026-03-28 19:00", (BEN,)),
        (DAY_AND_NIGHT, "2026-03-29 05:59", (BEN,)),
        (DAY_AND_NIGHT, "2026-03-29 06:00", (ADA,)),
        (DAY_AND_NIGHT, "2026-10-25 06:59", (BEN,)),
        (DAY_AND_NIGHT, "2026-10-25 07:00", (ADA,)),
        (MEET_AT_HALF_PAST_TWO, "2026-03-29 01:29", (ADA,)),
        (MEET_AT_HALF_PAST_TWO, "2026-03-29 01:30", (BEN,)),
        (MEET_AT_HALF_PAST_TWO, "2026-10-25 00:29", (ADA,)),
        (MEET_AT_HALF_PAST_TWO, "2026-10-25 00:30", (BEN,)),
        # From midnight to midnight is a whole day, by the clocks of its zone.
        (WHOLE_SUNDAY, "2026-03-08 04:59", ()),
        (WHOLE_SUNDAY, "2026-03-08 05:00", (CLEO,)),  # the day on which clocks go forward there
        (WHOLE_SUNDAY, "2026-03-09 03:59", (CLEO,)),
        (WHOLE_SUNDAY, "2026-03-09 04:00", ()),
        # A date that is named counts instead of the week.
        (
            Rota(WEEKDAYS.weekly, (Dated(CLEO, at("2026-03-10 12:00"), at("2026-03-10 13:00")),)),
            "2026-03-10 12:30",
            (CLEO,),
        ),
        (
            Rota(WEEKDAYS.weekly, (Dated(CLEO, at("2026-03-10 12:00"), at("2026-03-10 13:00")),)),
            "2026-03-10 13:00",
            (ADA,),
        ),
        # Two at once, each once.
        (
            Rota((weekly(ADA, "00:00", "12:00"), weekly(BEN, "00:00", "12:00"), *WEEKDAYS.weekly)),
            "2026-03-10 10:00",
            (ADA, BEN),
        ),
    ],
)
def test_who_is_on_call(rota: Rota, now: str, people: tuple[int, ...]) -> None:
    assert on_call(rota, at(now)) == people


@pytest.mark.parametrize("zone", [BERLIN, NEW_YORK, LORD_HOWE, "Asia/Kathmandu", "UTC"])
@pytest.mark.parametrize("meeting", ["00:00", "01:30", "02:00", "02:30", "03:00"])
def test_where_shifts_meet_there_is_always_exactly_one(zone: str, meeting: str) -> None:
    rota = Rota((weekly(ADA, meeting, "14:15", zone), weekly(BEN, "14:15", meeting, zone)))
    for start in (
        "2026-03-07",
        "2026-03-28",
        "2026-04-04",
        "2026-10-03",
        "2026-10-24",
        "2026-10-31",
    ):
        now = at(start)
        for _ in range(3 * 24 * 4):
            assert len(on_call(rota, now)) == 1, now
            now += timedelta(minutes=15)


@pytest.mark.parametrize(
    ("rota", "now", "change"),
    [
        (Rota(), "2026-03-10 03:12", None),
        (WEEKDAYS, "2026-03-13 18:00", "2026-03-16 09:00"),  # over the weekend
        (DAY_AND_NIGHT, "2026-03-29 00:00", "2026-03-29 06:00"),
        (Rota((weekly(ADA, "08:00", "08:00"),)), "2026-03-10 10:00", None),  # always Ada
        (
            Rota((), (Dated(ADA, at("2026-03-12 00:00"), at("2026-03-13 00:00")),)),
            "2026-03-10 00:00",
            "2026-03-12 00:00",
        ),
    ],
)
def test_when_it_changes(rota: Rota, now: str, change: str | None) -> None:
    assert changes_at(rota, at(now)) == (at(change) if change else None)


@pytest.mark.parametrize(
    ("every", "zone", "now", "due"),
    [
        (Every.DAY, "UTC", "2026-03-10 07:59", "2026-03-10 08:00"),
        (Every.DAY, "UTC", "2026-03-10 08:00", "2026-03-11 08:00"),
        (Every.DAY, BERLIN, "2026-03-28 12:00", "2026-03-29 06:00"),
        (Every.WEEK, "UTC", "2026-03-09 07:00", "2026-03-09 08:00"),  # a Monday
        (Every.WEEK, "UTC", "2026-03-09 08:00", "2026-03-16 08:00"),
        (Every.WEEK, NEW_YORK, "2026-03-10 00:00", "2026-03-16 12:00"),
    ],
)
def test_when_a_digest_is_due(every: Every, zone: str, now: str, due: str) -> None:
    assert next_digest(every, time(8), zone, at(now)) == at(due)
