"""Using a provider as it is set up: its contract, its adapter, and what it lacks."""

from __future__ import annotations

from urllib.parse import urlsplit
from uuid import UUID

from cryptography.fernet import InvalidToken

from reconciliation import access
from reconciliation.adapters.base import Adapter, Connection
from reconciliation.adapters.registry import adapter_for
from reconciliation.core.contracts import Contract
from reconciliation.core.errors import InvalidProvider
from reconciliation.models import Operation, Provider
from reconciliation.sealing import digest, has_digest, unseal
from workflows.core.words import without_credentials


def connection_to(provider: Provider) -> Connection:
    """Raises `InvalidProvider`: its credential cannot be read."""
    return Connection(
        base_url=provider.base_url,
        account=provider.account,
        region=provider.region,
        credential=credential_of(provider),
        settings=provider.settings,
    )


def credential_of(provider: Provider) -> str:
    """Raises `InvalidProvider`: it was sealed with a key that is not among ROMULUS_KEYS."""
    if not provider.credential_sealed:
        return ""
    try:
        return unseal(provider.credential_sealed).decode()
    except InvalidToken as error:
        raise InvalidProvider(
            "a credential that can be read: it was sealed with a key that is not here"
        ) from error


def scope_of(provider: Provider) -> dict[str, str]:
    """The tuple in which a key counts; the credential as a keyed digest (promise P9).

    Raises:
        InvalidProvider: its credential cannot be read.
    """
    return plain_scope(provider) | {"credential": digest(credential_of(provider))}


def plain_scope(provider: Provider) -> dict[str, str]:
    return {
        "account": provider.account,
        "region": provider.region,
        "endpoint": without_credentials(provider.base_url),
    }


def is_in_scope(operation: Operation) -> bool:
    """Whether the provider is still what the operation's key was made for.

    Through another account, address or credential a replay would be a first send, and a look-up
    that finds nothing would prove nothing.
    """
    stored = dict(operation.key_scope)
    mark = stored.pop("credential", "")
    try:
        credential = credential_of(operation.provider)
    except InvalidProvider:
        return False
    return stored == plain_scope(operation.provider) and has_digest(credential, mark)


def adapter_of(provider: Provider, contract: Contract) -> Adapter:
    """Raises `InvalidProvider`: its adapter does not exist, or its credential cannot be read."""
    return adapter_for(provider.adapter, connection_to(provider), contract)


def contract_of(operation: Operation) -> Contract:
    """The contract that the operation was opened under, whatever the provider's is now."""
    return operation.contract_version.contract


def missing_of(provider: Provider, tenant: UUID | None = None) -> tuple[str, ...]:
    """What the provider lacks before anything may be sent to it, in words; empty when ready.

    A provider whose operation record, evidence path or owner is missing sends nothing
    (architecture, section 8).
    """
    lacks = setting_problems(provider)
    if provider.contract_version is None:
        lacks.append("a contract: what it documents about repeats, look-ups and rejections")
    if not has_owner(provider, tenant):
        lacks.append("an owner: a review queue with somebody who decides its holds")
    return tuple(lacks)


def setting_problems(provider: Provider) -> list[str]:
    """What is wrong with the address and the adapter's settings, in words."""
    problems: list[str] = []
    if "@" in urlsplit(provider.base_url).netloc:
        problems.append("an address without user or password: the credential has its own field")
    if provider.contract_version is None:
        return problems
    try:
        return problems + adapter_of(provider, provider.contract_version.contract).check()
    except InvalidProvider as error:
        return [*problems, str(error)]


def has_owner(provider: Provider, tenant: UUID | None) -> bool:
    """Whether somebody answers for its holds, of `tenant` or of any, and may decide them."""
    queues = [provider.default_queue, *provider.queues.all()]
    return any(
        access.has_decider(queue)
        for queue in queues
        if queue is not None and (tenant is None or queue.tenant_id in (None, tenant))
    )
