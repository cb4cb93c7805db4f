"""The audit record: who did what to which object, in one chain of hashes."""

from __future__ import annotations

import secrets
from datetime import UTC
from typing import Any

import structlog
from django.db import connection, transaction
from django.db.models import QuerySet

from reconciliation.core.chain import Entry, skip_of
from reconciliation.models import AuditEntry
from workflows.failpoints import failpoint
from workflows.services.audit import Objects, actor_of
from workflows.services.clock import database_now

__all__ = [
    "actor_of",
    "actors_of",
    "add_entry",
    "check_chain",
    "first_broken_entry",
    "lock_chain",
]

log = structlog.get_logger(__name__)

# The chain has one end; whoever adds to it holds this transaction lock. An arbitrary number.
CHAIN_LOCK = 0x526F6D75
BATCH = 2000  # entries read at once
CHAIN = "audit:chain"  # how the record names itself


def lock_chain() -> None:
    """Let nobody else add an entry until the caller's transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CHAIN_LOCK])


def add_entry(actor: str, verb: str, object: str, detail: dict[str, Any]) -> AuditEntry:
    """Add an entry in the caller's transaction; `detail` holds no payload and no secret."""
    lock_chain()
    last = AuditEntry.objects.order_by("-seq").first()
    seq = (last.seq if last else 0) + 1
    entry = AuditEntry(
        seq=seq,
        at=database_now(),
        actor=actor,
        verb=verb,
        object=object,
        detail=detail,
        salt=secrets.token_hex(16),
        previous_hash=last.hash if last else "",
        skip_hash=hash_at(skip_of(seq), last),
    )
    entry.hash = hash_of(entry)
    entry.save(force_insert=True)
    return entry


def actors_of(verb: str, objects: Objects) -> QuerySet[AuditEntry, str]:
    """Who did `verb` to any of `objects`."""
    rows = AuditEntry.objects.filter(object__in=objects, verb=verb)
    return rows.values_list("actor", flat=True)


def hash_at(seq: int, last: AuditEntry | None) -> str:
    """The hash of entry `seq`, which is often the `last` one; empty before the first."""
    if last is None or seq == 0:
        return ""
    return last.hash if seq == last.seq else AuditEntry.objects.get(seq=seq).hash


def hash_of(entry: AuditEntry) -> str:
    return as_chained(entry).hash


def as_chained(entry: AuditEntry) -> Entry:
    return Entry(
        seq=entry.seq,
        at=entry.at.astimezone(UTC).isoformat(),
        actor=entry.actor,
        verb=entry.verb,
        object=entry.object,
        detail=entry.detail,
        salt=entry.salt,
        previous_hash=entry.previous_hash,
        skip_hash=entry.skip_hash,
    )


def check_chain(actor: str) -> AuditEntry:
    """Check the whole chain and put on record what was found: up to which entry, and the first
    that does not fit, if there is one. Takes a minute for some million entries."""
    last = AuditEntry.objects.order_by("-seq").first()
    broken = first_broken_entry()
    detail = {"upto": last.seq if last else 0, "broken": broken}
    failpoint("before_chain_check")
    with transaction.atomic():
        entry = add_entry(actor, "checked the chain", CHAIN, detail)
    failpoint("after_chain_check")
    if broken is not None:
        log.error("audit.chain_broken", entry=broken)
    return entry


def first_broken_entry() -> int | None:
    """Return the number of the first entry that was changed, or whose forerunner is gone.

    Reads the whole record once, in batches; what it remembers meanwhile grows with the number of
    digits of an entry's number.
    """
    # The hashes that later entries carry: of the forerunner, and of those further back.
    kept: list[tuple[int, str]] = [(0, "")]
    expected = 1
    entries = AuditEntry.objects.order_by("seq")
    while batch := entries.filter(seq__gte=expected)[:BATCH]:
        for entry in batch:
            previous_hash = kept[-1][1]
            while kept[-1][0] > skip_of(expected):
                kept.pop()
            in_place = entry.seq == expected and entry.previous_hash == previous_hash
            carries = not entry.salt or entry.skip_hash == kept[-1][1]
            if not (in_place and carries and entry.hash == hash_of(entry)):
                return expected
            kept.append((expected, entry.hash))
            expected += 1
    return None
