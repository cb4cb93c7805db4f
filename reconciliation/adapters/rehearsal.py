"""The adapter of the rehearsal destination: generic HTTP, our IDs in headers for its journal."""

from __future__ import annotations

from uuid import UUID

from reconciliation.adapters.http import HttpAdapter


class RehearsalAdapter(HttpAdapter):
    """Its account is its credential; every request carries operation and transmission."""

    def headers(self, _operation: UUID | None, _transmission: UUID | None) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {self.connection.account}"}
        if _operation is not None:
            headers["Romulus-Operation"] = str(_operation)
        if _transmission is not None:
            headers["Romulus-Attempt"] = str(_transmission)
        return headers
