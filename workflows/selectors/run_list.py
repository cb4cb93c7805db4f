"""The runs list: who is where, and why, newest first.

Runs that another run started are reached from its page; they are listed here only when asked for.
What is counted is what is listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, QuerySet
from django.urls import reverse

from workflows.core.explain import explain
from workflows.core.run_facts import RunFacts, WholePause
from workflows.core.states import FINAL_RUN_STATES, RunState
from workflows.models import Run
from workflows.pages import Export, Filter, Pager, Paused, RunList, RunRow
from workflows.selectors.explanations import facts_of
from workflows.selectors.paging import address, as_uuid, newest_first
from workflows.selectors.run_children import link_to, marks_of, parents_of, place_in_parent
from workflows.selectors.run_page import paused_of
from workflows.selectors.stamps import REDRAWN_EVERY
from workflows.selectors.words import label_of

UNFINISHED = tuple(state for state in RunState if not state.is_final)
WITH = "with"  # the runs that others started are listed too


@dataclass(frozen=True)
class Asked:
    """What is to be listed, as the address says it; what it cannot mean counts as not said."""

    state: str = ""
    children: str = ""
    parent: str = ""
    before: str = ""
    after: str = ""

    def query(self, **changes: str) -> dict[str, str]:
        """What keeps the choice, with other places in the list."""
        kept = {"state": self.state, "children": self.children, "parent": self.parent}
        return kept | changes


def run_list(runs: QuerySet[Run], now: datetime, asked: Asked) -> tuple[RunList, datetime]:
    """A page of `runs`, those that the reader may see; and until when it stays as it is while
    nothing of what it is made of changes (`list_stamps`)."""
    asked = understood(runs, asked)
    among = within(runs, asked)
    shown = in_state(among, asked).defer("input")
    rows, newer, older = newest_first(shown, as_uuid(asked.before), as_uuid(asked.after))
    facts = facts_of(rows)
    parents = parents_of(rows)
    parent = runs.get(pk=asked.parent) if asked.parent else None
    page = RunList(
        rows=tuple(row_of(run, facts[run.pk], parents, now) for run in rows),
        filters=filters(among, asked),
        scope=() if parent else scope(asked),
        pager=pager(rows, asked, newer=newer, older=older),
        export=Export(address(reverse("runs_export"), asked.query())),
        url=address(
            reverse("runs"), asked.query() | {"before": asked.before, "after": asked.after}
        ),
        filtered=bool(asked.state),
        parent=link_to(parent) if parent else None,
        pauses=pauses_among(facts),
        # A run that is started now appears on the newest page, so that one is always worth it.
        moving=not newer or any(run.state not in FINAL_RUN_STATES for run in rows),
    )
    return page, min([now + REDRAWN_EVERY, *turns(rows, facts, now)])


def turns(rows: Iterable[Run], facts: Mapping[UUID, RunFacts], now: datetime) -> Iterator[datetime]:
    """When one of `rows` that rests goes on, or its wait is over."""
    for run in rows:
        wait = facts[run.pk].wait
        for moment in (run.wake_at, wait.deadline if wait else None):
            if moment is not None and moment > now:
                yield moment


def understood(runs: QuerySet[Run], asked: Asked) -> Asked:
    parent = as_uuid(asked.parent)
    known = parent is not None and runs.filter(pk=parent).exists()
    return Asked(
        state=asked.state if asked.state in set(RunState) else "",
        children=WITH if asked.children == WITH and not known else "",
        parent=str(parent) if known else "",
        before=asked.before,
        after=asked.after,
    )


def in_state(among: QuerySet[Run], asked: Asked) -> QuerySet[Run]:
    return among.filter(state=asked.state) if asked.state else among


def listed(runs: QuerySet[Run], asked: Asked) -> QuerySet[Run]:
    """All that the list would show on its pages, of those that the reader may see."""
    asked = understood(runs, asked)
    return in_state(within(runs, asked), asked)


def within(runs: QuerySet[Run], asked: Asked) -> QuerySet[Run]:
    """The runs among which a state is chosen, and which are counted."""
    if asked.parent:
        return runs.filter(parent=UUID(asked.parent))
    return runs if asked.children else runs.filter(parent=None)


def row_of(run: Run, facts: RunFacts, parents: Mapping[UUID, Run], now: datetime) -> RunRow:
    parent = parents.get(run.parent_id) if run.parent_id else None
    return RunRow(
        id=run.pk,
        workflow=run.workflow,
        version=run.version,
        label=label_of(run),
        state=run.state,
        step=run.step,
        number=facts.number,
        steps=facts.steps,
        sentence=explain(facts, now).sentence,
        started_at=run.created_at,
        ended_at=run.finished_at,
        marks=marks_of(run, now),
        parent_url=reverse("run", args=[parent.pk]) if parent else "",
        parent=place_in_parent(run, parent) if parent else "",
    )


def pauses_among(facts: Mapping[UUID, RunFacts]) -> tuple[Paused, ...]:
    """What is paused as a whole and keeps one of the rows where it is, each once."""
    found: dict[WholePause, None] = {}
    for each in facts.values():
        if not each.state.is_final:
            found.update(dict.fromkeys(each.pauses))
    return paused_of(found)


# --- what else could be listed ----------------------------------------------------------------


def filters(runs: QuerySet[Run], asked: Asked) -> tuple[Filter, ...]:
    """All, then each state. Only unfinished ones are counted: finished ones grow without end."""
    here = reverse("runs")
    counts = unfinished_counts(runs)
    every = Filter("All", address(here, asked.query(state="")), asked.state == "")
    return (
        every,
        *(
            Filter(
                state.value.capitalize(),
                address(here, asked.query(state=state.value)),
                asked.state == state,
                counts.get(state, 0) if state in UNFINISHED else None,
            )
            for state in RunState
        ),
    )


def scope(asked: Asked) -> tuple[Filter, ...]:
    here = reverse("runs")
    alone, both = asked.query(children=""), asked.query(children=WITH)
    return (
        Filter("Without their children", address(here, alone), not asked.children),
        Filter("With their children", address(here, both), bool(asked.children)),
    )


def unfinished_counts(runs: QuerySet[Run]) -> dict[str, int]:
    # An index has those that are not finished; their state alone does not lead to it.
    among = runs.filter(finished_at=None, state__in=UNFINISHED)
    counted = among.values("state").annotate(count=Count("pk"))
    return dict(counted.values_list("state", "count"))


def pager(rows: list[Run], asked: Asked, *, newer: bool, older: bool) -> Pager:
    here = reverse("runs")
    if not rows:
        # Past the end: the way back is the beginning.
        return Pager(newer=address(here, asked.query()) if newer or older else "")
    return Pager(
        newer=address(here, asked.query(after=str(rows[0].pk))) if newer else "",
        older=address(here, asked.query(before=str(rows[-1].pk))) if older else "",
    )
