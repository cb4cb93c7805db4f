"""One execution of one workflow version, for one tenant."""

from __future__ import annotations

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.db.models.functions import Collate, Now

from workflows.core.states import RunState
from workflows.models.ids import last_of, new_id
from workflows.models.tenant import Tenant
from workflows.querysets import RunQuerySet

START_KEY_CONSTRAINT = "run_starts_once_per_start_key"


class Run(models.Model):
    """A run; while a worker is at it, also the attempt that is under way.

    The columns at the end are those that change with each step. No index and no index's condition
    names them, and they lie side by side, so that a step rewrites some 70 bytes of one page and
    touches no index (PostgreSQL's heap-only tuples). The table has no check: PostgreSQL prepares
    each one anew for every statement. That the state is known, a lease is held exactly while
    running, and the end has exactly one time is kept by a trigger on those columns alone
    (`run_state_consistent`, migration 0002).
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workflow = models.CharField(max_length=200)
    version = models.IntegerField()
    tenant = models.ForeignKey(
        Tenant,
        on_delete=models.PROTECT,
        related_name="runs",
        db_index=False,  # its lists below begin with it
    )
    input = models.JSONField()
    labels = models.JSONField(default=dict)
    start_key = models.CharField(max_length=200, null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    # Who waits for its end: the step and visit of its parent that started it, and its place there.
    parent = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="children", db_index=False
    )
    parent_step = models.CharField(max_length=63, blank=True, default="")
    parent_visit = models.IntegerField(null=True)
    parent_index = models.IntegerField(null=True)

    state = models.CharField(max_length=16, default=RunState.READY)
    # Why it waits, is held, failed or is tried again: {"reason": …, "message": …}, for people.
    failure = models.JSONField(null=True)
    ready_at = models.DateTimeField(db_default=Now())
    # A waiting run that nothing else would move is made ready then.
    wake_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # A child's end, or that it is held, is an event of its parent until the parent has seen it.
    end_seen_at = models.DateTimeField(null=True)
    # When something of it is to be purged next (services/purge.py).
    purge_at = models.DateTimeField(null=True)
    cancel_asked_at = models.DateTimeField(null=True)
    cancel_asked_by = models.CharField(max_length=150, blank=True, default="")
    paused_at = models.DateTimeField(null=True)
    paused_by = models.CharField(max_length=150, blank=True, default="")
    hinted_at = models.DateTimeField(null=True)

    lease_owner = models.UUIDField(null=True)
    step = models.CharField(max_length=63)
    visit = models.IntegerField(default=1)
    fence = models.BigIntegerField(default=0)
    # The present attempt, or the latest; its row in `Attempt` is written when it ends.
    attempt = models.UUIDField(null=True)
    claimed_at = models.DateTimeField(null=True)
    lease_expires_at = models.DateTimeField(null=True)
    # The lease is never renewed past this: a hung step is replaced.
    timeout_at = models.DateTimeField(null=True)
    # Of this step and visit: all tries; those that failed and those whose worker went quiet,
    # since a person last let it be tried again.
    tries = models.IntegerField(default=0)
    failures = models.IntegerField(default=0)
    losses = models.IntegerField(default=0)

    objects = RunQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name=START_KEY_CONSTRAINT, fields=["tenant", "workflow", "start_key"]
            ),
            models.UniqueConstraint(
                name="run_child_once",
                fields=["parent", "parent_step", "parent_visit", "parent_index"],
                condition=Q(parent__isnull=False),
            ),
        ]
        indexes = [
            # Claims, the sweep and the backlog count (sql/queries.sql): unfinished rows only, so
            # that their cost does not grow with history, nor with versions that nobody here has.
            models.Index(
                name="run_ready",
                fields=["workflow", "version", "ready_at"],
                condition=Q(state=RunState.READY, paused_at__isnull=True),
            ),
            # The same while something of a tenant is paused, whose backlog is stepped over.
            models.Index(
                name="run_ready_of_tenant",
                fields=["workflow", "version", "tenant", "ready_at"],
                condition=Q(state=RunState.READY, paused_at__isnull=True),
            ),
            # Renewal, and the few running runs among which the expired leases are.
            models.Index(
                name="run_lease_owner", fields=["lease_owner"], condition=Q(state=RunState.RUNNING)
            ),
            models.Index(name="run_wake", fields=["wake_at"], condition=Q(state=RunState.WAITING)),
            models.Index(
                name="run_cancelling",
                fields=["id"],
                condition=Q(cancel_asked_at__isnull=False, finished_at__isnull=True),
            ),
            models.Index(
                name="run_end_unseen",
                fields=["parent"],
                condition=Q(parent__isnull=False, end_seen_at__isnull=True)
                & (Q(finished_at__isnull=False) | Q(state=RunState.HELD)),
            ),
            models.Index(
                name="run_purge", fields=["purge_at"], condition=Q(purge_at__isnull=False)
            ),
            # The runs list, by state or all, newest first.
            models.Index(name="run_tenant_newest", fields=["tenant", "-id"]),
            # Without the children of runs, which may be many thousands.
            models.Index(
                name="run_tenant_newest_parents",
                fields=["tenant", "-id"],
                condition=Q(parent__isnull=True),
            ),
            models.Index(name="run_tenant_state_newest", fields=["tenant", "state", "-id"]),
            # Who still runs an earlier version: unfinished rows only.
            models.Index(
                name="run_unfinished_version",
                fields=["workflow", "version", "id"],
                condition=Q(finished_at__isnull=True),
            ),
            # Search: by the end of the ID, by the start key or how it begins, by a label's value.
            models.Index(last_of("id"), name="run_id_end"),
            models.Index(
                Collate("start_key", "C"),
                name="run_start_key",
                condition=Q(start_key__isnull=False),
            ),
            GinIndex(name="run_labels", fields=["labels"], condition=~Q(labels={})),
        ]

    def __str__(self) -> str:
        return f"{self.workflow} v{self.version} {self.id}"
