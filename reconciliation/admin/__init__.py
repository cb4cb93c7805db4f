"""Recovery in the admin: what is set up here (`setup`, `notifications`, `rehearsal`,
`decision_points`), and the `ledger`, which is only read."""

from __future__ import annotations

from reconciliation.admin import decision_points, ledger, notifications, rehearsal, setup

__all__ = ["decision_points", "ledger", "notifications", "rehearsal", "setup"]
