"""What somebody has typed into the decision form of a case and not sent yet: theirs alone."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class DecisionDraft(models.Model):
    """No record and no part of the ledger: it is overwritten, and deleted with their decision."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="decision_drafts"
    )
    case = models.UUIDField()  # the ID of the operation or run
    typed = models.JSONField()
    saved_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(name="draft_one_per_person_and_case", fields=["user", "case"])
        ]
