"""A decision that one person proposed and another must confirm, and what became of it.

Neither is ever edited: a proposal ends by a row of its own, once (P8).
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from reconciliation.core.states import DecisionKind, ProposalEndKind
from reconciliation.models.hold import Hold
from reconciliation.models.operation import Operation
from workflows.models.ids import new_id


class DecisionProposal(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    hold = models.ForeignKey(Hold, on_delete=models.PROTECT, related_name="proposals")
    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, null=True, related_name="proposals"
    )
    kind = models.CharField(max_length=16)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    by_name = models.CharField(max_length=320)  # as shown then
    note = models.TextField()
    resource = models.CharField(max_length=300, blank=True)
    hold_version = models.PositiveIntegerField()  # the version that was read
    token = models.UUIDField()  # of the form: submitting it twice proposes once
    shown = models.JSONField()  # what the person saw: reason, options, evidence
    basis = models.JSONField()  # what it rests on: when that changes, it is void
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="proposal_kind_known",
                condition=Q(kind__in=[kind.value for kind in DecisionKind]),
            ),
            models.UniqueConstraint(name="proposal_once_per_form", fields=["token"]),
            # Two who read the same version: one of them proposes.
            models.UniqueConstraint(
                name="proposal_once_per_hold_version", fields=["hold", "hold_version"]
            ),
        ]


class ProposalEnd(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    proposal = models.OneToOneField(DecisionProposal, on_delete=models.PROTECT, related_name="end")
    kind = models.CharField(max_length=16)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    by_name = models.CharField(max_length=320, blank=True)
    note = models.TextField(blank=True)  # the reason of a refusal, or what has changed
    token = models.UUIDField(null=True)  # of the form: submitting it twice counts once
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="proposal_end_known",
                condition=Q(kind__in=[kind.value for kind in ProposalEndKind]),
            ),
            # Whatever ends it but a change of the facts is somebody's act.
            models.CheckConstraint(
                name="proposal_end_by_somebody",
                condition=Q(kind=ProposalEndKind.VOID, by=None)
                | (~Q(kind=ProposalEndKind.VOID) & Q(by__isnull=False, token__isnull=False)),
            ),
            models.UniqueConstraint(name="proposal_end_once_per_form", fields=["token"]),
        ]
