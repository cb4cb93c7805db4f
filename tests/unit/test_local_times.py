"""Times by a person's own clocks: which moment they are, and which they are not."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from reconciliation.core.local_times import moment_at, zone_said

BERLIN, KATHMANDU, ADAK = map(ZoneInfo, ("Europe/Berlin", "Asia/Kathmandu", "America/Adak"))


@pytest.mark.parametrize(
    ("typed", "zone", "moment"),
    [
        ("2026-03-10T18:00", ZoneInfo("UTC"), "2026-03-10T18:00"),
        ("2026-03-10T18:00", BERLIN, "2026-03-10T17:00"),
        ("2026-03-10T18:00", KATHMANDU, "2026-03-10T12:15"),
        ("2026-03-29T01:59", BERLIN, "2026-03-29T00:59"),
        ("2026-03-29T03:00", BERLIN, "2026-03-29T01:00"),
        ("2026-10-25T01:59", BERLIN, "2026-10-24T23:59"),
        ("2026-10-25T03:00", BERLIN, "2026-10-25T02:00"),
    ],
)
def test_a_time_is_the_moment_at_which_the_clocks_show_it(
    typed: str, zone: ZoneInfo, moment: str
) -> None:
    found = moment_at(datetime.fromisoformat(typed), zone)
    assert (found.isoformat()[:16], found.tzinfo) == (moment, UTC)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("2026-03-29T02:00", "put forward then, and never show 02:00 on 29 Mar 2026"),
        ("2026-03-29T02:59", "put forward then, and never show 02:59 on 29 Mar 2026"),
        ("2026-10-25T02:00", "put back then, and show 02:00 on 25 Oct 2026 twice"),
        ("2026-10-25T02:59", "put back then, and show 02:59 on 25 Oct 2026 twice"),
    ],
)
def test_a_time_that_never_comes_or_twice_is_no_moment(typed: str, says: str) -> None:
    with pytest.raises(ValueError, match=f"The clocks of Europe/Berlin are {says}"):
        moment_at(datetime.fromisoformat(typed), BERLIN)


@pytest.mark.parametrize(
    ("typed", "zone"), [("0001-01-01T00:00", KATHMANDU), ("9999-12-31T23:59", ADAK)]
)
def test_what_is_beyond_the_calendar_is_told(typed: str, zone: ZoneInfo) -> None:
    with pytest.raises(OverflowError):
        moment_at(datetime.fromisoformat(typed), zone)


def test_a_zone_is_said_with_how_far_it_is_ahead() -> None:
    winter, summer = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)
    assert [zone_said(BERLIN, now) for now in (winter, summer)] == [
        "Europe/Berlin, now UTC+01:00",
        "Europe/Berlin, now UTC+02:00",
    ]
    assert zone_said(ADAK, winter) == "America/Adak, now UTC-10:00"
    assert {zone_said(zone, winter) for zone in (None, UTC, ZoneInfo("UTC"))} == {"UTC"}
