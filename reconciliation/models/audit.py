"""What people and settings did, in one chain of hashes that a missing or changed entry breaks."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class AuditEntry(models.Model):
    seq = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    actor = models.CharField(max_length=200)  # "user:3 ada", "worker:…", "system"
    verb = models.CharField(max_length=60)
    object = models.CharField(max_length=200)  # "operation:<id>"
    detail = models.JSONField(default=dict)
    # The chain, by the rule of `core.chain`.
    salt = models.CharField(max_length=32, default="")  # empty: chained by the first rule
    previous_hash = models.CharField(max_length=64)
    skip_hash = models.CharField(max_length=64, default="")
    hash = models.CharField(max_length=64)

    class Meta:
        verbose_name_plural = "audit entries"
        # The record of one thing, and what its page narrows down to.
        indexes = [
            models.Index(name="audit_object", fields=["object", "seq"]),
            models.Index(name="audit_actor", fields=["actor", "seq"]),
            models.Index(name="audit_verb", fields=["verb", "seq"]),
            models.Index(name="audit_at", fields=["at", "seq"]),
        ]
