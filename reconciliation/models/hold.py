"""An operation, a run's step, or an event that waits for a person."""

from __future__ import annotations

from typing import Self
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reconciliation.core.facts import CONFLICT_LATER
from reconciliation.core.states import HoldState
from reconciliation.models.operation import Operation
from reconciliation.models.provider import Provider
from reconciliation.models.queue import ReviewQueue
from workflows.models import Event, Run, Tenant
from workflows.models.ids import new_id


class HoldQuerySet(models.QuerySet["Hold"]):
    def waiting_for_second(self) -> Self:
        """Those of which one person has proposed a decision that another must confirm."""
        return self.filter(state=HoldState.OPEN, proposal__isnull=False)


class Hold(models.Model):
    """Of a run, whose operation it may be about, or of an event; never of both."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, null=True, related_name="holds")
    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, null=True, related_name="holds"
    )
    event = models.ForeignKey(Event, on_delete=models.PROTECT, null=True, related_name="holds")
    queue = models.ForeignKey(
        ReviewQueue, on_delete=models.PROTECT, null=True, related_name="holds"
    )
    # Of its run or its event, as the database fills in: what each list and count asks for.
    tenant = models.ForeignKey(
        Tenant,
        on_delete=models.PROTECT,
        null=True,
        editable=False,
        related_name="+",
        db_index=False,
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
    # Until then it is in nobody's default lists; when it is due is not moved by that.
    snoozed_until = models.DateTimeField(null=True)
    # Of its operation, where they do not change while it is held: what the queue is sorted by, and
    # on whose key the window rests.
    provider = models.ForeignKey(
        Provider, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    amount = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    window_ends_at = models.DateTimeField(null=True)
    # When the sweep looks next whether somebody is to be told that it waits, and whether what is
    # proposed is void; null: there is nothing to look for.
    tell_at = models.DateTimeField(null=True, db_default=Now())
    # What one person has proposed and another must confirm, while that is open.
    proposal = models.OneToOneField(
        "reconciliation.DecisionProposal", on_delete=models.PROTECT, null=True, related_name="+"
    )

    objects = HoldQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="hold_proposal_only_while_open",
                condition=Q(state=HoldState.OPEN) | Q(proposal=None),
            ),
            models.CheckConstraint(
                name="hold_state_known",
                condition=Q(state__in=[state.value for state in HoldState]),
            ),
            models.CheckConstraint(
                name="hold_closed_iff_closed_at",
                condition=Q(state=HoldState.OPEN, closed_at__isnull=True)
                | (~Q(state=HoldState.OPEN) & Q(closed_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="hold_of_a_run_or_an_event",
                condition=Q(run__isnull=False, event__isnull=True)
                | Q(run__isnull=True, event__isnull=False, operation__isnull=True),
            ),
            models.UniqueConstraint(
                name="hold_one_open_per_event", fields=["event"], condition=Q(state=HoldState.OPEN)
            ),
            # A run waits for one person's answer at a time; for one about what is settled it
            # does not wait.
            models.UniqueConstraint(
                name="hold_one_open_per_run",
                fields=["run"],
                condition=Q(state=HoldState.OPEN) & ~Q(reason=CONFLICT_LATER),
            ),
            models.UniqueConstraint(
                name="hold_one_later_conflict",
                fields=["operation"],
                condition=Q(state=HoldState.OPEN, reason=CONFLICT_LATER),
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
            # How many of them somebody may see.
            models.Index(
                name="hold_open_tenant",
                fields=["tenant", "queue"],
                condition=Q(state=HoldState.OPEN),
            ),
            # Those that wait for a second person (`waiting_for_second`).
            models.Index(
                name="hold_open_second",
                fields=["due_at", "id"],
                condition=Q(state=HoldState.OPEN, proposal__isnull=False),
            ),
            # The same list by what is at stake, by protection left, by age; and one person's.
            models.Index(
                F("amount").desc(nulls_last=True),
                F("id").asc(),
                name="hold_open_amount",
                condition=Q(state=HoldState.OPEN),
            ),
            models.Index(
                name="hold_open_window",
                fields=["window_ends_at", "id"],
                condition=Q(state=HoldState.OPEN),
            ),
            models.Index(
                name="hold_open_age", fields=["opened_at", "id"], condition=Q(state=HoldState.OPEN)
            ),
            models.Index(
                name="hold_open_assignee",
                fields=["assignee", "due_at", "id"],
                condition=Q(state=HoldState.OPEN),
            ),
            models.Index(
                name="hold_open_tell", fields=["tell_at"], condition=Q(state=HoldState.OPEN)
            ),
        ]

    @property
    def held_run(self) -> Run:
        """The run that it is of: a hold of an event has none, and is not asked."""
        assert self.run is not None
        return self.run

    @property
    def held_event(self) -> Event:
        """The event that it is of: a hold of a run has none, and is not asked."""
        assert self.event is not None
        return self.event

    @property
    def case_id(self) -> UUID:
        """The operation, run or event that a person is asked about."""
        case = self.operation_id or self.run_id or self.event_id
        assert case is not None  # the table's own constraint
        return case

    @property
    def subject(self) -> str:
        """What the audit record calls the case."""
        if self.operation_id is not None:
            return f"operation:{self.operation_id}"
        return f"run:{self.run_id}" if self.run_id is not None else f"event:{self.event_id}"
