"""The authorisation boundary in the admin: policies, agents, tokens; its record is only read.

Nothing here answers a proposal: that is done on its page, where everything is checked.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.cache import add_never_cache_headers
from django.utils.html import format_html

from workflows import access
from workflows.admin.boundary_forms import PolicyForm, TokenForm
from workflows.admin.guarded import actor, signed_in
from workflows.admin.kept import Kept
from workflows.admin.offering import seen_of
from workflows.admin.record import ReadOnly
from workflows.models import (
    AccessToken,
    Approval,
    AuthorisationRecord,
    PolicyVersion,
    Proposal,
    ServiceAccount,
    Tenant,
)
from workflows.services import audit
from workflows.services.access_tokens import add_token, end_token
from workflows.services.changes import changes_of
from workflows.services.policies import add_policy
from workflows.services.policy_preview import preview


@admin.register(PolicyVersion)
class PolicyAdmin(ReadOnly):
    """Added and read, never changed: another version takes the place of one."""

    fields = ("tenant", "version", "document", "note", "made_by", "created_at")
    list_display = ("__str__", "note", "made_by", "created_at")
    list_select_related = ("tenant",)
    ordering = ("-created_at",)

    def has_add_permission(self, request: HttpRequest, _obj: Model | None = None) -> bool:
        return request.user.has_perm("workflows.add_policyversion")

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Ask for a document, show what it would change, and put it in force when that is wanted.

        The preview and the saving are two buttons of one form: what is saved is what was shown.
        """
        del form_url, extra_context
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = PolicyForm(request.POST or None, seen_of(request, Tenant))
        shown = None
        if request.method == "POST" and form.is_valid():
            tenant, document = form.cleaned_data["tenant"], form.cleaned_data["document"]
            if "save" in request.POST:
                note = form.cleaned_data["note"]
                made = add_policy(tenant, document, by=signed_in(request), note=note)
                messages.success(request, f"The policy of {made} is in force.")
                return redirect(reverse("admin:workflows_policyversion_changelist"))
            shown = preview(document, access.visible_tenants(signed_in(request)), tenant)
        context = self.admin_site.each_context(request) | {
            "title": "Another version of a policy",
            "form": form,
            "preview": shown,
            "back": reverse("admin:workflows_policyversion_changelist"),
        }
        return TemplateResponse(request, "admin/policy.html", context)


@admin.register(ServiceAccount)
class ServiceAccountAdmin(Kept):
    """What acts without being a person; one that is switched off may do nothing from then on."""

    list_display = ("__str__", "name", "owner", "active")
    list_filter = ("kind", "active")
    list_select_related = ("owner",)
    search_fields = ("slug", "name")
    instead = "Switch it off: it may do nothing from then on."

    def get_readonly_fields(self, _request: HttpRequest, obj: Model | None = None) -> Any:
        return ("kind", "slug", "created_at") if obj else ("created_at",)

    def save_model(
        self,
        request: HttpRequest,
        obj: ServiceAccount,
        form: ModelForm[ServiceAccount],
        change: bool,
    ) -> None:
        changes = changes_of(obj, form.changed_data)
        super().save_model(request, obj, form, change)
        audit.record(actor(request), "set up", f"account:{obj.subject}", changes=changes)


@admin.register(AccessToken)
class AccessTokenAdmin(ReadOnly):
    """Who may ask the boundary from elsewhere, and the tokens of people, which each makes for
    themselves. A token is shown once, when it is made."""

    fields = ("label", "tenant", "person", "created_at", "ended_at", "ending")
    readonly_fields = ("ending",)
    list_display = ("label", "tenant", "person", "created_at", "ended_at")
    list_select_related = ("tenant", "person")

    def has_add_permission(self, request: HttpRequest, _obj: Model | None = None) -> bool:
        return request.user.has_perm("workflows.add_accesstoken")

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        del form_url, extra_context
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = TokenForm(request.POST or None, seen_of(request, Tenant))
        back = reverse("admin:workflows_accesstoken_changelist")
        context = self.admin_site.each_context(request) | {"title": "A new token", "back": back}
        if request.method == "POST" and form.is_valid():
            made = add_token(**form.cleaned_data, by=actor(request))
            shown = TemplateResponse(request, "admin/made_token.html", context | {"made": made})
            add_never_cache_headers(shown)
            return shown
        return TemplateResponse(request, "admin/token.html", context | {"form": form})

    def get_urls(self) -> list[URLPattern]:
        end = path(
            "<uuid:token>/end/",
            self.admin_site.admin_view(self.end_view),
            name="workflows_accesstoken_end",
        )
        return [end, *super().get_urls()]

    @admin.display(description="")
    def ending(self, token: AccessToken) -> str:
        if token.ended_at is not None:
            return "ended"
        url = reverse("admin:workflows_accesstoken_end", args=[token.pk])
        return format_html('<a href="{}">Let it end…</a>', url)

    def end_view(self, request: HttpRequest, token: Any) -> HttpResponse:
        if not request.user.has_perm("workflows.change_accesstoken"):
            raise PermissionDenied
        back = reverse("admin:workflows_accesstoken_changelist")
        if request.method == "POST":
            end_token(token, by=actor(request))
            messages.success(request, "The token has ended.")
            return redirect(back)
        context = self.admin_site.each_context(request) | {
            "title": "Let the token end",
            "back": back,
        }
        return TemplateResponse(request, "admin/token.html", context)


class OfTenants(ReadOnly):
    """Rows of the tenants that one may see in the console."""

    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        visible = access.visible_tenants(signed_in(request))
        return super().get_queryset(request).filter(**{f"{self.tenant_path}__in": visible})

    tenant_path = "tenant"


@admin.register(Proposal)
class ProposalAdmin(OfTenants):
    fields = (
        "id",
        "tenant",
        "run",
        "step",
        "action",
        "target",
        "summary",
        "amount",
        "currency",
        "proposed_by",
        "on_behalf_of",
        "asked_by",
        "state",
        "created_at",
        "expires_at",
        "ended_at",
        "used_by",
    )
    list_display = ("summary", "state", "proposed_by", "created_at", "expires_at")


@admin.register(Approval)
class ApprovalAdmin(OfTenants):
    tenant_path = "proposal__tenant"
    fields = ("proposal", "answer", "subject", "by_name", "note", "at", "event")
    list_display = ("proposal", "answer", "by_name", "at")
    list_select_related = ("proposal",)


@admin.register(AuthorisationRecord)
class AuthorisationAdmin(OfTenants):
    fields = (
        "at",
        "tenant",
        "asked",
        "subject",
        "on_behalf_of",
        "action",
        "allowed",
        "failed",
        "reason",
        "findings",
        "policy",
        "inputs_digest",
        "decision_id",
        "proposal",
        "run",
        "step",
        "operation",
    )
    list_display = ("at", "subject", "action", "allowed", "failed", "policy")
    list_filter = ("allowed",)
    list_select_related = ("policy__tenant",)
