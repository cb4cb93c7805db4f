"""The database's time, also while the database is away: everything on record is in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from workflows.services.clock import database_now


class Clock:
    """Tells the database's time by this machine's clock, from one comparison of both."""

    def __init__(self) -> None:
        self._ahead = timedelta(0)

    def set(self) -> None:
        """Compare the clocks; the database answers within a few milliseconds."""
        self._ahead = database_now() - datetime.now(UTC)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead
