"""Django's admin: tenants and sources are set up here, the execution `record` is only read."""

from __future__ import annotations

from workflows.admin import record, sources
from workflows.admin.record import ReadOnly

__all__ = ["ReadOnly", "record", "sources"]
