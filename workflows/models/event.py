"""One delivery that a source's rules accepted."""

from __future__ import annotations

from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Collate, Now

from workflows.core.events import MAX_CORRELATION, MAX_EVENT_ID, MAX_PROBLEM, MAX_TYPE
from workflows.core.states import EventState
from workflows.models.event_source import EventSource
from workflows.models.ids import last_of, new_id
from workflows.models.tenant import Tenant

# What a wait may still take.
UNCONSUMED = Q(state__in=[EventState.STORED, EventState.LATE], dismissed_at__isnull=True)
# What a person may have to see to.
TO_ACT_ON = ~Q(state=EventState.MATCHED) & Q(dismissed_at__isnull=True)
# Of what a person may have to see to, the word for it: its state, or that nothing was picked.
AMBIGUOUS = "ambiguous"
KIND = Case(
    When(ambiguous_at__isnull=False, then=Value(AMBIGUOUS)),
    default=F("state"),
    output_field=models.CharField(),
)
# Nobody needs it any more, and its body is still kept.
BODY_KEPT = (Q(state=EventState.MATCHED) | Q(dismissed_at__isnull=False)) & Q(
    purged_at__isnull=True
)


class Event(models.Model):
    """An event: its body byte for byte as it came, and what its source's rules found in it.

    Columns that change stand last; none of them is in an index but what says who sees to it.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    source = models.ForeignKey(
        EventSource, on_delete=models.PROTECT, related_name="events", db_index=False
    )
    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="events", db_index=False
    )
    # The sender's own ID; null where a rejected delivery has none.
    event_id = models.CharField(max_length=MAX_EVENT_ID, null=True)
    type = models.CharField(max_length=MAX_TYPE, blank=True)
    correlation = models.CharField(max_length=MAX_CORRELATION, blank=True)
    received_at = models.DateTimeField(db_default=Now())
    content_type = models.CharField(max_length=100, blank=True)
    encoding = models.CharField(max_length=20, blank=True)  # of the body; empty: as it is
    # As it came, compressed or not; null once purged.
    body = models.BinaryField(null=True)

    state = models.CharField(max_length=16, default=EventState.STORED)
    # Why it was rejected, or why it is late, for people.
    problem = models.CharField(max_length=MAX_PROBLEM, blank=True)
    # More than one wait could take it, and nothing is picked at random.
    ambiguous_at = models.DateTimeField(null=True)
    dismissed_at = models.DateTimeField(null=True)
    dismissed_by = models.CharField(max_length=150, blank=True)
    dismissed_reason = models.CharField(max_length=500, blank=True)
    duplicates = models.IntegerField(default=0)
    last_duplicate_at = models.DateTimeField(null=True)
    purged_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="event_once", fields=["source", "event_id"]),
            models.CheckConstraint(
                name="event_state_known",
                condition=Q(state__in=[state.value for state in EventState]),
            ),
        ]
        indexes = [
            # What a wait that opens may take.
            models.Index(
                name="event_unconsumed",
                fields=["tenant", "correlation", "type", "received_at"],
                condition=UNCONSUMED,
            ),
            # The lists: newest first, all of a tenant or of one source, and those to act on.
            models.Index(name="event_tenant_newest", fields=["tenant", "-id"]),
            models.Index(name="event_source_newest", fields=["source", "-id"]),
            models.Index(
                name="event_to_act_on",
                fields=["tenant", "-id"],
                condition=TO_ACT_ON,
            ),
            # The same by kind: one that is rare among many of another.
            models.Index(
                F("tenant"), KIND, F("id").desc(), name="event_kind_newest", condition=TO_ACT_ON
            ),
            # What the purge takes, the oldest first.
            models.Index(name="event_body_kept", fields=["source", "id"], condition=BODY_KEPT),
            # Search: by the end of the ID, the sender's ID or the correlation, or how they begin.
            models.Index(last_of("id"), name="event_id_end"),
            models.Index(
                Collate("event_id", "C"), name="event_event_id", condition=Q(event_id__isnull=False)
            ),
            models.Index(Collate("correlation", "C"), name="event_correlation"),
        ]
