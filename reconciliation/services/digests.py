"""Whether a person wants a digest, and when."""

from __future__ import annotations

from datetime import time

from django.contrib.auth.models import User

from reconciliation.core.digests import Every, next_digest
from reconciliation.models import Digest
from workflows.services.clock import database_now


def set_digest(person: User, every: Every | None, at: time, zone: str) -> None:
    """Send `person` a digest each day or week at `at` by the clocks of `zone`; None: none."""
    if every is None:
        Digest.objects.filter(person=person).delete()
        return
    following = next_digest(every, at, zone, database_now())
    changes = {"every": every, "at": at, "zone": zone, "next_at": following}
    Digest.objects.update_or_create(person=person, defaults=changes)
