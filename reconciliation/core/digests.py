"""When a person's digest is due: each day or week at a local time. Pure: takes `now`."""

from __future__ import annotations

from datetime import datetime, time
from enum import StrEnum
from zoneinfo import ZoneInfo

from reconciliation.core.rota import DAY, instant


class Every(StrEnum):
    DAY = "day"
    WEEK = "week"  # on Mondays


WEEK_DAYS = 7


def next_digest(every: Every, at: time, zone: str, now: datetime) -> datetime:
    """The first moment after `now` at which clocks of `zone` show `at`, on a Monday for weeks."""
    local = ZoneInfo(zone)
    today = now.astimezone(local).date()
    days = (today + DAY * number for number in range(WEEK_DAYS + 1))
    wanted = [day for day in days if every is Every.DAY or day.weekday() == 0]
    moments = (instant(day, at, local) for day in wanted)
    return next(moment for moment in moments if moment > now)
