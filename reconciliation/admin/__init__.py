"""Recovery in Django's admin: `setup` is set up here, the `ledger` is only read."""

from __future__ import annotations

from reconciliation.admin import ledger, setup

__all__ = ["ledger", "setup"]
