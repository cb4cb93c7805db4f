"""The runs list: who is where, and why, newest first."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.models import Count, QuerySet
from django.urls import reverse

from workflows.core.explain import Explanation
from workflows.core.states import FINAL_RUN_STATES, RunState
from workflows.models import Run
from workflows.pages import Filter, Pager, RunList, RunRow
from workflows.selectors.explanations import explain_runs, step_names
from workflows.selectors.paging import address, as_uuid, newest_first
from workflows.selectors.words import label_of

UNFINISHED = tuple(state for state in RunState if not state.is_final)


def run_list(
    runs: QuerySet[Run], now: datetime, *, state: str = "", before: str = "", after: str = ""
) -> RunList:
    """A page of `runs`, those that the reader may see; what is no state or no ID counts as none."""
    state = state if state in set(RunState) else ""
    shown = runs.filter(state=state) if state else runs
    rows, newer, older = newest_first(shown, as_uuid(before), as_uuid(after))
    why = explain_runs(rows, now)
    newest = not newer
    return RunList(
        rows=tuple(row_of(run, why[run.pk]) for run in rows),
        filters=filters(runs, state),
        pager=pager(rows, state, newer=newer, older=older),
        url=address(reverse("runs"), {"state": state, "before": before, "after": after}),
        filtered=bool(state),
        # A run that is started now appears on the newest page, so that one is always worth it.
        moving=newest or any(run.state not in FINAL_RUN_STATES for run in rows),
    )


def row_of(run: Run, why: Explanation) -> RunRow:
    names = step_names(run)
    return RunRow(
        id=run.pk,
        workflow=run.workflow,
        version=run.version,
        label=label_of(run),
        state=run.state,
        step=run.step,
        number=names.index(run.step) + 1 if run.step in names else 0,
        steps=len(names),
        sentence=why.sentence,
        started_at=run.created_at,
        ended_at=run.finished_at,
    )


def filters(runs: QuerySet[Run], current: str) -> tuple[Filter, ...]:
    """All, then each state. Only unfinished ones are counted: finished ones grow without end."""
    here = reverse("runs")
    counts = unfinished_counts(runs)
    every = Filter("All", here, current == "")
    return (
        every,
        *(
            Filter(
                state.value.capitalize(),
                address(here, {"state": state.value}),
                current == state,
                counts.get(state, 0) if state in UNFINISHED else None,
            )
            for state in RunState
        ),
    )


def unfinished_counts(runs: QuerySet[Run]) -> dict[str, int]:
    counted = runs.filter(state__in=UNFINISHED).values("state").annotate(count=Count("pk"))
    return dict(counted.values_list("state", "count"))


def pager(rows: list[Run], state: str, *, newer: bool, older: bool) -> Pager:
    here = reverse("runs")

    def beside(name: str, run: UUID) -> str:
        return address(here, {"state": state, name: str(run)})

    if not rows:
        # Past the end: the way back is the beginning.
        return Pager(newer=address(here, {"state": state}) if newer or older else "")
    return Pager(
        newer=beside("after", rows[0].pk) if newer else "",
        older=beside("before", rows[-1].pk) if older else "",
    )
