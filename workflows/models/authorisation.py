"""Every answer of the authorisation boundary, allow and deny; never changed (triggers)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from workflows.core.proposals import Asked
from workflows.models.ids import new_id
from workflows.models.policy import PolicyVersion
from workflows.models.proposal import Proposal
from workflows.models.tenant import Tenant


class AuthorisationRecord(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    at = models.DateTimeField(db_default=Now())
    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="authorisations", db_index=False
    )
    asked = models.CharField(max_length=16)  # when: at the proposal, the write, or by others
    subject = models.CharField(max_length=200)
    on_behalf_of = models.CharField(max_length=200, blank=True)
    action = models.CharField(max_length=100)
    allowed = models.BooleanField()
    failed = models.CharField(max_length=24, blank=True)  # the first check that did not pass
    reason = models.CharField(max_length=1000)
    findings = models.JSONField()  # every check: what it found
    policy = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, null=True)
    inputs_digest = models.CharField(max_length=100)
    # What was asked, encrypted, so that a new policy can be tried on it; null: too large.
    inputs_sealed = models.BinaryField(null=True)
    decision_id = models.CharField(max_length=200, blank=True)  # of an external decision point
    proposal = models.ForeignKey(
        Proposal, on_delete=models.PROTECT, null=True, related_name="authorisations", db_index=False
    )
    run = models.UUIDField(null=True)
    step = models.CharField(max_length=63, blank=True)
    operation = models.UUIDField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="authorisation_asked_known",
                condition=Q(asked__in=[asked.value for asked in Asked]),
            ),
            models.CheckConstraint(
                name="authorisation_denied_names_check",
                condition=Q(allowed=True, failed="") | (Q(allowed=False) & ~Q(failed="")),
            ),
        ]
        indexes = [
            models.Index(name="authorisation_newest", fields=["tenant", "-id"]),
            models.Index(
                name="authorisation_proposal",
                fields=["proposal", "-id"],
                condition=Q(proposal__isnull=False),
            ),
            models.Index(
                name="authorisation_operation",
                fields=["operation", "-id"],
                condition=Q(operation__isnull=False),
            ),
        ]
