"""How times and lengths of time are said to people: with the zone, in two units at most."""

from __future__ import annotations

from datetime import datetime, timedelta

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

# From here on seconds only flicker; below, the minutes alone would be off by too much.
SECONDS_UNTIL = timedelta(minutes=2)


def age(length: timedelta) -> str:
    """How long ago or how long still, rounded down: "3 h 7 min", "41 s"; never negative."""
    seconds = max(int(length.total_seconds()), 0)
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return _units((days, "d"), (hours, "h"))
    if hours:
        return _units((hours, "h"), (minutes, "min"))
    if length >= SECONDS_UNTIL:
        return f"{minutes} min"
    return _units((minutes, "min"), (seconds % 60, "s"))


def changes_at(since: datetime, now: datetime) -> datetime:
    """When the `age` of what began at `since` is said otherwise than at `now`; before that, not."""
    length = now - since
    unit = HOUR if length >= DAY else MINUTE if length >= SECONDS_UNTIL else SECOND
    return since + unit * (length // unit + 1)


def took(length: timedelta) -> str:
    """How long a machine took: "84 ms", "2.1 s", then as `age`."""
    seconds = max(length.total_seconds(), 0.0)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if length < MINUTE else age(length)


def _units(*parts: tuple[int, str]) -> str:
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 s"


def moment(at: datetime, now: datetime) -> str:
    """A time in the zone of `now`, the day only where it is not today's: "03:00:12 UTC"."""
    own = at.astimezone(now.tzinfo)
    day = "" if own.date() == now.date() else f"{own.day} {own:%b %Y}, "
    return f"{day}{own:%H:%M:%S} {zone_name(own)}"


def zone_name(at: datetime) -> str:
    """The zone of a time as people write it: "CET"; by its offset where it has no letters."""
    name = at.tzname() or "UTC"
    return name if name[0].isalpha() else f"UTC{name}"


def on(at: datetime, now: datetime) -> str:
    """`moment` in a sentence: "at 03:00:12 UTC", "on 9 Mar 2026, 22:41:07 UTC"."""
    said = moment(at, now)
    return f"on {said}" if "," in said else f"at {said}"
