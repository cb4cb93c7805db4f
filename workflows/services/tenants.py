"""Setting up tenants, on record."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from workflows.models import Tenant
from workflows.services import audit
from workflows.services.changes import changes_of


@transaction.atomic
def save_tenant(tenant: Tenant, *, by: str, changed: Sequence[str]) -> None:
    """Save a tenant.

    Args:
        by: who has set it up, for the record (`audit.actor_of`).
        changed: the names of the fields that were changed.
    """
    changes = changes_of(tenant, changed)
    tenant.save()
    audit.record(by, "set up", f"tenant:{tenant.slug}", changes=changes)
