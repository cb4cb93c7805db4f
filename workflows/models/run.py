"""One execution of one workflow version, for one tenant."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from workflows.core.states import FINAL_RUN_STATES, RunState
from workflows.models.ids import new_id
from workflows.models.tenant import Tenant
from workflows.querysets import RunQuerySet

START_KEY_CONSTRAINT = "run_starts_once_per_start_key"


class Run(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workflow = models.CharField(max_length=200)
    version = models.PositiveIntegerField()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="runs")
    state = models.CharField(max_length=16, default=RunState.READY)
    step = models.CharField(max_length=63)
    visit = models.PositiveIntegerField(default=1)
    input = models.JSONField()
    labels = models.JSONField(default=dict)
    start_key = models.CharField(max_length=200, null=True, blank=True)
    ready_at = models.DateTimeField(db_default=Now())
    hinted_at = models.DateTimeField(null=True)
    lease_owner = models.UUIDField(null=True)
    lease_expires_at = models.DateTimeField(null=True)
    fence = models.BigIntegerField(default=0)
    # Tries up to this fence no longer count: a person has let the step be tried again.
    counts_from_fence = models.BigIntegerField(default=0)
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="children")
    result = models.JSONField(null=True)
    # Why it is held, failed or to be tried again: {"reason": …, "message": …}, for people.
    failure = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="run_state_known", condition=Q(state__in=[state.value for state in RunState])
            ),
            models.CheckConstraint(
                name="run_finished_iff_finished_at",
                condition=Q(state__in=FINAL_RUN_STATES, finished_at__isnull=False)
                | (~Q(state__in=FINAL_RUN_STATES) & Q(finished_at__isnull=True)),
            ),
            models.CheckConstraint(
                name="run_running_iff_leased",
                condition=Q(
                    state=RunState.RUNNING,
                    lease_owner__isnull=False,
                    lease_expires_at__isnull=False,
                )
                | (
                    ~Q(state=RunState.RUNNING)
                    & Q(lease_owner__isnull=True, lease_expires_at__isnull=True)
                ),
            ),
            models.UniqueConstraint(
                name=START_KEY_CONSTRAINT, fields=["tenant", "workflow", "start_key"]
            ),
        ]
        indexes = [
            # The sweep and the backlog count (sql/queries.sql): unfinished rows only, so that
            # their cost does not grow with history.
            models.Index(name="run_ready", fields=["ready_at"], condition=Q(state=RunState.READY)),
            models.Index(
                name="run_lease", fields=["lease_expires_at"], condition=Q(state=RunState.RUNNING)
            ),
            # Renewal: all leases of one worker in one statement.
            models.Index(
                name="run_lease_owner", fields=["lease_owner"], condition=Q(state=RunState.RUNNING)
            ),
            # The runs list, by state or all, newest first.
            models.Index(name="run_tenant_newest", fields=["tenant", "-id"]),
            models.Index(name="run_tenant_state_newest", fields=["tenant", "state", "-id"]),
        ]

    def __str__(self) -> str:
        return f"{self.workflow} v{self.version} {self.id}"
