"""The execution record in Django's admin: tenants are set up here, everything else is only read.

Staff see the runs of those tenants that they may see in the console, and no payloads: those are on
the run's page, for those who may see them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from guardian.admin import GuardedModelAdmin

from workflows import access
from workflows.models import Attempt, Run, Tenant

if TYPE_CHECKING:
    ReadOnlyBase = admin.ModelAdmin[Any]
    TenantBase = admin.ModelAdmin[Tenant]
else:
    ReadOnlyBase = admin.ModelAdmin
    TenantBase = GuardedModelAdmin


admin.site.site_header = admin.site.site_title = "Romulus administration"


class ReadOnly(ReadOnlyBase):
    """Shows rows and changes none: no adding, changing or deleting, and no action on many."""

    actions = None
    show_full_result_count = False
    list_per_page = 50

    def has_add_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        return False


@admin.register(Tenant)
class TenantAdmin(TenantBase):
    """Who may see a tenant is set under "Object permissions". Tenants are not deleted."""

    list_display = ("name", "slug")
    search_fields = ("name", "slug")
    actions = None

    def has_delete_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        return False


@admin.register(Run)
class RunAdmin(ReadOnly):
    fields = (
        "id",
        "workflow",
        "version",
        "tenant",
        "state",
        "step",
        "visit",
        "start_key",
        "fence",
        "ready_at",
        "lease_expires_at",
        "created_at",
        "finished_at",
    )
    list_display = ("id", "workflow", "version", "tenant", "state", "step", "created_at")
    list_filter = ("state", "workflow")
    list_select_related = ("tenant",)
    search_fields = ("id", "start_key")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        return access.visible_runs(request.user)  # type: ignore[arg-type]  # staff are signed in


@admin.register(Attempt)
class AttemptAdmin(ReadOnly):
    fields = (
        "id",
        "run",
        "step",
        "visit",
        "number",
        "worker",
        "fence",
        "state",
        "claimed_at",
        "ended_at",
        "error",
    )
    list_display = ("id", "run", "step", "number", "fence", "state", "claimed_at", "ended_at")
    list_filter = ("state",)
    list_select_related = ("run",)
    search_fields = ("id", "run__id")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Attempt]:
        visible = access.visible_runs(request.user)  # type: ignore[arg-type]
        return Attempt.objects.filter(run__in=visible)
