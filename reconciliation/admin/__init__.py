"""Recovery in the admin: what is set up here (`setup`, `notifications`, `rehearsal`), and the
`ledger`, which is only read."""

from __future__ import annotations

from reconciliation.admin import ledger, notifications, rehearsal, setup

__all__ = ["ledger", "notifications", "rehearsal", "setup"]
