"""Policies: which one is in force, and putting another version in its place.

Whoever changes one holds a lock alone that every send shares: when the change is committed, no
write that the old policy allowed is still about to begin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.db.models import F, Max, Q, QuerySet

from workflows.core.boundary.policy import Document, parse_policy
from workflows.core.errors import InvalidPolicy
from workflows.core.words import is_storable, read_length
from workflows.failpoints import failpoint
from workflows.models import PolicyVersion, Tenant
from workflows.services import audit

# Whoever changes what may be sent has this transaction lock alone. An arbitrary number.
WRITE_LOCK = 0x526F6D76
MIN_NOTE, MAX_NOTE = 10, 1000  # characters


def policy_for(tenant: UUID) -> PolicyVersion | None:
    """The policy in force for a tenant: the latest of its own, else the latest for every tenant."""
    return policies_for(tenant).first()


def policies_for(tenant: UUID) -> QuerySet[PolicyVersion]:
    """Those that there were for a tenant and are; the one in force is the first."""
    scope = Q(tenant=tenant) | Q(tenant=None)
    found = PolicyVersion.objects.filter(scope).select_related("tenant")
    return found.order_by(F("tenant").asc(nulls_last=True), "-version")


def share_write_lock() -> None:
    """Wait for whoever changes what may be sent, and let nobody begin to until this ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [WRITE_LOCK])


def take_write_lock() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [WRITE_LOCK])


def add_policy(
    tenant: Tenant | None, document: Mapping[str, Any], *, by: User, note: str
) -> PolicyVersion:
    """Put another version in force; the one before it stays on record.

    Args:
        tenant: whose; None: of every tenant that has none of its own.
        note: why, for the record.

    Raises:
        PermissionDenied: this person may not change policies.
        InvalidPolicy: names the place in the document, or what the note lacks.
    """
    if not by.has_perm("workflows.add_policyversion"):
        raise PermissionDenied("You may not change policies.")
    checked = parse_policy(document)
    if read_length(note) < MIN_NOTE or not is_storable(note.strip(), MAX_NOTE):
        raise InvalidPolicy(f"note: write {MIN_NOTE} to {MAX_NOTE:,} characters: why it changes")
    meant = groups_meant(checked)
    failpoint("before_policy")
    with transaction.atomic():
        take_write_lock()
        last = PolicyVersion.objects.filter(tenant=tenant).aggregate(last=Max("version"))["last"]
        made = PolicyVersion.objects.create(
            tenant=tenant,
            version=(last or 0) + 1,
            document=checked.model_dump(mode="json", exclude_defaults=True),
            groups=meant,
            note=note.strip(),
            made_by=audit.actor_of(by),
        )
        # Versions are kept: what was before and is now is read there.
        versions = {"version": [last, made.version]}
        audit.record(
            audit.actor_of(by),
            "set policy",
            f"policy:{made}",
            changes=versions,
            note=note.strip(),
        )
    failpoint("after_policy")
    return made


def groups_meant(document: Document) -> dict[str, int]:
    """The groups that a policy names. Raises `InvalidPolicy` for a name that no group has: nobody
    could ever be what it asks for."""
    found = dict(Group.objects.filter(name__in=document.groups).values_list("name", "pk"))
    unknown = sorted(document.groups - found.keys())
    if unknown:
        raise InvalidPolicy(f"policy: there is no group {', '.join(map(repr, unknown))} here")
    return found
