"""Django's admin: tenants, sources and policies are set up here, what happened is only read."""

from __future__ import annotations

from workflows.admin import boundary, record, sources
from workflows.admin.record import LongList, ReadOnly

__all__ = ["LongList", "ReadOnly", "boundary", "record", "sources"]
