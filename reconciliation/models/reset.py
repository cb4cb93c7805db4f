"""That somebody asked for a new password, until the link to choose one was sent."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class PasswordReset(models.Model):
    """A link that is still to be mailed; the row goes when it was. The link itself is made when it
    is sent, and is kept nowhere."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    site = models.URLField(max_length=300)  # what the link begins with
    asked_at = models.DateTimeField(db_default=Now())
    next_at = models.DateTimeField(db_default=Now())
