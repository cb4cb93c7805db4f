"""Primary keys: UUIDv7, so that rows sort by the time they were made."""

from __future__ import annotations

from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    return uuid7()
