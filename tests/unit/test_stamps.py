"""What a poll has seen is over where its times would be told otherwise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from workflows.selectors.stamps import Stamp
from workflows.views.requests import Seen

EVENING = datetime(2026, 3, 10, 22, 30, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")  # there it is an hour later


def stamp(now: datetime, zone: tzinfo, rows: str = "rows") -> Stamp:
    return Stamp(now, rows).read_in(zone)


def seen(zone: tzinfo, rows: str = "rows") -> Seen:
    return Seen.of(stamp(EVENING, zone, rows), EVENING + timedelta(days=2), "shown")


def test_the_same_rows_on_the_same_day_are_the_same() -> None:
    assert seen(BERLIN).is_of(stamp(EVENING + timedelta(minutes=29), BERLIN))


def test_at_midnight_of_the_reader_they_are_not() -> None:
    later = EVENING + timedelta(minutes=30)
    assert not seen(BERLIN).is_of(stamp(later, BERLIN))
    assert seen(ZoneInfo("UTC")).is_of(stamp(later, ZoneInfo("UTC")))


def test_in_another_zone_they_are_not() -> None:
    assert not seen(ZoneInfo("Europe/Paris")).is_of(stamp(EVENING, BERLIN))


def test_what_moves_by_itself_is_shown_anew_in_another_zone() -> None:
    assert seen(BERLIN, "").shows(seen(BERLIN, ""))
    assert not seen(ZoneInfo("Europe/Paris"), "").shows(seen(BERLIN, ""))
