"""The adapters there are, by the slug that a provider names."""

from __future__ import annotations

from reconciliation.adapters.base import Adapter, Connection
from reconciliation.adapters.http import HttpAdapter
from reconciliation.adapters.rehearsal import RehearsalAdapter
from reconciliation.core.contracts import Contract
from reconciliation.core.errors import InvalidProvider

ADAPTERS: dict[str, type[Adapter]] = {"http": HttpAdapter, "rehearsal": RehearsalAdapter}


def adapter_for(slug: str, connection: Connection, contract: Contract) -> Adapter:
    """Raises `InvalidProvider`, naming the adapters there are."""
    try:
        return ADAPTERS[slug](connection, contract)
    except KeyError:
        known = ", ".join(sorted(ADAPTERS))
        raise InvalidProvider(f"no adapter {slug!r}; known: {known}") from None
