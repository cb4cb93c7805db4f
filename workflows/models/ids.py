"""Primary keys: UUIDv7, so that rows sort by the time they were made."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    return uuid7()


def id_at(at: datetime) -> UUID:
    """The least ID that could have been made at `at`: a bound, never a key."""
    milliseconds = max(int(at.timestamp() * 1000), 0)
    return UUID(int=milliseconds << 80)
