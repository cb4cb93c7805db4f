"""An authenticated producer of events, and what it may send."""

from __future__ import annotations

from datetime import timedelta

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from workflows.core.sources import Refusal, Scheme
from workflows.models.ids import new_id
from workflows.models.tenant import Tenant

MEBIBYTE = 1024 * 1024


def json_only() -> list[str]:
    return ["application/json"]


def gzip_only() -> list[str]:
    return ["gzip"]


class EventSource(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=200)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="sources")
    scheme = models.CharField(
        max_length=24, choices=[(scheme.value, scheme.label) for scheme in Scheme]
    )
    # What the scheme needs beside secrets, such as the header of a plain HMAC.
    settings = models.JSONField(default=dict, blank=True)
    # How far the time in a signature may lie from the database's.
    tolerance = models.DurationField(default=timedelta(minutes=5))
    # Where the event's ID, type and correlation stand, by JMESPath. An empty path takes what the
    # scheme itself says, as Standard Webhooks does in its headers.
    id_path = models.CharField(max_length=500, blank=True)
    type_path = models.CharField(max_length=500, blank=True)
    correlation_path = models.CharField(max_length=500, blank=True)
    # By type: the JSON Schema that the payload of such an event fits.
    schemas = models.JSONField(default=dict, blank=True)
    max_bytes = models.IntegerField(default=MEBIBYTE, validators=[MinValueValidator(1)])
    # Requests a minute; null: as many as come.
    per_minute = models.IntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    content_types = models.JSONField(default=json_only)
    encodings = models.JSONField(default=gzip_only, blank=True)
    # How long bodies are kept; null: as long as the site keeps them.
    retain = models.DurationField(null=True, blank=True)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        permissions = [
            ("send_event", "Can send events by hand"),
            ("configure", "Can set it up"),
        ]
        constraints = [
            models.CheckConstraint(
                name="event_source_scheme_known",
                condition=Q(scheme__in=[scheme.value for scheme in Scheme]),
            )
        ]

    def __str__(self) -> str:
        return self.name


class SourceSecret(models.Model):
    """One of the secrets that a source signs with, sealed; several count while one is replaced."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    source = models.ForeignKey(EventSource, on_delete=models.PROTECT, related_name="secrets")
    label = models.CharField(max_length=100)
    sealed = models.BinaryField()
    valid_from = models.DateTimeField(db_default=Now())
    valid_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="source_secret_ends_after_its_start",
                condition=Q(valid_until__isnull=True) | Q(valid_until__gt=models.F("valid_from")),
            )
        ]


class RefusalCount(models.Model):
    """How often a source's deliveries were refused for one reason on one day.

    Nothing of a refused delivery is kept but this and a short note without secrets.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    source = models.ForeignKey(EventSource, on_delete=models.PROTECT, related_name="refusals")
    day = models.DateField()
    reason = models.CharField(max_length=24)
    number = models.IntegerField(default=1)
    last_at = models.DateTimeField()
    note = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="refusal_count_once", fields=["source", "day", "reason"]),
            models.CheckConstraint(
                name="refusal_reason_known",
                condition=Q(reason__in=[reason.value for reason in Refusal]),
            ),
        ]
