"""What nothing is sent of for now: everything, or what one provider, tenant or action covers."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from reconciliation.core.facts import Dispatch
from reconciliation.models.provider import Provider
from workflows.core.words import who
from workflows.models import Tenant
from workflows.models.ids import new_id


class DispatchStop(models.Model):
    """A switch that somebody has thrown; without one, dispatch is on.

    An empty field covers any, so a stop without provider, tenant and action covers everything.
    Turning dispatch on again removes the row; what was when is in the audit record.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    provider = models.ForeignKey(
        Provider, on_delete=models.PROTECT, null=True, related_name="stops"
    )
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, null=True, related_name="+")
    action = models.CharField(max_length=100, blank=True, default="")
    state = models.CharField(max_length=8)
    by = models.CharField(max_length=200)
    reason = models.CharField(max_length=1000)
    at = models.DateTimeField(db_default=Now())
    # It ends by itself then; null: when somebody turns dispatch on again.
    until = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="dispatch_stop_once",
                fields=["provider", "tenant", "action"],
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                name="dispatch_stop_state_known",
                condition=Q(state__in=[Dispatch.PAUSED.value, Dispatch.OFF.value]),
            ),
        ]
        indexes = [
            models.Index(
                name="dispatch_stop_ends", fields=["until"], condition=Q(until__isnull=False)
            )
        ]

    @property
    def by_name(self) -> str:
        return who(self.by)

    @property
    def covers(self) -> str:
        """What it covers, in words for people."""
        return covered(self.provider, self.tenant, self.action)


def covered(provider: Provider | None, tenant: Tenant | None, action: str) -> str:
    """What a stop covers: "Payments", "everything", "action refund at Payments for Northwind"."""
    if provider is None and tenant is None and not action:
        return "everything"
    words = [f"action {action}"] if action else []
    if provider is not None:
        words.append(f"at {provider.name}" if words else provider.name)
    if tenant is not None:
        words.append(f"for {tenant.name}" if words else f"tenant {tenant.name}")
    return " ".join(words)
