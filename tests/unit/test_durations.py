"""When a length of time is said otherwise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from workflows.core.durations import age, changes_at

SINCE = datetime(2026, 3, 9, 3, 0, 12, 345678, tzinfo=UTC)
AN_INSTANT = timedelta(microseconds=1)
LENGTHS = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=400))


@given(LENGTHS)
def test_an_age_is_said_alike_until_it_changes(length: timedelta) -> None:
    now = SINCE + length
    then = changes_at(SINCE, now)
    assert then > now
    assert age(then - AN_INSTANT - SINCE) == age(length)
    assert age(then - SINCE) != age(length)


@given(LENGTHS)
def test_what_is_still_to_begin_is_looked_at_again_in_time(length: timedelta) -> None:
    now = SINCE - length - AN_INSTANT
    assert now < changes_at(SINCE, now) <= SINCE + timedelta(seconds=1)
