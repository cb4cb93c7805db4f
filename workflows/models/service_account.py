"""Agents and service accounts, which act without being a person, and who may ask the boundary."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from workflows.core.boundary.subjects import Subject, SubjectType
from workflows.models.ids import new_id
from workflows.models.tenant import Tenant

KINDS = [(SubjectType.AGENT.value, "agent"), (SubjectType.SERVICE.value, "service account")]


class ServiceAccount(models.Model):
    """Something that acts, with a person who answers for it. One that is off may do nothing."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    kind = models.CharField(max_length=16, choices=KINDS)
    # As policies and proposals name it, behind its kind.
    slug = models.CharField(
        max_length=100, validators=[RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9._@-]*$")]
    )
    name = models.CharField(max_length=200)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(name="service_account_once", fields=["kind", "slug"]),
            models.CheckConstraint(
                name="service_account_kind_known",
                condition=Q(kind__in=[kind for kind, _ in KINDS]),
            ),
        ]

    def __str__(self) -> str:
        return self.subject.title

    @property
    def subject(self) -> Subject:
        return Subject(SubjectType(self.kind), self.slug)


class AccessToken(models.Model):
    """What is shown instead of signing in; only its digest is kept. One of a tenant is an executor
    elsewhere, which asks the boundary; one of a person answers proposals in their name."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    label = models.CharField(max_length=100)
    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, null=True, related_name="access_tokens"
    )
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        related_name="access_tokens",
    )
    digest = models.CharField(max_length=64)  # SHA-256 of 32 random bytes
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="access_token_of_one",
                condition=Q(tenant__isnull=False, person__isnull=True)
                | Q(tenant__isnull=True, person__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return self.label
