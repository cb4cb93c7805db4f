"""Which waits get an event, and under which lock that is decided. Values only.

An event and a wait match by tenant, type and correlation: exact text, nothing folded or trimmed.
Whoever stores an event and whoever opens a wait take the same lock first, so that neither can miss
the other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Generic, TypeVar
from uuid import UUID

Payload = TypeVar("Payload")


@dataclass(frozen=True, slots=True)
class ReceivedEvent(Generic[Payload]):
    """An event as the steps after a wait read it.

    Attributes:
        id: of the stored event.
        event_id: the sender's own ID.
        source: the slug of who sent it.
        received_at: when it was stored, by the database's clock.
        payload: what it brought, as the type that the wait declares.
    """

    id: UUID
    event_id: str
    type: str
    correlation: str
    source: str
    received_at: datetime
    payload: Payload


@dataclass(frozen=True, slots=True)
class OpenWait:
    """A wait that could take an event: at the moment at which it was looked at, it was open."""

    id: UUID
    run: UUID
    shared: bool
    looked_at: datetime


def takers(waits: Sequence[OpenWait]) -> Sequence[OpenWait]:
    """Return the waits that get an event which all of `waits` could take.

    The only one; or all, where each says that it shares. Else none: which of them was meant is not
    known, and nothing is picked at random.
    """
    if len(waits) == 1 or all(wait.shared for wait in waits):
        return waits
    return ()


def lock_keys(tenant: UUID, types: Collection[str], correlation: str) -> list[int]:
    """Return the numbers to lock, in the order in which everybody locks them.

    Two that are the same by chance only wait for each other.
    """
    return sorted({lock_key(tenant, name, correlation) for name in types})


def lock_key(tenant: UUID, name: str, correlation: str) -> int:
    # The length first, so that no two types run into their correlations alike.
    text = f"{len(name)}:{name}{correlation}".encode()
    digest = blake2b(text, digest_size=8, key=tenant.bytes, person=b"romulus wait")
    return int.from_bytes(digest.digest(), signed=True)
