"""External decision points in the admin: saved by their service; no credential is ever shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest

from reconciliation.models import DecisionPoint
from reconciliation.services.decision_points import problem_of, save_decision_point
from workflows.admin.guarded import signed_in
from workflows.admin.kept import Kept

if TYPE_CHECKING:
    PointFormBase = forms.ModelForm[DecisionPoint]
else:
    PointFormBase = forms.ModelForm


class PointForm(PointFormBase):
    credential = forms.CharField(
        required=False,
        max_length=4000,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="A bearer token. Empty: as it is.",
    )

    class Meta:
        model = DecisionPoint
        fields = ("name", "slug", "base_url", "timeout_seconds")
        help_texts = {
            "slug": 'As a policy names it: {"decision_point": "<slug>"}.',
            "base_url": "/access/v1/evaluation is added. It must lead to a public address, unless "
            "ROMULUS_ALLOWED_ADDRESSES names it.",
            "timeout_seconds": "No answer by then is a no.",
        }

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors:
            point = DecisionPoint(slug=cleaned["slug"], base_url=cleaned["base_url"])
            wrong = problem_of(point)
            if wrong:
                self.add_error("base_url", f"Another address is needed: {wrong}.")
        return cleaned


@admin.register(DecisionPoint)
class DecisionPointAdmin(Kept):
    form = PointForm
    list_display = ("name", "slug", "base_url", "timeout_seconds")
    search_fields = ("name", "slug")
    instead = "Take it out of the policies that name it."

    def save_model(
        self,
        request: HttpRequest,
        obj: DecisionPoint,
        form: ModelForm[DecisionPoint],
        change: bool,  # noqa: ARG002 (Django's name)
    ) -> None:
        credential = form.cleaned_data.get("credential", "")
        save_decision_point(
            obj, by=signed_in(request), changed=form.changed_data, credential=credential
        )
