"""What the overview reads of the ledger: never more rows than are named here, whatever there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import (
    BooleanField,
    Case,
    Count,
    Exists,
    F,
    FilteredRelation,
    FloatField,
    Func,
    IntegerField,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    UUIDField,
    Value,
    When,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce

from reconciliation import access
from reconciliation.core.figures import AGES, Sent, Sums, sums_of
from reconciliation.core.states import EvidenceKind, HoldState, OperationState, TransmissionState
from reconciliation.models import (
    Decision,
    DispatchStop,
    Evidence,
    Operation,
    Provider,
    Transmission,
)
from reconciliation.models.evidence import DUPLICATE_AUDIT
from workflows.models import Run
from workflows.models.ids import id_at

MONTH = timedelta(days=30)
# The newest of the stretch, whoever may see them.
OPERATIONS_LOOKED_AT = 2_000
# The oldest of those without an outcome.
UNSETTLED_LOOKED_AT = 10_000
NO_ID_IS_GREATER = 2**128 - 1
COUNTED = 1_000
WRONG_SHOWN = 5
PROVIDERS_SHOWN = 10
DOUBLE, FAILED_CHECK = "double", "check"
WITHOUT_OUTCOME = (OperationState.UNKNOWN, OperationState.HELD)


# --- what has no outcome, or the wrong one ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Open:
    """So many operations of one provider that are not settled, alike in all that is shown.

    Attributes:
        age: the place of their age in `core.figures.AGES`.
        late: a person was to decide by now.
        sent: something of them may have left.
        unseen: they are held where the reader sees no cases.
    """

    provider: UUID
    state: str
    age: int
    late: bool
    sent: bool
    unseen: bool
    number: int
    oldest: datetime

    @property
    def has_no_outcome(self) -> bool:
        return self.sent and self.state in WITHOUT_OUTCOME


class WrongEffect(NamedTuple):
    """An operation that took effect other than meant; `kind` is of "wrong" in the vocabulary."""

    pk: UUID
    summary: str
    at: datetime
    kind: str


def open_operations(
    user: User, tenants: Collection[UUID], now: datetime
) -> QuerySet[Operation, Any]:
    """The oldest operations of `tenants` without an outcome, counted where they lie.

    `user` may see them all, and of the cases that they are those in some queues alone.
    """
    opened = Operation.objects.filter(state__in=WITHOUT_OUTCOME)
    beyond = opened.order_by("pk").values("pk")[UNSETTLED_LOOKED_AT : UNSETTLED_LOOKED_AT + 1]
    return (
        opened.filter(pk__lt=Coalesce(Subquery(beyond), Value(UUID(int=NO_ID_IS_GREATER))))
        .annotate(
            hold=FilteredRelation("holds", condition=Q(holds__state=HoldState.OPEN)),
            age=age_place("created_at", now),
            late=when(hold__due_at__lte=now),
            sent=when(first_sent_at__isnull=False),
            unseen=is_unseen(user),
        )
        .alias(tenant=tenant_of_them())
        .filter(tenant__in=tenants)
        .values_list("provider_id", "state", "age", "late", "sent", "unseen")
        .annotate(number=Count("pk"), oldest=Min("created_at"))
    )


def tenant_of_them() -> Coalesce:
    """Of an operation and its `hold`: thousands are held, and each tells its run's tenant."""
    of_run = Run.objects.filter(pk=OuterRef("run")).values("tenant")[:1]
    return Coalesce("hold__tenant", Subquery(of_run), output_field=UUIDField())


def is_unseen(user: User) -> Combinable:
    """Whether the open hold of an operation, if it has one, is none of `access.visible_holds`."""
    seen = access.in_visible_queues(user, "hold__")
    if not seen:
        return Value(False, output_field=BooleanField())
    known = Q(hold__isnull=True) | seen
    return Case(When(known, then=False), default=True, output_field=BooleanField())


def age_place(column: str, now: datetime) -> Case:
    """The place in `AGES` of how long `column` lies back."""
    bounds = [
        When(**{f"{column}__gt": now - bound}, then=place)
        for place, (bound, _) in enumerate(AGES)
        if bound is not None
    ]
    return Case(*bounds, default=len(AGES) - 1, output_field=IntegerField())


def when(**condition: Any) -> Case:
    return Case(When(**condition, then=True), default=False, output_field=BooleanField())


def wrong_effects(tenants: Collection[UUID], now: datetime) -> QuerySet[Operation, Any]:
    """The latest operations that took effect twice, as the duplicate finder found in a month, or
    not as meant, and were not settled since."""
    checks = Operation.objects.filter(
        state=OperationState.POSTCONDITION_FAILED, run__tenant__in=tenants
    ).annotate(at=F("created_at"), kind=Value(FAILED_CHECK))
    doubles = Operation.objects.filter(
        pk__in=Evidence.objects.filter(
            kind=EvidenceKind.CONFLICT, source=DUPLICATE_AUDIT, recorded_at__gte=now - MONTH
        ).values("operation"),
        run__tenant__in=tenants,
    ).annotate(at=F("created_at"), kind=Value(DOUBLE))
    shown = ("pk", "summary", "at", "kind")
    rows = checks.order_by("-pk").values_list(*shown)[:COUNTED]
    found = rows.union(doubles.order_by("-pk").values_list(*shown)[:COUNTED])
    return found.order_by("-at")


# --- a stretch of time ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stretch:
    """The figures of the newest operations of some time, and from when on they count."""

    sums: Sums
    since: datetime


def newest_since(tenants: Collection[UUID], since: datetime) -> QuerySet[Operation, Any]:
    """What `stretch_of` counts."""
    opened = Operation.objects.filter(pk__gte=id_at(since)).order_by("-pk")
    newest = opened.values("pk")[:OPERATIONS_LOOKED_AT]
    edge = opened.values("created_at")[OPERATIONS_LOOKED_AT - 1 : OPERATIONS_LOOKED_AT]
    sends = Transmission.objects.filter(operation=OuterRef("pk")).order_by()
    left = sends.exclude(state=TransmissionState.NOT_SENT).values("operation")
    unknown = sends.filter(state=TransmissionState.UNKNOWN).order_by("number")
    return (
        Operation.objects.filter(pk__in=newest, run__tenant__in=tenants)
        .annotate(
            sends=Coalesce(Subquery(left.annotate(n=Count("pk")).values("n"), IntegerField()), 0),
            latency=seconds(F("settled_at") - Subquery(unknown.values("ended_at")[:1])),
            settled=when(settled_at__isnull=False),
            by_person=Exists(Decision.objects.filter(operation=OuterRef("pk"))),
            edge=seconds(Subquery(edge)),
        )
        .values_list("edge", "sends", "latency", "settled", "by_person")
    )


def stretch_of(found: Sequence[Any], since: datetime) -> Stretch:
    edges = (datetime.fromtimestamp(edge, UTC) for edge, *_ in found[:1] if edge is not None)
    return Stretch(sums_of(Sent(*row[1:]) for row in found), next(edges, since))


def seconds(value: Combinable) -> Func:
    """A time or a length as a number, which takes far less to read than a date."""
    return Func(
        value, template="EXTRACT(EPOCH FROM %(expressions)s)::float8", output_field=FloatField()
    )


# --- providers --------------------------------------------------------------------------------


def providers_of(user: User) -> QuerySet[Provider]:
    """The providers that `user` may see, those with trouble first; `stopped` is how, as a whole."""
    whole = DispatchStop.objects.filter(provider=OuterRef("pk"), tenant=None, action="")
    shown = access.visible_providers(user).filter(stands_in_for=None)
    shown = shown.annotate(stopped=Subquery(whole.values("state")[:1]))
    ordered = shown.order_by(F("contradicted_at").desc(nulls_last=True), "name")
    return ordered[: PROVIDERS_SHOWN + 1]


def by_provider(rows: Sequence[Open], state: OperationState) -> Counter[UUID]:
    """How many of each provider are in `state`."""
    numbers: Counter[UUID] = Counter()
    for row in rows:
        if row.state == state:
            numbers[row.provider] += row.number
    return numbers
