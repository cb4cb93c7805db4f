"""One worker's time-limited claim on one run."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from workflows.core.states import AttemptState
from workflows.models.ids import new_id
from workflows.models.run import Run


class Attempt(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="attempts")
    step = models.CharField(max_length=63)
    visit = models.PositiveIntegerField()
    number = models.PositiveIntegerField()  # the how-manieth try of this step and visit
    worker = models.UUIDField()
    fence = models.BigIntegerField()
    claimed_at = models.DateTimeField(db_default=Now())
    # The lease is never renewed past this: a hung step is replaced.
    timeout_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    state = models.CharField(max_length=16, default=AttemptState.RUNNING)
    error = models.TextField(blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="attempt_state_known",
                condition=Q(state__in=[state.value for state in AttemptState]),
            ),
            models.CheckConstraint(
                name="attempt_ended_iff_ended_at",
                condition=Q(state=AttemptState.RUNNING, ended_at__isnull=True)
                | (~Q(state=AttemptState.RUNNING) & Q(ended_at__isnull=False)),
            ),
            # A fence is given out once; also finds a run's attempts in order.
            models.UniqueConstraint(name="attempt_fence_once", fields=["run", "fence"]),
            models.UniqueConstraint(
                name="attempt_one_running_per_run",
                fields=["run"],
                condition=Q(state=AttemptState.RUNNING),
            ),
        ]
