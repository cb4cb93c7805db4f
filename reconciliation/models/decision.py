"""A person's recorded resolution of a hold. Never edited; a later one corrects it (P8)."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reconciliation.core.states import DecisionKind
from reconciliation.models.evidence import Evidence
from reconciliation.models.hold import Hold
from reconciliation.models.operation import Operation
from reconciliation.models.proposal import DecisionProposal
from workflows.models.ids import new_id


class Decision(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    hold = models.ForeignKey(Hold, on_delete=models.PROTECT, related_name="decisions")
    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, null=True, related_name="decisions"
    )
    kind = models.CharField(max_length=16)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    by_name = models.CharField(max_length=320)  # as shown then: outlives a renamed account
    note = models.TextField()
    evidence = models.ForeignKey(Evidence, on_delete=models.PROTECT, null=True)
    resource = models.CharField(max_length=300, blank=True)
    until = models.DateTimeField(null=True)  # keep holding until
    hold_version = models.PositiveIntegerField()  # the version that was read
    token = models.UUIDField()  # of the form: submitting it twice decides once
    shown = models.JSONField()  # what the person saw: reason, options, evidence
    # Where it took two: what the first proposed, and who confirmed it.
    proposal = models.OneToOneField(
        DecisionProposal, on_delete=models.PROTECT, null=True, related_name="decision"
    )
    second = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    second_name = models.CharField(max_length=320, blank=True)
    # Of a correction: what it corrects; both stay.
    corrects = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="corrections"
    )
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="decision_kind_known",
                condition=Q(kind__in=[kind.value for kind in DecisionKind]),
            ),
            models.CheckConstraint(
                name="decision_second_is_another",
                condition=Q(second=None, proposal=None)
                | (Q(second__isnull=False, proposal__isnull=False) & ~Q(second=F("by"))),
            ),
            models.CheckConstraint(
                name="decision_correction_corrects",
                condition=Q(kind=DecisionKind.CORRECTION, corrects__isnull=False)
                | (~Q(kind=DecisionKind.CORRECTION) & Q(corrects=None)),
            ),
            models.UniqueConstraint(name="decision_once_per_form", fields=["token"]),
            # Two reviewers who read the same version: one of them decides.
            models.UniqueConstraint(
                name="decision_once_per_hold_version", fields=["hold", "hold_version"]
            ),
        ]
