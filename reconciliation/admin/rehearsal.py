"""Sandboxes, which are set up here, and what rehearsals showed, which is only read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest

from reconciliation.core.errors import InvalidProvider
from reconciliation.models import Provider, Rehearsal, Sandbox
from reconciliation.services.rehearsals import check_sandbox, save_sandbox
from workflows.admin import ReadOnly
from workflows.admin.guarded import signed_in
from workflows.admin.kept import Kept

if TYPE_CHECKING:
    SandboxFormBase = forms.ModelForm[Sandbox]
else:
    SandboxFormBase = forms.ModelForm


class SandboxForm(SandboxFormBase):
    credential = forms.CharField(
        required=False,
        strip=True,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"}),
        help_text="Of the sandbox. Kept sealed and never shown. Leave it empty to keep the one "
        "there is.",
    )

    class Meta:
        model = Sandbox
        fields = ("provider", "base_url", "account", "region", "action", "parameters")
        labels = {"base_url": "Address"}
        help_texts = {
            "account": "Not the one that real work goes to: what is rehearsed makes effects.",
            "action": "The write that is rehearsed, as the provider's settings name it.",
            "parameters": "Of that write, as JSON; {unique} in a text is another word each time.",
        }

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.errors:
            return cleaned
        for name in set(cleaned) - {"credential"}:
            setattr(self.instance, name, cleaned[name])
        try:
            check_sandbox(self.instance, cleaned["credential"])
        except InvalidProvider as error:
            self.add_error(None, str(error))
        return cleaned


@admin.register(Sandbox)
class SandboxAdmin(Kept):
    """Where a provider may be rehearsed."""

    form = SandboxForm
    list_display = ("provider", "base_url", "account", "action")
    list_select_related = ("provider",)

    def recorded_as(self, row: Sandbox) -> str:
        return f"sandbox:{row.provider.slug}"

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if db_field.name == "provider":
            # What stands in for another is rehearsed with that one.
            options["queryset"] = Provider.objects.filter(stands_in_for__isnull=True)
        return super().formfield_for_foreignkey(db_field, request, **options)

    def save_model(
        self,
        request: HttpRequest,
        obj: Sandbox,
        form: ModelForm[Sandbox],
        change: bool,  # noqa: ARG002 (Django's name)
    ) -> None:
        credential = form.cleaned_data.get("credential", "")
        save_sandbox(obj, by=signed_in(request), changed=form.changed_data, credential=credential)


@admin.register(Rehearsal)
class RehearsalAdmin(ReadOnly):
    """What a provider was seen to do."""

    fields = (
        "provider",
        "contract_version",
        "started_at",
        "ended_at",
        "complete",
        "claims",
        "breaches",
        "cases",
    )
    list_display = ("provider", "contract_version", "ended_at", "complete", "claims", "breaches")
    list_select_related = ("provider", "contract_version")
    ordering = ("-ended_at",)
