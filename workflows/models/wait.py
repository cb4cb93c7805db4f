"""What a run expects, and which events it got."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Collate, Now

from workflows.core.events import MAX_CORRELATION, MAX_TYPE
from workflows.core.states import WaitState
from workflows.models.event import Event
from workflows.models.ids import new_id
from workflows.models.run import Run
from workflows.models.tenant import Tenant


class Wait(models.Model):
    """A run's wait at one step and visit; resolved once, by events, its deadline or an end.

    When a person lets the step be tried again after its deadline, it waits anew: another row.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="waits", db_index=False)
    step = models.CharField(max_length=63)
    visit = models.IntegerField()
    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="waits", db_index=False
    )
    event_types = ArrayField(models.CharField(max_length=MAX_TYPE))
    correlation = models.CharField(max_length=MAX_CORRELATION)
    deadline = models.DateTimeField(null=True)
    needed = models.IntegerField(default=1)  # so many events resolve it
    shared = models.BooleanField(default=False)  # other waits may have its events too
    started_at = models.DateTimeField(db_default=Now())

    state = models.CharField(max_length=16, default=WaitState.WAITING)
    resolved_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="wait_one_open_per_run",
                fields=["run"],
                condition=Q(state=WaitState.WAITING),
            ),
            models.CheckConstraint(
                name="wait_state_consistent",
                condition=Q(state=WaitState.WAITING, resolved_at__isnull=True)
                | Q(
                    state__in=[WaitState.RESOLVED, WaitState.EXPIRED, WaitState.CANCELLED],
                    resolved_at__isnull=False,
                ),
            ),
        ]
        indexes = [
            # The latest of a run's position: one that ran out may be tried again by a person.
            models.Index(name="wait_run", fields=["run", "-id"]),
            # Who could take an event that arrives.
            models.Index(
                name="wait_open",
                fields=["tenant", "correlation"],
                condition=Q(state=WaitState.WAITING),
            ),
            # Beside which wait a late event is shown.
            models.Index(name="wait_correlation", fields=["tenant", "correlation", "-id"]),
            # Search: the correlation, or how it begins.
            models.Index(Collate("correlation", "C"), name="wait_correlation_begins"),
            models.Index(
                name="wait_open_newest",
                fields=["tenant", "-id"],
                condition=Q(state=WaitState.WAITING),
            ),
        ]


class Match(models.Model):
    """An event that a wait got, by the rules or by a person's hand."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    wait = models.ForeignKey(Wait, on_delete=models.PROTECT, related_name="matches")
    event = models.ForeignKey(Event, on_delete=models.PROTECT, related_name="matches")
    at = models.DateTimeField(db_default=Now())
    by = models.CharField(max_length=150, blank=True)  # who attached it; empty: the rules
    reason = models.CharField(max_length=1000, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="match_once", fields=["wait", "event"]),
            models.CheckConstraint(
                name="match_by_hand_has_a_reason", condition=Q(by="") | ~Q(reason="")
            ),
        ]
