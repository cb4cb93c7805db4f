"""The form that throws a switch of dispatch. The rules are in `services.dispatch`."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from django import forms

from reconciliation.core.facts import Dispatch
from reconciliation.local_times import InOwnZone, LocalTimeField
from reconciliation.models import Provider
from reconciliation.services.dispatch import Scope
from workflows.models import Tenant

ANY = "any"


class SwitchForm(InOwnZone):
    """What is switched, to what, until when, and why; `seen`: the stop that it was shown with."""

    provider = forms.ModelChoiceField(
        Provider.objects.none(), to_field_name="slug", required=False, empty_label=ANY
    )
    tenant = forms.ModelChoiceField(
        Tenant.objects.none(), to_field_name="slug", required=False, empty_label=ANY
    )
    action = forms.CharField(max_length=100, required=False)
    state = forms.ChoiceField(
        choices=[(state.value, state.value) for state in Dispatch],
        error_messages={"required": "Choose whether dispatch is on, paused or off."},
    )
    until = LocalTimeField(required=False)
    reason = forms.CharField(
        required=False, error_messages={"null_characters_not_allowed": "Write plain text."}
    )

    seen = forms.CharField(required=False)

    def __init__(
        self, data: Any, zone: tzinfo, providers: Any, tenants: Any, **options: Any
    ) -> None:
        super().__init__(data, zone, **options)
        self.fields["provider"].queryset = providers  # type: ignore[attr-defined]
        self.fields["tenant"].queryset = tenants  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        if given.get("until"):
            self.ensure_same_zone("until")
        return given

    def scope(self) -> Scope:
        """What it covers; of a form that is not valid, as far as that can be read."""
        cleaned = getattr(self, "cleaned_data", {})
        return Scope(cleaned.get("provider"), cleaned.get("tenant"), cleaned.get("action", ""))
