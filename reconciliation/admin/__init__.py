"""Recovery in the admin: `setup`, `rehearsal` and `decision_points` are set up here, the `ledger` is only read."""

from __future__ import annotations

from reconciliation.admin import decision_points, ledger, rehearsal, setup

__all__ = ["decision_points", "ledger", "rehearsal", "setup"]
