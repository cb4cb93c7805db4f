"""The form of a review of a broken contract. The rules are in `services.contradictions`."""

from __future__ import annotations

from django import forms


class ProviderReviewForm(forms.Form):
    """What was shown, and what was found out about it."""

    shown = forms.DateTimeField(
        required=False,
        error_messages={"invalid": "This form is incomplete. Reload the page."},
    )
    note = forms.CharField(
        required=False, error_messages={"null_characters_not_allowed": "Write plain text."}
    )
