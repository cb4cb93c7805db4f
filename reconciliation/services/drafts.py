"""Keeping what somebody types into a decision form, until they have decided: theirs alone.

A draft is no record. Nothing is audited, nobody else reads it, and it decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.db.models.functions import Now

from reconciliation.models import DecisionDraft
from reconciliation.services.answers import MAX_NOTE, MAX_RESOURCE
from workflows.core.words import storable

# The code is typed anew each time: it is what ties a decision to its case.
LONGEST = {"kind": 20, "note": MAX_NOTE, "resource": MAX_RESOURCE, "evidence": 100, "until": 30}
ZONE = 64  # by whose clocks `until` was typed
KEPT = timedelta(days=30)


def keep(user: User, case: UUID, typed: Mapping[str, str]) -> bool:
    """Keep what `user` has typed on `case`, in place of what was kept before.

    Returns:
        False when nothing was typed: then nothing is kept.
    """
    kept = {
        name: storable(typed.get(name, ""), longest)
        for name, longest in LONGEST.items()
        if typed.get(name, "").strip()
    }
    if "until" in kept:
        kept["zone"] = storable(typed.get("zone", ""), ZONE)
    DecisionDraft.objects.filter(user=user, saved_at__lt=Now() - KEPT).delete()
    if not kept:
        forget(user, case)
        return False
    DecisionDraft.objects.update_or_create(
        user=user, case=case, defaults={"typed": kept, "saved_at": Now()}
    )
    return True


def forget(user: User, case: UUID) -> None:
    DecisionDraft.objects.filter(user=user, case=case).delete()


def drafts_of(user: User, case: UUID) -> QuerySet[DecisionDraft]:
    """What `user` has typed on `case` and not sent: one at most."""
    return DecisionDraft.objects.filter(user=user, case=case)
