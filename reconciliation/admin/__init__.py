"""Recovery in the admin: `setup` and `rehearsal` are set up here, the `ledger` is only read."""

from __future__ import annotations

from reconciliation.admin import ledger, rehearsal, setup

__all__ = ["ledger", "rehearsal", "setup"]
