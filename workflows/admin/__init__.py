"""Django's admin: tenants and sources are set up here, the execution `record` is only read."""

from __future__ import annotations

from workflows.admin import record, sources
from workflows.admin.record import LongList, ReadOnly

__all__ = ["LongList", "ReadOnly", "record", "sources"]
