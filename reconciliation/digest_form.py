"""The form in which a person chooses their digest."""

from __future__ import annotations

from django import forms

from reconciliation.core.digests import Every
from reconciliation.services.profiles import zone_names


class DigestForm(forms.Form):
    every = forms.ChoiceField(
        label="How often",
        choices=[("", "Never"), (Every.DAY, "Every day"), (Every.WEEK, "Every Monday")],
        required=False,
    )
    at = forms.TimeField(
        label="At",
        initial="08:00",
        error_messages={"required": "Say at what time.", "invalid": "Give a time such as 08:00."},
    )
    zone = forms.ChoiceField(
        label="By the clocks of",
        initial="UTC",
        choices=lambda: [(zone, zone) for zone in zone_names()],
    )

    @property
    def chosen(self) -> Every | None:
        """How often; None: never."""
        text = self.cleaned_data["every"]
        return Every(text) if text else None
