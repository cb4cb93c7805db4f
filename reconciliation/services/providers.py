"""Using a provider as it is set up: its contract, its adapter, and what it lacks."""

from __future__ import annotations

from reconciliation.adapters.base import Adapter, Connection
from reconciliation.adapters.registry import adapter_for
from reconciliation.core.contracts import Contract
from reconciliation.core.errors import InvalidProvider
from reconciliation.models import Operation, Provider
from reconciliation.sealing import unseal


def connection_to(provider: Provider) -> Connection:
    return Connection(
        base_url=provider.base_url,
        account=provider.account,
        region=provider.region,
        credential=credential_of(provider),
        settings=provider.settings,
    )


def credential_of(provider: Provider) -> str:
    sealed = provider.credential_sealed
    return unseal(sealed).decode() if sealed else ""


def adapter_of(provider: Provider, contract: Contract) -> Adapter:
    """Raises `InvalidProvider`: its adapter does not exist."""
    return adapter_for(provider.adapter, connection_to(provider), contract)


def contract_of(operation: Operation) -> Contract:
    """The contract that the operation was opened under, whatever the provider's is now."""
    return operation.contract_version.contract


def missing_of(provider: Provider) -> tuple[str, ...]:
    """What the provider lacks before anything may be sent to it, in words; empty when ready.

    A provider whose operation record, evidence path or owner is missing sends nothing
    (architecture, section 8).
    """
    lacks: list[str] = []
    if provider.contract_version is None:
        lacks.append("a contract: what it documents about repeats, look-ups and rejections")
    elif provider.adapter:
        try:
            lacks += adapter_of(provider, provider.contract_version.contract).check()
        except InvalidProvider as error:
            lacks.append(str(error))
    if not has_owner(provider):
        lacks.append("an owner: a review queue with somebody who decides its holds")
    return tuple(lacks)


def has_owner(provider: Provider) -> bool:
    queue = provider.default_queue
    if queue is not None and queue.owners.filter(is_active=True).exists():
        return True
    return provider.queues.filter(owners__is_active=True).exists()
