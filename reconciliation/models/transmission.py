"""One sending of an operation: written before the first byte leaves, with an ID of its own."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Collate, Now

from reconciliation.core.states import Purpose, TransmissionState
from reconciliation.models.operation import Operation
from workflows.models.ids import new_id


class Transmission(models.Model):
    # By the clock of the process that sends it, not stored: after this no byte of it may leave.
    send_before: float = 0.0

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="transmissions")
    number = models.PositiveIntegerField()
    # Who sent it: the attempt at the run's step, whose own row is written when it ends.
    attempt = models.UUIDField()
    worker = models.UUIDField()
    fence = models.BigIntegerField()
    purpose = models.CharField(max_length=8)
    started_at = models.DateTimeField(db_default=Now())
    # After this no byte of it can still leave or arrive.
    in_flight_until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    phase = models.CharField(max_length=8, blank=True)
    state = models.CharField(max_length=16, default=TransmissionState.SENDING)
    meaning = models.CharField(max_length=16, blank=True)
    status = models.PositiveIntegerField(null=True)
    resolves_earlier = models.BooleanField(default=False)
    retry = models.CharField(max_length=16, blank=True)
    retry_after_at = models.DateTimeField(null=True)
    provider_request_id = models.CharField(max_length=200, blank=True)
    detail_redacted = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="transmission_state_known",
                condition=Q(state__in=[state.value for state in TransmissionState]),
            ),
            models.CheckConstraint(
                name="transmission_purpose_known",
                condition=Q(purpose__in=[purpose.value for purpose in Purpose]),
            ),
            models.CheckConstraint(
                name="transmission_ended_iff_ended_at",
                condition=Q(state=TransmissionState.SENDING, ended_at__isnull=True)
                | (~Q(state=TransmissionState.SENDING) & Q(ended_at__isnull=False)),
            ),
            models.UniqueConstraint(
                name="transmission_number_once", fields=["operation", "number"]
            ),
            # Nothing of an operation is sent while something of it is recorded as on its way.
            models.UniqueConstraint(
                name="transmission_one_sending",
                fields=["operation"],
                condition=Q(state=TransmissionState.SENDING),
            ),
        ]
        indexes = [
            # Search: what the provider called the request, or how that begins.
            models.Index(
                Collate("provider_request_id", "C"),
                name="transmission_request_id",
                condition=~Q(provider_request_id=""),
            )
        ]
