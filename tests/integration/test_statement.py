"""What a hot statement sends is what the server gets, and what it gives goes back as it came."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from workflows.sql import fetch_of
from workflows.sql.statement import Statement

pytestmark = pytest.mark.django_db

GIVEN = Statement("given", "SELECT %(now)s AS now, timestamptz_send(%(now)s) AS sent")
SAME = Statement("same", "SELECT %(now)s = %(soon)s AS same")


@pytest.mark.parametrize(
    "at",
    [
        datetime(2026, 11, 29, 3, 4, 5, 678_901, tzinfo=UTC),
        datetime(2026, 11, 29, 3, 4, tzinfo=timezone(timedelta(hours=5, minutes=45))),
        datetime(2000, 1, 1, tzinfo=UTC),
        datetime(1999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ],
)
def test_a_moment_is_kept_to_the_microsecond(at: datetime) -> None:
    (row,) = fetch_of(GIVEN, {"now": at})
    assert row["now"] == at
    assert fetch_of(SAME, {"now": at, "soon": row["sent"]}) == [{"same": True}]


def test_a_moment_without_its_zone_is_refused() -> None:
    with pytest.raises(TypeError):
        fetch_of(GIVEN, {"now": datetime(2026, 11, 29)})  # noqa: DTZ001 (that it has none)
