"""Primary keys: UUIDv7, so that rows sort by the time they were made."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.models import CharField
from django.db.models.functions import Cast, Right
from uuid_utils.compat import uuid7

# People type and compare the last six characters of an ID.
LAST = 6


def new_id() -> UUID:
    return uuid7()


def id_at(at: datetime) -> UUID:
    """The least ID that could have been made at `at`: a bound, never a key."""
    milliseconds = max(int(at.timestamp() * 1000), 0)
    return UUID(int=milliseconds << 80)


def last_of(column: str) -> Right:
    """The last six characters of an ID, by which an index finds it."""
    return Right(Cast(column, CharField()), LAST)
