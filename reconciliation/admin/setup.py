"""Providers, queues and contracts in the admin: every save goes through `services.setup`."""

from __future__ import annotations

from typing import Any

import yaml
from django.contrib import admin
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from reconciliation.admin.forms import ContractForm, ProviderForm, QueueForm
from reconciliation.admin.notifications import said_on_call
from reconciliation.core.facts import Dispatch
from reconciliation.models import ContractVersion, Provider, ReviewQueue
from reconciliation.selectors.contract import OVERDUE, is_overdue
from reconciliation.services.providers import missing_of
from reconciliation.services.setup import (
    add_contract_version,
    save_provider,
    save_queue,
    set_owners,
)
from workflows.admin import ReadOnly
from workflows.admin.guarded import Guarded, signed_in
from workflows.selectors.paging import as_uuid

NOTHING = "none yet"
NOT_YET = "told after it is saved"


# --- providers --------------------------------------------------------------------------------


@admin.register(Provider)
class ProviderAdmin(Guarded):
    kind = "provider"
    instead = "To send nothing more to it, turn its dispatch off."
    form = ProviderForm
    list_display = ("name", "slug", "adapter", "switch", "contract_version")
    list_filter = ("adapter",)
    list_select_related = ("contract_version", "default_queue")
    search_fields = ("name", "slug")
    readonly_fields = ("contract_shown", "dispatch_shown", "missing", "contradicted")
    fieldsets = (
        (None, {"fields": ("name", "slug", "missing", "dispatch_shown")}),
        (
            "Connection",
            {
                "fields": (
                    *("adapter", "base_url", "account", "region", "credential", "settings"),
                    "dashboard_url",
                )
            },
        ),
        ("Contract", {"fields": ("contract_version", "contract_shown", "contradicted")}),
        ("Trust", {"fields": ("replay_trust", "look_up_trust", "look_ups_per_second")}),
        ("Review", {"fields": ("default_queue", "visible_parameters")}),
    )

    def save_model(
        self,
        request: HttpRequest,
        obj: Provider,
        form: ModelForm[Provider],
        change: bool,  # noqa: ARG002 (Django's name)
    ) -> None:
        credential = form.cleaned_data.get("credential", "")
        save_provider(obj, by=signed_in(request), changed=form.changed_data, credential=credential)

    @admin.display(description="Missing before anything is sent")
    def missing(self, provider: Provider) -> str:
        if provider._state.adding:
            return NOT_YET
        return "; ".join(missing_of(provider)) or "nothing: it is ready for writes"

    @admin.display(description="In force")
    def contract_shown(self, provider: Provider) -> str:
        """Its version, when it was reviewed, and what it rests on."""
        if provider.contract_version is None:
            return NOTHING
        contract = provider.contract_version.contract
        sources = "; ".join(
            f"{source.title} ({source.evidence}) {source.url}".strip()
            for source in contract.sources
        )
        overdue = OVERDUE if is_overdue(contract, timezone.now()) else "."
        return (
            f"{contract.name}, version {contract.version}. Reviewed {contract.reviewed_on}, "
            f"again by {contract.review_again_on}{overdue} Sources: {sources}"
        )

    @admin.display(description="Contradicted")
    def contradicted(self, provider: Provider) -> str:
        if provider.contradicted_at is None:
            return "never: it was not seen to break its contract"
        return f"{provider.contradicted_at:%Y-%m-%d %H:%M} UTC: {provider.contradiction}"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Provider]:
        return super().get_queryset(request).prefetch_related("stops")

    @admin.display(description="Dispatch")
    def switch(self, provider: Provider) -> str:
        return provider.dispatch

    @admin.display(description="Dispatch")
    def dispatch_shown(self, provider: Provider) -> str:
        if provider._state.adding:
            return Dispatch.ON
        url = reverse("dispatch_change", query={"provider": provider.slug})
        return format_html(
            '{}. <a href="{}">Turn it on, to pause, or off…</a>', provider.dispatch, url
        )


# --- queues -----------------------------------------------------------------------------------


@admin.register(ReviewQueue)
class ReviewQueueAdmin(Guarded):
    kind = "queue"
    form = QueueForm
    list_display = ("name", "slug", "tenant", "provider", "action", "due_after")
    list_select_related = ("tenant", "provider")
    filter_horizontal = ("owners",)
    readonly_fields = ("on_call",)
    search_fields = ("name", "slug")

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        form: Any = super().get_form(request, obj, change, **options)
        form.by = signed_in(request)  # a class of this request's own
        return form

    @admin.display(description="On call now")
    def on_call(self, queue: ReviewQueue) -> str:
        return said_on_call(queue)

    def save_model(
        self,
        request: HttpRequest,
        obj: ReviewQueue,
        form: ModelForm[ReviewQueue],
        change: bool,  # noqa: ARG002 (Django's name)
    ) -> None:
        save_queue(obj, by=signed_in(request), changed=form.changed_data)

    def save_related(
        self,
        request: HttpRequest,
        form: Any,
        formsets: Any,  # noqa: ARG002 (Django's name)
        change: bool,  # noqa: ARG002 (Django's name)
    ) -> None:
        set_owners(form.instance, form.cleaned_data["owners"], by=signed_in(request))


# --- contracts --------------------------------------------------------------------------------


@admin.register(ContractVersion)
class ContractVersionAdmin(ReadOnly):
    """Added and read, never changed: operations keep the version they were opened under."""

    fields = ("slug", "version", "document", "created_at", "from_it")
    list_display = ("slug", "version", "reviewed_on", "review_again_on", "created_at")
    search_fields = ("slug",)
    ordering = ("slug", "-version")

    @admin.display(description="Reviewed")
    def reviewed_on(self, row: ContractVersion) -> str:
        return str(row.contract.reviewed_on)

    @admin.display(description="Again by")
    def review_again_on(self, row: ContractVersion) -> str:
        overdue = ", overdue" if is_overdue(row.contract, timezone.now()) else ""
        return f"{row.contract.review_again_on}{overdue}"

    @admin.display(description="Changed")
    def from_it(self, row: ContractVersion) -> str:
        url = reverse("admin:reconciliation_contractversion_add")
        link = '<a href="{}?from={}">Add a version that starts from this one…</a>'
        return format_html(link, url, row.pk)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """The document of the version that the new one starts from, under the next number."""
        wanted = as_uuid(request.GET.get("from", ""))
        before = ContractVersion.objects.filter(pk=wanted).first() if wanted else None
        if before is None:
            return {}
        newest = ContractVersion.objects.filter(slug=before.slug).latest("version")
        document = before.document | {"version": newest.version + 1}
        return {"text": yaml.safe_dump(document, sort_keys=False, allow_unicode=True)}

    def has_add_permission(self, request: HttpRequest, _obj: Model | None = None) -> bool:
        return request.user.has_perm("reconciliation.add_contractversion")

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if obj is None:
            return ContractForm
        return super().get_form(request, obj, change, **kwargs)

    def get_fields(self, _request: HttpRequest, obj: Any = None) -> Any:
        return ("text",) if obj is None else self.fields

    def save_form(
        self,
        request: HttpRequest,
        form: Any,
        change: bool,  # noqa: ARG002 (Django's name)
    ) -> ContractVersion:
        return add_contract_version(form.document, by=signed_in(request))

    def save_model(self, *_: Any, **__: Any) -> None:
        """It is added already, by the service."""

    def save_related(self, *_: Any, **__: Any) -> None:
        """It has none."""
