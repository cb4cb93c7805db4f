"""The ledger in the admin: read, for what the reader may see; never written, never deleted (P8)."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from reconciliation import access
from reconciliation.core.facts import HoldReason
from reconciliation.core.states import (
    DecisionKind,
    EvidenceKind,
    HoldState,
    OperationState,
    TransmissionState,
)
from reconciliation.models import (
    AuditEntry,
    Decision,
    DecisionProposal,
    Evidence,
    Hold,
    Operation,
    Transmission,
)
from workflows.admin import LongList
from workflows.admin.long_lists import state_filter
from workflows.admin.offering import SeenFilter


def operations(request: HttpRequest) -> QuerySet[Operation]:
    return access.visible_operations(request.user)  # type: ignore[arg-type]  # staff are signed in


@admin.register(Operation)
class OperationAdmin(LongList):
    """Without parameters and request: what may be seen of those is on the operation's page."""

    fields = (
        "id",
        "run",
        "step",
        "provider",
        "contract_version",
        "action",
        "target",
        "summary",
        "state",
        "resource",
        "first_sent_at",
        "replay_not_after",
        "due_at",
        "created_at",
        "settled_at",
    )
    list_display = ("id", "summary", "provider", "state", "created_at")
    list_filter = (state_filter(OperationState), ("provider", SeenFilter))
    list_select_related = ("provider",)
    search_fields = ("id",)
    by_id = ("pk", "run_id")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Operation]:
        return operations(request)


class OfAnOperation(LongList):
    """Rows that belong to an operation, for those who may see it."""

    list_select_related = ("operation",)
    search_fields = ("id",)
    by_id = ("pk", "operation_id")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).filter(operation__in=operations(request))


@admin.register(Transmission)
class TransmissionAdmin(OfAnOperation):
    list_display = ("id", "operation", "number", "purpose", "state", "started_at", "ended_at")
    list_filter = (state_filter(TransmissionState),)


@admin.register(Evidence)
class EvidenceAdmin(OfAnOperation):
    """Without what the provider wrote: that is a payload."""

    fields = (
        "id",
        "operation",
        "transmission",
        "kind",
        "completes",
        "denies",
        "postcondition",
        "resource",
        "observed_at",
        "source",
        "by",
    )
    list_display = ("id", "operation", "kind", "resource", "source", "observed_at")
    list_filter = (state_filter(EvidenceKind, "kind"),)


@admin.register(Hold)
class HoldAdmin(LongList):
    list_display = (
        *("id", "run", "operation", "event", "queue"),
        *("reason", "state", "opened_at", "due_at"),
    )
    list_filter = (
        state_filter(HoldState),
        state_filter(HoldReason, "reason"),
        ("queue", SeenFilter),
    )
    list_select_related = ("run", "operation", "event", "queue")
    search_fields = ("id",)
    by_id = ("pk", "run_id", "operation_id", "event_id")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Hold]:
        return access.visible_holds(request.user)  # type: ignore[arg-type]


class OfAHold(LongList):
    """What people decide or propose on a hold, for those who may see it."""

    list_filter = (state_filter(DecisionKind, "kind"),)
    search_fields = ("id",)
    by_id = ("pk", "hold_id", "operation_id")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        visible = access.visible_holds(request.user)  # type: ignore[arg-type]
        return super().get_queryset(request).filter(hold__in=visible)


@admin.register(Decision)
class DecisionAdmin(OfAHold):
    list_display = ("id", "hold", "kind", "by_name", "second_name", "at")


@admin.register(DecisionProposal)
class DecisionProposalAdmin(OfAHold):
    list_display = ("id", "hold", "kind", "by_name", "became", "at")
    list_select_related = ("end",)

    @admin.display(description="Became")
    def became(self, row: DecisionProposal) -> str:
        end = getattr(row, "end", None)
        return end.kind if end is not None else "open"


@admin.register(AuditEntry)
class AuditEntryAdmin(LongList):
    """Of all tenants, so for administrators alone."""

    list_display = ("seq", "at", "actor", "verb", "object")
    search_fields = ("object",)
    search_help_text = "What it is about, as the record names it, such as queue:refunds."
    ordering = ("-seq",)

    def get_search_results(
        self, _request: HttpRequest, queryset: QuerySet[AuditEntry], search_term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        wanted = search_term.strip()
        return (queryset.filter(object=wanted) if wanted else queryset), False

    def has_view_permission(self, request: HttpRequest, _obj: Model | None = None) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)
