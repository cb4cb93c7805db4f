"""The forms of the boundary in the admin: what is typed is checked before a service saves it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import QuerySet

from workflows.admin.json_field import TypedJson
from workflows.core.boundary.policy import parse_policy
from workflows.core.errors import InvalidPolicy
from workflows.core.words import read_length
from workflows.models import Tenant
from workflows.services.policies import MAX_NOTE, MIN_NOTE, groups_meant

EXAMPLE = {
    "tools": [{"action": "refunds.create", "risk": "high"}],
    "grants": [
        {
            "subjects": ["workflow:approved_refund"],
            "actions": ["refunds.create"],
            "max_amount": "5000",
            "currency": "EUR",
        }
    ],
    "approvals": [
        {
            "actions": ["refunds.create"],
            "above": "1000",
            "currency": "EUR",
            "needed": 2,
            "groups": ["finance"],
        }
    ],
}


class OfATenant(forms.Form):
    """A form whose field `tenant` takes one of `tenants`."""

    def __init__(self, data: Any, tenants: QuerySet[Tenant]) -> None:
        super().__init__(data)
        self.fields["tenant"].queryset = tenants.order_by("name")  # type: ignore[attr-defined]


class PolicyForm(OfATenant):
    tenant = forms.ModelChoiceField(
        Tenant.objects.none(),
        required=False,
        empty_label="Every tenant that has none of its own",
        help_text="A tenant's own policy goes before that for every tenant.",
    )
    document = TypedJson(
        initial=EXAMPLE,
        widget=forms.Textarea(attrs={"rows": 24, "cols": 90, "spellcheck": "false"}),
        help_text="What no tool and no grant covers is denied. docs/boundary.md says what each "
        "part means.",
    )
    note = forms.CharField(
        min_length=MIN_NOTE,
        max_length=MAX_NOTE,
        widget=forms.Textarea(attrs={"rows": 2, "cols": 90}),
        help_text="Why it changes; it is kept with the version.",
    )

    def clean_note(self) -> str:
        note: str = self.cleaned_data["note"]
        if read_length(note) < MIN_NOTE:  # of what can be read, as the service counts
            raise forms.ValidationError(f"Write at least {MIN_NOTE} characters: why it changes.")
        return note

    def clean_document(self) -> Any:
        document = self.cleaned_data["document"]
        try:
            groups_meant(parse_policy(document))
        except InvalidPolicy as error:
            raise forms.ValidationError(str(error)) from error
        return document


class TokenForm(OfATenant):
    label = forms.CharField(max_length=100, help_text="Whose it is, such as the executor's name.")
    tenant = forms.ModelChoiceField(
        Tenant.objects.none(), help_text="It asks about this tenant's policy alone."
    )
