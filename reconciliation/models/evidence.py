"""What is known about what the provider did: from whom, when. Added, never changed (P8)."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from reconciliation.core.states import EvidenceKind
from reconciliation.models.operation import Operation
from reconciliation.models.transmission import Transmission
from workflows.models.ids import new_id

# The source of what the duplicate finder puts on record (services/duplicates.py).
DUPLICATE_AUDIT = "duplicate audit"


class Evidence(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="evidence")
    transmission = models.ForeignKey(Transmission, on_delete=models.PROTECT, null=True)
    kind = models.CharField(max_length=16)
    completes = models.BooleanField(default=False)
    denies = models.BooleanField(default=False)
    postcondition = models.BooleanField(null=True)
    resource = models.CharField(max_length=300, blank=True)
    # Of a provider's record, in the fields that it shows: [{field, intended, found}, …] and
    # [{field, found}, …]; values only where the provider's allow-list has them.
    differences = models.JSONField(default=list)
    agreements = models.JSONField(default=list)
    observed_at = models.DateTimeField(db_default=Now())  # when it was asked, or answered
    recorded_at = models.DateTimeField(db_default=Now())  # its place in the order
    retry_after_at = models.DateTimeField(null=True)
    source = models.CharField(max_length=320)  # "answer to send 1", "look-up", a person
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True)
    detail_redacted = models.CharField(max_length=1000, blank=True)

    class Meta:
        verbose_name_plural = "evidence"
        constraints = [
            models.CheckConstraint(
                name="evidence_kind_known",
                condition=Q(kind__in=[kind.value for kind in EvidenceKind]),
            )
        ]
        indexes = [
            models.Index(name="evidence_in_order", fields=["operation", "recorded_at"]),
            # The overview: effects that are there twice, the latest first.
            models.Index(
                name="evidence_double",
                fields=["-recorded_at"],
                condition=Q(source=DUPLICATE_AUDIT),
            ),
        ]
