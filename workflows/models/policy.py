"""Policies of the authorisation boundary: versions, of which the latest of a scope is in force."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from workflows.core.boundary.policy import Policy, parse_policy
from workflows.models.ids import new_id
from workflows.models.tenant import Tenant

EVERY_TENANT = "every tenant"


class PolicyVersion(models.Model):
    """One version; never changed (triggers). A tenant's own goes before that for every tenant."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, null=True, blank=True, related_name="policies"
    )
    version = models.IntegerField()
    document = models.JSONField()
    # The groups that it names, by their names at the time: another group under one of them is not
    # meant.
    groups = models.JSONField(default=dict)
    note = models.CharField(max_length=1000)
    made_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="policy_version_once", fields=["tenant", "version"], nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        scope = self.tenant.slug if self.tenant else EVERY_TENANT
        return f"{scope}, {self.version}"

    @property
    def policy(self) -> Policy:
        return Policy(name=str(self), document=parse_policy(self.document))
