"""Who answers for a queue when: its shifts, of each week or of certain dates."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from reconciliation.core.rota import Dated, Weekly
from reconciliation.models.queue import ReviewQueue
from workflows.models.ids import new_id


class Shift(models.Model):
    """Of each week (`weekdays`, `starts`, `ends`, `zone`), or dated (`starts_at`, `ends_at`).

    While a dated one covers the moment, the weekly ones of its queue do not count.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    queue = models.ForeignKey(ReviewQueue, on_delete=models.CASCADE, related_name="shifts")
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="shifts"
    )
    weekdays = models.CharField(max_length=7, blank=True, default="")
    starts = models.TimeField(null=True, blank=True)
    ends = models.TimeField(null=True, blank=True)
    zone = models.CharField(max_length=64, blank=True, default="UTC")
    starts_at = models.DateTimeField(null=True, blank=True)
    ends_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="shift_weekly_or_dated",
                condition=Q(
                    ~Q(weekdays=""),
                    starts__isnull=False,
                    ends__isnull=False,
                    starts_at__isnull=True,
                    ends_at__isnull=True,
                )
                | Q(
                    weekdays="", starts__isnull=True, ends__isnull=True, ends_at__gt=F("starts_at")
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.person.get_username()}, {self.when}"

    @property
    def when(self) -> str:
        """Its time in words."""
        if self.starts_at is not None and self.ends_at is not None:
            return f"{self.starts_at:%Y-%m-%d %H:%M} to {self.ends_at:%Y-%m-%d %H:%M} UTC"
        days = ", ".join(DAY_NAMES[int(day)] for day in self.weekdays)
        return f"{days}, {self.starts:%H:%M} to {self.ends:%H:%M} {self.zone}"

    @property
    def rule(self) -> Weekly | Dated:
        """As the core reads it."""
        if self.starts_at is not None and self.ends_at is not None:
            return Dated(self.person_id, self.starts_at, self.ends_at)
        assert self.starts is not None
        assert self.ends is not None  # the table's own constraint
        days = frozenset(map(int, self.weekdays))
        return Weekly(self.person_id, days, self.starts, self.ends, self.zone)


DAY_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
