"""Using a provider as it is set up: its contract, its adapter, and what it lacks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db.models import Q, QuerySet

from reconciliation import access
from reconciliation.adapters.base import Adapter, Connection
from reconciliation.adapters.network import resolves_to_allowed
from reconciliation.adapters.registry import adapter_class, adapter_for
from reconciliation.core.addresses import (
    REFUSED,
    Allowed,
    address_problem,
    allowed_for,
    parse_address,
)
from reconciliation.core.contracts import Contract
from reconciliation.core.errors import InvalidProvider
from reconciliation.models import Operation, Provider, ReviewQueue
from reconciliation.sealing import digest, has_digest, unseal
from workflows.core.words import without_credentials


def connection_to(provider: Provider) -> Connection:
    """Raises `InvalidProvider`: its credential, or ROMULUS_ALLOWED_ADDRESSES, cannot be read."""
    return Connection(
        base_url=provider.base_url,
        account=provider.account,
        region=provider.region,
        credential=credential_of(provider),
        settings=provider.settings,
        allowed=exceptions_for(provider),
    )


def exceptions_for(provider: Provider) -> tuple[Allowed, ...]:
    """What may be called for it beside public addresses, as ROMULUS_ALLOWED_ADDRESSES says."""
    return allowed_for(provider.slug, settings.ROMULUS_ALLOWED_ADDRESSES)


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
    """The contract that the operation was opened under, whatever the provider's is now.

    Where its action names one of the contract's other ways to ask, that one's lag and marker count.
    """
    contract = operation.contract_version.contract
    way = way_of_asking(operation)
    return (contract.asking_by(way) or contract) if way else contract


def way_of_asking(operation: Operation) -> str:
    """The `by` of the action's look-up, as the provider's settings say; empty for the usual."""
    found: object = operation.provider.settings
    for name in ("actions", operation.action, "look_up", "by"):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


# --- whether its key guards a repeat -----------------------------------------------------------


def is_key_trusted(provider: Provider) -> bool:
    """Whether a repeat is guarded by what a contract says of its key (`why_unguarded`)."""
    return bool(provider.replay_trust) and provider.contradicted_at is None


def guarded_until(operation: Operation) -> datetime | None:
    """Until when the key guards a second send; None also where nobody relies on it."""
    return operation.replay_not_after if is_key_trusted(operation.provider) else None


def whose_key_is_trusted() -> QuerySet[Provider]:
    """Those of which `is_key_trusted`."""
    return Provider.objects.exclude(replay_trust="").filter(contradicted_at=None)


# --- what it lacks ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """One of the three things without which a provider sends nothing, and what it lacks."""

    name: Literal["record", "evidence", "owner"]
    lacks: tuple[str, ...] = ()


def readiness_of(
    provider: Provider, tenant: UUID | None = None, decided: Collection[UUID] | None = None
) -> tuple[Part, ...]:
    """What the provider lacks before anything may be sent to it, by its three parts.

    A provider whose operation record, evidence path or owner is missing sends nothing
    (architecture, section 8). `decided` are the queues with somebody who decides, where that is
    known already.
    """
    contract = provider.contract_version
    evidence: list[str] = []
    if contract is None:
        evidence.append("a contract: what it documents about repeats, look-ups and rejections")
    elif not contract.contract.can_be_settled:
        evidence.append(
            "an evidence path: its contract has neither an answer nor a look-up as proof"
        )
    owner = "an owner: a review queue with somebody who decides its holds"
    if tenant is not None:
        owner += " and may see this tenant"
    return (
        Part("record", tuple(setting_problems(provider))),
        Part("evidence", tuple(evidence)),
        Part("owner", () if has_owner(provider, tenant, decided) else (owner,)),
    )


def missing_of(provider: Provider, tenant: UUID | None = None) -> tuple[str, ...]:
    """All that the provider lacks before anything may be sent to it; empty when it is ready."""
    return tuple(text for part in readiness_of(provider, tenant) for text in part.lacks)


def setting_problems(provider: Provider) -> list[str]:
    """What is wrong with the address and the adapter's settings, in words. Asks no network."""
    wrong = address_problem_of(provider)
    return ([wrong] if wrong else []) + adapter_problems(provider)


def adapter_problems(provider: Provider) -> list[str]:
    """What is wrong with the adapter's settings, the credential, or both beside the contract."""
    if provider.contract_version is None:
        return []
    try:
        return adapter_of(provider, provider.contract_version.contract).check()
    except InvalidProvider as error:
        return [str(error)]


def address_problem_of(provider: Provider, *, resolved: bool = False) -> str:
    """What is wrong with the address, in words; empty when nothing is.

    Args:
        resolved: also ask what its name stands for now, as whoever saves it wants to know. A name
            that is not found says nothing then: each connection asks again.
    """
    try:
        schemes = adapter_class(provider.adapter).schemes
        allowed = exceptions_for(provider)
        wrong = address_problem(provider.base_url, allowed, schemes)
        if wrong or not resolved:
            return wrong
        address = parse_address(provider.base_url, schemes)
        return "" if resolves_to_allowed(address, allowed) else REFUSED
    except InvalidProvider as error:
        return str(error)


def has_owner(
    provider: Provider, tenant: UUID | None, decided: Collection[UUID] | None = None
) -> bool:
    """Whether somebody answers for its holds, of `tenant` or of any, and may see and decide them.

    Whom nobody but an administrator would see is nobody's: a case of it would stop in silence.
    """
    if decided is None:
        queues = ReviewQueue.objects.filter(Q(pk=provider.default_queue_id) | Q(provider=provider))
        of_tenant = Q() if tenant is None else Q(tenant=None) | Q(tenant=tenant)
        return bool(access.with_deciders(queues.filter(of_tenant).values("pk"), tenant))
    return any(
        queue.pk in decided
        for queue in queues_of(provider)
        if tenant is None or queue.tenant_id in (None, tenant)
    )


def queues_of(provider: Provider) -> list[ReviewQueue]:
    """Where holds of its operations may go."""
    default = [provider.default_queue] if provider.default_queue is not None else []
    return [*default, *provider.queues.all()]
