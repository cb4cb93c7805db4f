"""The audit record: who did what to which object, in one chain of hashes."""

from __future__ import annotations

import hashlib
from datetime import UTC
from typing import Any

from django.db import connection

from reconciliation.models import AuditEntry
from reconciliation.sealing import canonical
from workflows.services.audit import actor_of
from workflows.services.clock import database_now

__all__ = ["actor_of", "add_entry", "first_broken_entry"]

# The chain has one end; whoever adds to it holds this transaction lock. An arbitrary number.
CHAIN_LOCK = 0x526F6D75
BATCH = 2000  # entries read at once


def add_entry(actor: str, verb: str, object: str, detail: dict[str, Any]) -> AuditEntry:
    """Add an entry in the caller's transaction; `detail` holds no payload and no secret."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CHAIN_LOCK])
    last = AuditEntry.objects.order_by("-seq").first()
    entry = AuditEntry(
        seq=(last.seq if last else 0) + 1,
        at=database_now(),
        actor=actor,
        verb=verb,
        object=object,
        detail=detail,
        previous_hash=last.hash if last else "",
    )
    entry.hash = hash_of(entry)
    entry.save(force_insert=True)
    return entry


def hash_of(entry: AuditEntry) -> str:
    at = entry.at.astimezone(UTC).isoformat()
    fields = [
        entry.seq,
        at,
        entry.actor,
        entry.verb,
        entry.object,
        entry.detail,
        entry.previous_hash,
    ]
    return hashlib.sha256(canonical(fields)).hexdigest()


def first_broken_entry() -> int | None:
    """Return the number of the first entry that was changed, or whose forerunner is gone."""
    previous, expected = "", 1
    entries = AuditEntry.objects.order_by("seq")
    while batch := entries.filter(seq__gte=expected)[:BATCH]:
        for entry in batch:
            linked = entry.seq == expected and entry.previous_hash == previous
            if not linked or entry.hash != hash_of(entry):
                return expected
            previous, expected = entry.hash, expected + 1
    return None
