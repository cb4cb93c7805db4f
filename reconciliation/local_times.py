"""Form fields for a time that a person types by the clocks of their own zone."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone

from reconciliation.core.local_times import moment_at, zone_said

# What a browser's datetime-local field posts.
TIME_FORMATS = ("%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")
INVALID = "Give date and time, such as 2026-03-10 18:00."


class LocalTimeField(forms.DateTimeField):
    """A time by the clocks of `zone`, which its form sets; a moment in UTC once it is read."""

    widget = forms.DateTimeInput(attrs={"class": "input", "type": "datetime-local"})
    zone: tzinfo = UTC

    def __init__(self, **options: Any) -> None:
        said = {"invalid": INVALID}
        super().__init__(input_formats=TIME_FORMATS, error_messages=said, **options)

    def to_python(self, value: Any) -> datetime | None:
        read = super().to_python(value)
        if read is None:
            return None
        try:
            # Django has read what names no offset as UTC, its own zone (`own_profile`).
            if read.tzinfo == timezone.get_current_timezone():
                return moment_at(read.replace(tzinfo=None), self.zone)
            return read.astimezone(UTC)
        except OverflowError as error:
            raise ValidationError(INVALID, code="invalid") from error
        except ValueError as error:
            raise ValidationError(str(error), code="clocks") from error


class InOwnZone(forms.Form):
    """A form with times by its reader's clocks. `zone` comes back as it was shown with: what was
    typed by the clocks of another zone is not read by these."""

    zone = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)

    def __init__(self, data: Any, zone: tzinfo, **options: Any) -> None:
        self.own_zone = zone
        super().__init__(data, **options)
        self.fields["zone"].initial = str(zone)
        for field in self.fields.values():
            if isinstance(field, LocalTimeField):
                field.zone = zone

    def zone_said(self, now: datetime) -> str:
        return zone_said(self.own_zone, now)

    def leave_out(self, field: str) -> None:
        """Not to read what was typed for another choice than the one that was made."""
        self.errors.pop(field, None)
        self.cleaned_data[field] = None

    def ensure_same_zone(self, field: str) -> None:
        """Add to `field` that the zone is another one by now; the form goes on with that."""
        before = self.cleaned_data.get("zone") or str(UTC)
        if before == str(self.own_zone):
            return
        self.add_error(
            field,
            f"Your time zone was {before} when this form was shown, and is {self.own_zone} now. "
            "Say the time by that.",
        )
        data: Any = self.data
        self.data = data.copy()
        self.data["zone"] = str(self.own_zone)  # type: ignore[index]
