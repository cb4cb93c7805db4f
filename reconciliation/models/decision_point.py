"""An external decision point that speaks the OpenID AuthZEN Authorization API."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Now

from workflows.models.ids import new_id

LONGEST_SECONDS = 30


class DecisionPoint(models.Model):
    """Where a policy's writes are asked about as well; a policy names it by its slug."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=200)
    # /access/v1/evaluation is added; checked by `core.addresses`, also at each call.
    base_url = models.CharField(max_length=300)
    credential_sealed = models.BinaryField(default=b"")  # a bearer token; empty: none
    # All of one question; no answer by then is a no.
    timeout_seconds = models.FloatField(
        default=2.0, validators=[MinValueValidator(0.1), MaxValueValidator(LONGEST_SECONDS)]
    )
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name
