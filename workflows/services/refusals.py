"""Counting what was refused: nothing of a refused delivery is kept but a number and a note."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import structlog
from django.db import Error
from django.db.models import F
from django.db.models.functions import Now

from workflows.core.words import storable
from workflows.models import RefusalCount
from workflows.services.patience import patience

log = structlog.get_logger(__name__)

MAX_NOTE = 300  # characters
# A count is worth no waiting: the sender is to have its answer.
COUNT_SECONDS = 1.0


def count_refusal(source: UUID, reason: str, note: str, now: datetime) -> None:
    """Count a refusal on the day of `now`. What cannot be counted is only logged."""
    try:
        with patience(COUNT_SECONDS):
            add(source, reason, storable(note, MAX_NOTE), now)
    except Error:
        log.warning("refusal.uncounted", source=str(source), reason=reason)


def add(source: UUID, reason: str, note: str, now: datetime) -> None:
    counted = {"source_id": source, "day": now.astimezone(UTC).date(), "reason": reason}
    rows = RefusalCount.objects.filter(**counted)
    changes = {"number": F("number") + 1, "last_at": Now(), "note": note}
    if rows.update(**changes):
        return
    first = RefusalCount(**counted, number=0, last_at=now, note=note)
    # Somebody else may have begun the day at the same moment.
    RefusalCount.objects.bulk_create([first], ignore_conflicts=True)
    rows.update(**changes)
