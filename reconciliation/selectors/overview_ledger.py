"""What the overview reads of the ledger: never more rows than are named here, whatever there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Count, Exists, F, FilteredRelation, IntegerField, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from reconciliation import access
from reconciliation.core.facts import HoldReason
from reconciliation.core.figures import Day, Sent, day_of
from reconciliation.core.states import EvidenceKind, HoldState, OperationState, TransmissionState
from reconciliation.models import Decision, Evidence, Operation, Provider, Transmission
from reconciliation.models.evidence import DUPLICATE_AUDIT
from workflows.models.ids import id_at

DAY = timedelta(days=1)
MONTH = timedelta(days=30)
# The newest of the day, whoever may see them.
OPERATIONS_LOOKED_AT = 3_000
# The oldest of those without an outcome.
UNSETTLED_LOOKED_AT = 10_000
WRONG_SHOWN = 5
PROVIDERS_SHOWN = 10
WITHOUT_OUTCOME = (OperationState.UNKNOWN, OperationState.HELD)


# --- what has no outcome, or the wrong one ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Open:
    """An operation that is not settled: since when, under which provider, and when it is due."""

    pk: UUID
    state: str
    provider: UUID
    summary: str
    created_at: datetime
    first_sent_at: datetime | None
    due_at: datetime | None
    reason: str | None

    @property
    def is_wrong(self) -> bool:
        """It took effect, and the result is not as meant."""
        return (
            self.state == OperationState.POSTCONDITION_FAILED
            or self.reason == HoldReason.POSTCONDITION_FAILED
        )

    @property
    def has_no_outcome(self) -> bool:
        return self.first_sent_at is not None and not self.is_wrong

    def is_late(self, now: datetime) -> bool:
        return self.due_at is not None and self.due_at <= now


def open_operations(tenants: Collection[UUID]) -> Sequence[Open]:
    """The oldest operations of `tenants` without an outcome, or with the wrong one."""
    states = (*WITHOUT_OUTCOME, OperationState.POSTCONDITION_FAILED)
    oldest = Operation.objects.filter(state__in=states).order_by("pk")
    rows = (
        Operation.objects.filter(
            pk__in=oldest.values("pk")[:UNSETTLED_LOOKED_AT], run__tenant__in=tenants
        )
        .annotate(hold=FilteredRelation("holds", condition=Q(holds__state=HoldState.OPEN)))
        .order_by("pk")
    )
    fields = ("pk", "state", "provider_id", "summary", "created_at", "first_sent_at")
    return [Open(*row) for row in rows.values_list(*fields, "hold__due_at", "hold__reason")]


# --- the day ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stretch:
    """The figures of the newest operations of the day, and from when on they count."""

    day: Day
    since: datetime


def stretch_of(tenants: Collection[UUID], now: datetime) -> Stretch:
    day = Operation.objects.filter(pk__gte=id_at(now - DAY)).order_by("-pk")
    newest = day.values("pk")[:OPERATIONS_LOOKED_AT]
    edge = day.values("created_at")[OPERATIONS_LOOKED_AT - 1 : OPERATIONS_LOOKED_AT]
    sends = Transmission.objects.filter(operation=OuterRef("pk")).order_by()
    left = sends.exclude(state=TransmissionState.NOT_SENT).values("operation")
    unknown = sends.filter(state=TransmissionState.UNKNOWN).order_by("number")
    rows = list(
        Operation.objects.filter(pk__in=newest, run__tenant__in=tenants)
        .annotate(
            sends=Coalesce(Subquery(left.annotate(n=Count("pk")).values("n"), IntegerField()), 0),
            unknown_at=Subquery(unknown.values("ended_at")[:1]),
            by_person=Exists(Decision.objects.filter(operation=OuterRef("pk"))),
            edge=Subquery(edge),
        )
        .values_list("edge", "sends", "unknown_at", "settled_at", "by_person")
    )
    edges = {edge for edge, *_ in rows if edge is not None}
    return Stretch(day_of(Sent(*row[1:]) for row in rows), min(edges, default=now - DAY))


# --- providers, and effects that are there twice ----------------------------------------------


def providers_of(user: User) -> list[Provider]:
    """The providers that `user` may see, those with trouble first; each with its switches."""
    shown = access.visible_providers(user).filter(stands_in_for=None).prefetch_related("stops")
    ordered = shown.order_by(F("contradicted_at").desc(nulls_last=True), "name")
    return list(ordered[: PROVIDERS_SHOWN + 1])


def doubles_of(tenants: Collection[UUID], now: datetime) -> list[tuple[UUID, str, datetime]]:
    """The operations that were found to have more than one effect, the latest first."""
    found = (
        Evidence.objects.filter(
            kind=EvidenceKind.CONFLICT,
            source=DUPLICATE_AUDIT,
            recorded_at__gte=now - MONTH,
            operation__run__tenant__in=tenants,
        )
        .order_by("-recorded_at")
        .values_list("operation_id", "operation__summary", "recorded_at")
    )
    first: dict[UUID, tuple[UUID, str, datetime]] = {}
    for row in found[:100]:
        first.setdefault(row[0], row)
    return list(first.values())


def by_provider(rows: Sequence[Open]) -> tuple[Counter[UUID], Counter[UUID]]:
    """How many of each provider are unknown, and how many are held."""
    unknown = Counter(row.provider for row in rows if row.state == OperationState.UNKNOWN)
    return unknown, Counter(row.provider for row in rows if row.state == OperationState.HELD)
