"""The execution record in Django's admin: tenants are set up here, everything else is only read.

Staff see the runs of those tenants that they may see in the console, and no payloads: those are on
the run's page, for those who may see them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from workflows import access
from workflows.admin.guarded import Guarded, actor
from workflows.admin.kept import Kept
from workflows.models import Attempt, Run, Tenant
from workflows.services.tenants import save_tenant

if TYPE_CHECKING:
    from django.forms import ModelForm


admin.site.site_header = admin.site.site_title = "Romulus administration"


class ReadOnly(Kept):
    """Shows rows and changes none: no adding, changing or deleting, and no action on many."""

    show_full_result_count = False
    list_per_page = 50

    def has_add_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        return False


@admin.register(Tenant)
class TenantAdmin(Guarded):
    kind = "tenant"
    list_display = ("name", "slug")
    search_fields = ("name", "slug")
    instead = "A tenant that is no more: take everybody's rights on it."

    def save_model(
        self,
        request: HttpRequest,
        obj: Tenant,
        form: ModelForm[Tenant],
        change: bool,  # noqa: ARG002 (Django's name)
    ) -> None:
        save_tenant(obj, by=actor(request), changed=form.changed_data)


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
    instead = "A run that is not wanted is cancelled on its own page."
    list_filter = ("state", "workflow")
    list_select_related = ("tenant",)
    search_fields = ("id", "start_key")
    ordering = ("-id",)

    def recorded_as(self, row: Run) -> str:
        return f"run:{row.pk}"

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
