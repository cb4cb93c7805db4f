"""How the runs stand that others wait for: counts by the step and visit that started them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Count
from django.db.models.fields.json import KT

from workflows.core.joining import Ends, ends_of
from workflows.core.run_facts import HeldChild
from workflows.core.states import RunState
from workflows.models import Run
from workflows.registry import registry
from workflows.selectors.words import heading

Place = tuple[UUID, str, int]
"""A run, and the step and visit at which it started others."""

HELD_NAMED = 5  # held runs that an explanation names; the page lists them all


@dataclass
class Join:
    """The runs that were started together, by their state and whether they wait for their turn."""

    counts: dict[tuple[str, bool], int] = field(default_factory=dict)
    at_once: int | None = None

    @property
    def ends(self) -> Ends:
        return ends_of(self.counts)


def joins_of(runs: Sequence[Run]) -> dict[Place, Join]:
    """What each of `runs` waits for, or waits for its turn beside: one query, none for none."""
    wanted = {place for run in runs if (place := waits_at(run)) is not None}
    if not wanted:
        return {}
    parents, steps, visits = (set(each) for each in zip(*wanted, strict=True))
    started = Run.objects.filter(parent__in=parents, parent_step__in=steps, parent_visit__in=visits)
    counted = started.values(
        *("parent", "parent_step", "parent_visit", "state"),
        *("parent__workflow", "parent__version"),
        reason=KT("failure__reason"),
    ).annotate(number=Count("pk"))
    joins: dict[Place, Join] = {}
    for row in counted:
        step = row["parent_step"]
        at_once = at_once_of(row["parent__workflow"], row["parent__version"], step)
        place = (row["parent"], step, row["parent_visit"])
        key = (row["state"], is_queued(row["state"], row["reason"]))
        counts = joins.setdefault(place, Join(at_once=at_once)).counts
        counts[key] = counts.get(key, 0) + row["number"]
    return joins


def is_queued(state: str, reason: str | None) -> bool:
    """Whether a run has not begun, because so many at once are not allowed."""
    return state == RunState.WAITING and reason == "turn"


def waits_at(run: Run) -> Place | None:
    reason = (run.failure or {}).get("reason") if run.state == RunState.WAITING else None
    if reason == "children":
        return (run.pk, run.step, run.visit)
    if reason == "turn" and run.parent_id is not None:
        return (run.parent_id, run.parent_step, run.parent_visit or 1)
    return None


def at_once_of(workflow: str, version: int, step: str) -> int | None:
    if not registry.has(workflow, version):
        return None
    found = registry.get(workflow, version).steps.get(step)
    return found.children.at_once if found is not None and found.children else None


def held_children(run: Run) -> tuple[HeldChild, ...]:
    """Some of the runs that this one waits for and that wait for a person."""
    held = Run.objects.filter(
        parent=run, parent_step=run.step, parent_visit=run.visit, state=RunState.HELD
    )
    return tuple(
        HeldChild(str(each.pk), heading(each), (each.failure or {}).get("message", ""))
        for each in held.order_by("parent_index")[:HELD_NAMED]
    )
