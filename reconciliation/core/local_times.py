"""Times as people type them: by their own clocks, which show some twice and some never."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo


def moment_at(typed: datetime, zone: tzinfo) -> datetime:
    """The moment, in UTC, at which the clocks of `zone` show `typed`.

    Raises:
        ValueError: they never do, or do twice, because they are changed then; says which.
        OverflowError: it is beyond the calendar.
    """
    first, again = (typed.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    moment = first.astimezone(UTC)
    if first.utcoffset() == again.utcoffset():
        return moment
    said = f"{typed:%H:%M} on {typed.day} {typed:%b %Y}"
    if moment.astimezone(zone).replace(tzinfo=None) == typed:
        raise ValueError(
            f"The clocks of {zone} are put back then, and show {said} twice. Say a time before or "
            "after that hour."
        )
    raise ValueError(
        f"The clocks of {zone} are put forward then, and never show {said}. Say an earlier or a "
        "later time."
    )


def zone_said(zone: tzinfo | None, now: datetime) -> str:
    """A zone with how far its clocks are ahead: "Europe/Berlin, now UTC+01:00"."""
    if zone is None or str(zone) == str(UTC):
        return str(UTC)
    ahead = f"{now.astimezone(zone):%z}"
    return f"{zone}, now UTC{ahead[:3]}:{ahead[3:5]}"
