"""The figures of the overview, from rows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciliation.core.figures import AGES, Sent, place_of, sums_of, within


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def test_a_day_without_operations_has_no_shares() -> None:
    sums = sums_of([])
    assert (sums.sends_each, sums.unaided_share, within(sums.latencies, 0.5)) == (None, None, None)


def test_what_was_not_sent_counts_in_no_average() -> None:
    sums = sums_of([Sent(0, None, True, True), Sent(1, None, False, False)])
    assert (sums.sent, sums.sends, sums.sends_each) == (1, 1, 1.0)
    assert (sums.settled, sums.unaided, sums.unaided_share) == (1, 0, 0.0)


def test_four_sends_and_more_are_one_bar() -> None:
    sums = sums_of(Sent(sends, None, False, False) for sends in (1, 1, 2, 3, 4, 9))
    assert sums.by_sends == (2, 1, 1, 2)


def test_latencies_ascend_and_are_never_negative() -> None:
    rows = [Sent(1, length, True, False) for length in (30.0, None, -1.0)]
    assert sums_of(rows).latencies == (seconds(0), seconds(30))


@pytest.mark.parametrize(("share", "expected"), [(0.5, 51), (0.95, 96), (1.0, 100)])
def test_a_share_of_lengths_lies_within(share: float, expected: int) -> None:
    lengths = [seconds(number) for number in range(1, 101)]
    assert within(lengths, share) == seconds(expected)


@pytest.mark.parametrize(("minutes", "label"), [(0, "<15 m"), (15, "15-60 m"), (5000, ">24 h")])
def test_every_age_has_its_column(minutes: int, label: str) -> None:
    assert AGES[place_of(timedelta(minutes=minutes), AGES)][1] == label
