"""What later steps read: written once, in the same commit as the move past its step (P1)."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from workflows.models.attempt import Attempt
from workflows.models.ids import new_id
from workflows.models.run import Run


class StepOutput(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="outputs")
    step = models.CharField(max_length=63)
    visit = models.PositiveIntegerField()
    attempt = models.ForeignKey(Attempt, on_delete=models.PROTECT, related_name="+")
    value = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(name="output_once_per_visit", fields=["run", "step", "visit"])
        ]
