"""What is paused: a workflow, a tenant, or both together. Nothing of it is claimed meanwhile."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from workflows.models.ids import new_id
from workflows.models.tenant import Tenant


class Pause(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workflow = models.CharField(max_length=200, blank=True, default="")  # empty: every workflow
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True, related_name="pauses")
    by = models.CharField(max_length=150)
    reason = models.CharField(max_length=500)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="pause_once", fields=["workflow", "tenant"], nulls_distinct=False
            ),
            models.CheckConstraint(
                name="pause_of_something", condition=~Q(workflow="") | Q(tenant__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return self.workflow or f"tenant {self.tenant}"
