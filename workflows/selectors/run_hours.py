"""The runs of the last day by the hour in which they started and by how they stand. One query."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, QuerySet
from django.db.models.functions import TruncHour

from workflows.core.states import RunState
from workflows.models import Run
from workflows.models.ids import id_at

HOURS = 24
# The newest of the day, whoever may see them: a page does not grow with what there is.
LOOKED_AT = 5_000


@dataclass(frozen=True, slots=True)
class RunHours:
    """How many started in each of `hours`, the earliest first, by their present state."""

    hours: tuple[datetime, ...]
    counts: Mapping[RunState, tuple[int, ...]]


def hours_to(now: datetime) -> tuple[datetime, ...]:
    last = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return tuple(last - timedelta(hours=back) for back in reversed(range(HOURS)))


def runs_by_hour(tenants: Collection[UUID], now: datetime) -> QuerySet[Run, Any]:
    """The newest runs of `tenants` that no other run started, up to the hour of `now`: their
    state, hour and number."""
    newest = Run.objects.filter(pk__gte=id_at(hours_to(now)[0])).order_by("-pk")
    return (
        Run.objects.filter(pk__in=newest.values("pk")[:LOOKED_AT], tenant__in=tenants, parent=None)
        .annotate(hour=TruncHour("created_at", tzinfo=UTC))
        .values("hour", "state")
        .annotate(number=Count("pk"))
        .values_list("state", "hour", "number")
    )


def run_hours(found: Iterable[tuple[str, datetime, int]], now: datetime) -> RunHours:
    hours = hours_to(now)
    numbers = {(state, hour): number for state, hour, number in found}
    seen = {state for state, _ in numbers}
    return RunHours(
        hours,
        {
            state: tuple(numbers.get((state.value, hour), 0) for hour in hours)
            for state in RunState
            if state.value in seen
        },
    )
