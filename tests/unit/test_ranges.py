"""How far back a page looks, in slices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from workflows.core.ranges import DAY, HOUR, MONTH, WEEK, Range, range_of

NOW = datetime(2026, 3, 10, 3, 12, 40, tzinfo=UTC)
ALL = (HOUR, DAY, WEEK, MONTH)


@pytest.mark.parametrize("back", ALL)
def test_slices_follow_each_other_up_to_the_one_under_way(back: Range) -> None:
    starts = back.starts(NOW)
    assert len(starts) == back.slices
    assert {after - before for before, after in pairwise(starts)} == {back.slice}
    assert starts[-1] <= NOW < starts[-1] + back.slice


@pytest.mark.parametrize(
    ("back", "first", "last"),
    [
        (HOUR, "2026-03-10 02:15", "2026-03-10 03:10"),
        (DAY, "2026-03-09 04:00", "2026-03-10 03:00"),
        (WEEK, "2026-03-03 06:00", "2026-03-10 00:00"),
        (MONTH, "2026-02-09 00:00", "2026-03-10 00:00"),
    ],
)
def test_slices_begin_on_the_clock(back: Range, first: str, last: str) -> None:
    starts = back.starts(NOW)
    assert (f"{starts[0]:%Y-%m-%d %H:%M}", f"{starts[-1]:%Y-%m-%d %H:%M}") == (first, last)


def test_an_address_names_one_or_the_usual_one() -> None:
    assert range_of("7d", ALL, DAY) is WEEK
    assert range_of("7d", (HOUR, DAY), DAY) is DAY
    assert range_of("", ALL, DAY) is DAY


def test_lengths_are_as_they_are_called() -> None:
    assert [back.length for back in ALL] == [
        timedelta(hours=1),
        timedelta(days=1),
        timedelta(days=7),
        timedelta(days=30),
    ]
