"""An operation, or a run's step, that waits for a person."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from reconciliation.core.states import HoldState
from reconciliation.models.operation import Operation
from reconciliation.models.queue import ReviewQueue
from workflows.models import Run
from workflows.models.ids import new_id


class Hold(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="holds")
    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, null=True, related_name="holds"
    )
    queue = models.ForeignKey(
        ReviewQueue, on_delete=models.PROTECT, null=True, related_name="holds"
    )
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    reason = models.CharField(max_length=40)
    message = models.CharField(max_length=1000)
    opened_at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField()
    state = models.CharField(max_length=8, default=HoldState.OPEN)
    # Grows with every decision, so that a form that was read before one is refused.
    version = models.PositiveIntegerField(default=1)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="hold_state_known",
                condition=Q(state__in=[state.value for state in HoldState]),
            ),
            models.CheckConstraint(
                name="hold_closed_iff_closed_at",
                condition=Q(state=HoldState.OPEN, closed_at__isnull=True)
                | (~Q(state=HoldState.OPEN) & Q(closed_at__isnull=False)),
            ),
            # A run waits for one person's answer at a time.
            models.UniqueConstraint(
                name="hold_one_open_per_run", fields=["run"], condition=Q(state=HoldState.OPEN)
            ),
        ]
        indexes = [
            # The review queue: open holds by due time.
            models.Index(
                name="hold_open_due", fields=["due_at", "id"], condition=Q(state=HoldState.OPEN)
            ),
            models.Index(
                name="hold_open_queue_due",
                fields=["queue", "due_at", "id"],
                condition=Q(state=HoldState.OPEN),
            ),
        ]
