"""How one person wants the console: preferences only, nothing that is a right."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import models


class Profile(models.Model):
    """A person without a row has the defaults."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="profile"
    )
    # A name of the IANA database; empty: UTC, with the browser's own time beside it on hover.
    time_zone = models.CharField(max_length=64, blank=True, default="", db_default="")
    # Single letters as shortcuts (WCAG 2.1.4: they can be switched off).
    letters = models.BooleanField(default=True, db_default=True)
    # Pages keep themselves up to date.
    live = models.BooleanField(default=True, db_default=True)

    def __str__(self) -> str:
        return f"profile of {self.user_id}"

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone or "UTC")
