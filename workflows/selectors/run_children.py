"""The runs that a run started, and the one that it was started by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Case, Count, IntegerField, Q, QuerySet, Value, When
from django.urls import reverse

from workflows.core.states import FINAL_RUN_STATES, RunState
from workflows.core.words import who
from workflows.models import Run
from workflows.pages import Children, ChildRow, Fact, Link, Mark
from workflows.selectors.paging import address, as_uuid
from workflows.selectors.run_steps import workflow_of
from workflows.selectors.words import heading, label_of, title_of

CHILDREN_SHOWN = 20

# In which order they are listed: what needs somebody first, what is done last.
RANKS = {
    RunState.HELD: 0,
    RunState.FAILED: 1,
    RunState.CANCELLED: 1,
    RunState.RUNNING: 2,
    RunState.READY: 2,
    RunState.WAITING: 3,
    RunState.COMPLETED: 4,
}


def child_rows(run: Run, after: str = "") -> tuple[QuerySet[Any], QuerySet[Run]]:
    """How many of its runs are in which state, and a page of them; to be read.

    Args:
        after: the page after a row, as `next_url` names it; what names none is the first page.
    """
    counted = Run.objects.filter(parent=run).values("state").annotate(number=Count("pk"))
    return counted.values_list("state", "number"), page_of(run, after)


def children_of(
    run: Run, counted: Iterable[tuple[str, int]], rows: list[Run], now: datetime, after: str = ""
) -> Children | None:
    """What those `child_rows` say of the runs that `run` started; None when it started none."""
    counts = dict(counted)
    if not counts:
        return None
    here = reverse("run", args=[run.pk])
    more = len(rows) > CHILDREN_SHOWN
    rows = rows[:CHILDREN_SHOWN]
    last = f"{RANKS[RunState(rows[-1].state)]}.{rows[-1].pk}" if more else ""
    return Children(
        rows=tuple(row_of(run, child, now) for child in rows),
        total=sum(counts.values()),
        counts=tuple(
            Fact(state.value, f"{counts[state]:,}") for state in RunState if counts.get(state)
        ),
        url=address(reverse("runs"), {"parent": str(run.pk)}),
        first_url=f"{here}#children" if after else "",
        next_url=f"{address(here, {'children': last})}#children" if more else "",
    )


def unfinished_children(run: Run) -> int:
    return Run.objects.filter(parent=run).exclude(state__in=FINAL_RUN_STATES).count()


def page_of(run: Run, after: str) -> QuerySet[Run]:
    """One more row than a page has, so that it is known whether there are more."""
    whens = [When(state=state, then=Value(rank)) for state, rank in RANKS.items()]
    rank = Case(*whens, default=Value(0), output_field=IntegerField())
    ranked = Run.objects.filter(parent=run).defer("input").annotate(rank=rank)
    of_rank, _, pk = after.partition(".")
    last = as_uuid(pk)
    if last is not None and of_rank in {str(rank) for rank in RANKS.values()}:
        ranked = ranked.filter(Q(rank__gt=int(of_rank)) | Q(rank=int(of_rank), pk__gt=last))
    return ranked.order_by("rank", "pk")[: CHILDREN_SHOWN + 1]


def row_of(run: Run, child: Run, now: datetime) -> ChildRow:
    return ChildRow(
        url=reverse("run", args=[child.pk]),
        id=child.pk,
        name=label_of(child) or title_of(child),
        place=place_in_parent(child, run),
        state=child.state,
        step=child.step,
        message=(child.failure or {}).get("message", ""),
        started_at=child.created_at,
        ended_at=child.finished_at,
        marks=marks_of(child, now),
    )


def place_in_parent(child: Run, parent: Run | None) -> str:
    """Where in its parent a run was started: "pack_and_bill, branch 2"."""
    if child.parent_index is None:
        return ""
    workflow = workflow_of(parent) if parent else None
    step = workflow.steps.get(child.parent_step) if workflow else None
    noun = "branch" if step is not None and step.kind == "parallel" else "number"
    visit = f", visit {child.parent_visit}" if (child.parent_visit or 1) > 1 else ""
    return f"{child.parent_step}, {noun} {child.parent_index + 1:,}{visit}"


def link_to(run: Run) -> Link:
    return Link(heading(run), reverse("run", args=[run.pk]))


def parents_of(runs: Sequence[Run]) -> dict[UUID, Run]:
    """The runs that started those of `runs` that others started: one query, none for none."""
    wanted = {run.parent_id for run in runs if run.parent_id is not None}
    return Run.objects.defer("input").in_bulk(wanted) if wanted else {}


def marks_of(run: Run, now: datetime) -> tuple[Mark, ...]:
    """What counts at `now` beside the state of a run that is not over."""
    if run.finished_at is not None:
        return ()
    marks: list[Mark] = []
    if run.lease_expires_at is not None and run.lease_expires_at <= now:
        marks.append(Mark("quiet", "Lease ran out"))
    if run.cancel_asked_at is not None:
        marks.append(Mark("cancelling", f"Cancel asked by {who(run.cancel_asked_by)}"))
    if run.paused_at is not None:
        marks.append(Mark("paused", f"Paused by {who(run.paused_by)}"))
    return tuple(marks)
