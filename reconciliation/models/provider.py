"""One external system under one account and region, and the contract in force for it."""

from __future__ import annotations

from functools import cached_property

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from reconciliation.core.contracts import (
    LEAST_PER_SECOND,
    MOST_PER_SECOND,
    Contract,
    parse_contract,
)
from reconciliation.core.facts import Dispatch
from workflows.models.ids import new_id


class ContractVersion(models.Model):
    """One version of what a provider documents; never changed: operations keep their own."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField()
    version = models.PositiveIntegerField()
    document = models.JSONField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(name="contract_version_once", fields=["slug", "version"])
        ]

    def __str__(self) -> str:
        return f"{self.slug} version {self.version}"

    @cached_property
    def contract(self) -> Contract:
        return parse_contract(self.document, where=str(self))


class Provider(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=200)
    adapter = models.SlugField()
    account = models.CharField(max_length=200)
    region = models.CharField(max_length=100, blank=True)
    base_url = models.CharField(max_length=300)  # checked by `core.addresses`, also at each call
    # Its own page of a record, for people: https://…/{resource}; checked by `core.addresses`.
    dashboard_url = models.CharField(max_length=300, blank=True, default="")
    credential_sealed = models.BinaryField(default=b"", blank=True)
    settings = models.JSONField(default=dict, blank=True)  # the adapter's own; it checks them
    contract_version = models.ForeignKey(
        ContractVersion, on_delete=models.PROTECT, null=True, blank=True
    )
    # The only parameters that people see; every other is stored as a digest alone (promise P9).
    visible_parameters = models.JSONField(default=list, blank=True)
    # Probe before trust: why the contract's claim is used here. A rehearsal's result, or who has
    # accepted it in writing. Empty: the claim is not used.
    replay_trust = models.CharField(max_length=300, blank=True)
    look_up_trust = models.CharField(max_length=300, blank=True)
    # At most, by all workers together; a contract that documents less counts (`core.pacing`).
    look_ups_per_second = models.FloatField(
        default=10,
        db_default=10,
        validators=[MinValueValidator(LEAST_PER_SECOND), MaxValueValidator(MOST_PER_SECOND)],
    )
    contradicted_at = models.DateTimeField(null=True, blank=True)
    contradiction = models.CharField(max_length=300, blank=True)
    default_queue = models.ForeignKey(
        "reconciliation.ReviewQueue",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="default_of",
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="provider_look_up_rate",
                condition=Q(
                    look_ups_per_second__gte=LEAST_PER_SECOND,
                    look_ups_per_second__lte=MOST_PER_SECOND,
                ),
            )
        ]
        permissions = [
            ("pause_dispatch", "Can turn dispatch off and on"),
            ("configure", "Can set it up"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def dispatch(self) -> Dispatch:
        """The switch of this provider as a whole; others may stop more, or parts of it
        (`services.dispatch`). Reads `stops`, which lists fetch beforehand."""
        own = (stop for stop in self.stops.all() if stop.tenant_id is None and not stop.action)
        return next((Dispatch(stop.state) for stop in own), Dispatch.ON)


class LookUpPace(models.Model):
    """When a provider may be asked next. Apart from its provider, which people save as a whole."""

    provider = models.OneToOneField(
        Provider, on_delete=models.CASCADE, primary_key=True, related_name="pace"
    )
    next_at = models.DateTimeField()
    paused_until = models.DateTimeField(null=True)  # as the provider itself wants it

    def __str__(self) -> str:
        return f"{self.provider_id}, next at {self.next_at}"
