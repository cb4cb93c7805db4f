"""The execution record in Django's admin: tenants are set up here, everything else is only read.

Staff see the runs of those tenants that they may see in the console, and no payloads: those are on
the run's page, for those who may see them.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from workflows import access
from workflows.admin.forms import TenantForm
from workflows.admin.guarded import Guarded, actor
from workflows.admin.kept import Kept
from workflows.admin.long_lists import FirstRows, state_filter
from workflows.core.states import AttemptState, RunState
from workflows.models import Attempt, Run, Tenant
from workflows.selectors.paging import as_uuid
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


class LongList(ReadOnly):
    """Rows by the million: found by ID, read by time, and neither counted nor searched through."""

    paginator = FirstRows
    search_help_text = "A whole ID."
    sortable_by = ()  # by ID, which is by time: any other order reads the whole table
    by_id: tuple[str, ...] = ("pk",)  # where the ID that is searched for may stand

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """By an index, or not at all: these tables have millions of rows."""
        if not self.get_search_fields(request) or not search_term:
            return queryset, False
        wanted = as_uuid(search_term.strip())
        if wanted is None:
            return queryset.none(), False
        return queryset.filter(reduce(or_, (Q(**{name: wanted}) for name in self.by_id))), False


@admin.register(Tenant)
class TenantAdmin(Guarded):
    kind = "tenant"
    form = TenantForm
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
class RunAdmin(LongList):
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
    list_filter = (state_filter(RunState),)
    list_select_related = ("tenant",)
    search_fields = ("id",)
    ordering = ("-id",)

    def recorded_as(self, row: Run) -> str:
        return f"run:{row.pk}"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        return access.visible_runs(request.user)  # type: ignore[arg-type]  # staff are signed in


@admin.register(Attempt)
class AttemptAdmin(LongList):
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
    list_filter = (state_filter(AttemptState),)
    list_select_related = ("run",)
    search_fields = ("id",)
    by_id = ("pk", "run_id")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Attempt]:
        visible = access.visible_runs(request.user)  # type: ignore[arg-type]
        return Attempt.objects.filter(run__in=visible)
