"""The runs of a stretch of time by when they started and by how they stand. One query."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, DateTimeField, F, Func, QuerySet, Value

from workflows.core.ranges import EPOCH, Range
from workflows.core.states import RunState
from workflows.models import Run
from workflows.models.ids import id_at

# The newest of them, whoever may see them: a page does not grow with what there is.
LOOKED_AT = 5_000


@dataclass(frozen=True, slots=True)
class RunSlices:
    """How many started in each slice, by their present state; `starts`: the earliest first."""

    starts: tuple[datetime, ...]
    counts: Mapping[RunState, tuple[int, ...]]


def runs_by_slice(tenants: Collection[UUID], cut: Range, now: datetime) -> QuerySet[Run, Any]:
    """The newest runs of `tenants` that no other run started, up to the slice of `now`: their
    state, slice and number."""
    newest = Run.objects.filter(pk__gte=id_at(cut.starts(now)[0])).order_by("-pk")
    part = Func(
        Value(cut.slice),
        F("created_at"),
        Value(EPOCH),
        function="date_bin",
        output_field=DateTimeField(),
    )
    return (
        Run.objects.filter(pk__in=newest.values("pk")[:LOOKED_AT], tenant__in=tenants, parent=None)
        .annotate(slice=part)
        .values("slice", "state")
        .annotate(number=Count("pk"))
        .values_list("state", "slice", "number")
    )


def run_slices(found: Iterable[tuple[str, datetime, int]], cut: Range, now: datetime) -> RunSlices:
    starts = cut.starts(now)
    numbers = {(state, start): number for state, start, number in found}
    seen = {state for state, _ in numbers}
    return RunSlices(
        starts,
        {
            state: tuple(numbers.get((state.value, start), 0) for start in starts)
            for state in RunState
            if state.value in seen
        },
    )
