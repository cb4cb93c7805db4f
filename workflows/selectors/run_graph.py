"""The steps of a run as one graph: what is done, where it stands, what may come.

A parallel group is drawn with its branches side by side; how their steps stand is taken from the
runs of the branches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from django.urls import reverse

from workflows.core.definitions import Step, Workflow
from workflows.core.durations import age, moment, took
from workflows.core.states import RunState
from workflows.models import Attempt, Run
from workflows.pages import GraphBranch, GraphStep, Way
from workflows.selectors.run_history import BranchRun, History, Totals, steps_ahead
from workflows.selectors.run_parts import RunParts
from workflows.selectors.words import counted, way_of

Where = Literal["done", "here", "todo", "off"]

# Kinds whose time is a wait: how often they were tried says nothing about them.
WAITS = frozenset({"sleep", "wait", "children", "parallel"})


@dataclass(frozen=True)
class Line:
    """The steps of one line, and how one run has gone through them; without one, not yet."""

    names: Sequence[str]
    workflow: Workflow | None
    run: Run | None
    totals: Mapping[str, Totals] = field(default_factory=dict)
    chosen: Mapping[str, str] = field(default_factory=dict)
    ahead: frozenset[str] = frozenset()
    latest: Attempt | None = None  # of the present step
    over: bool = False

    def step(self, name: str) -> Step | None:
        return self.workflow.steps.get(name) if self.workflow else None

    def total(self, name: str) -> Totals:
        return self.totals.get(name, Totals())

    def next_to(self, name: str) -> str:
        """The step that is drawn after it; "" after the last."""
        place = self.names.index(name) + 1
        return self.names[place] if place < len(self.names) else ""

    def before(self, name: str) -> str:
        place = self.names.index(name)
        return self.names[place - 1] if place else ""


def graph_of(history: History, parts: RunParts, now: datetime) -> tuple[GraphStep, ...]:
    tries = history.of_step(history.run.step)
    line = Line(
        names=[step.name for step in history.steps],
        workflow=history.workflow,
        run=history.run,
        totals=history.totals,
        chosen=history.chosen,
        ahead=history.ahead,
        latest=tries[-1] if tries else None,
        over=history.run.finished_at is not None,
    )
    return tuple(
        graph_step(line, name, now, parts.urls.get(name, ""), branches_of(history, name, now))
        for name in line.names
    )


def graph_step(
    line: Line,
    name: str,
    now: datetime,
    url: str,
    branches: tuple[GraphBranch, ...] = (),
) -> GraphStep:
    step = line.step(name)
    place = where(line, name)
    return GraphStep(
        name=name,
        title=step.title if step else name,
        place=place,
        note=note_of(line, name, place, now),
        url=url,
        state=line.run.state if line.run and place == "here" else "",
        follows=follows(line, name),
        ways=ways_of(line, step) if step else (),
        branches=branches,
    )


def where(line: Line, name: str) -> Where:
    run = line.run
    if run is not None and name == run.step and run.state != RunState.COMPLETED:
        return "here"
    if line.total(name).passed:
        return "done"
    return "todo" if name in line.ahead else "off"


def follows(line: Line, name: str) -> bool:
    """Whether the step that is drawn before it leads to it."""
    before = line.before(name)
    if not before or line.workflow is None:
        return True
    return name in line.workflow.plan.next[before]


def ways_of(line: Line, step: Step) -> tuple[Way, ...]:
    """Where a step leads that names where it goes on; none where it is the next one anyway."""
    if step.kind == "branch":
        taken = line.chosen.get(step.name, "")
        return tuple(Way(way_of(target), target == taken) for target in step.to)
    following = line.workflow.plan.after[step.name] if line.workflow else ""
    if following == line.next_to(step.name):
        return ()
    return (Way(following or "the end", bool(line.total(step.name).passed)),)


# --- notes ------------------------------------------------------------------------------------


def note_of(line: Line, name: str, place: Where, now: datetime) -> str:
    match place:
        case "here":
            assert line.run is not None
            return note_here(line.run, line.latest, now)
        case "done":
            return note_done(line.total(name), line.step(name))
        case "todo":
            return "never started" if line.over else "waits"
        case "off":
            return "not taken"


def note_here(run: Run, latest: Attempt | None, now: datetime) -> str:
    visit = f"visit {run.visit}, " if run.visit > 1 else ""
    reason = (run.failure or {}).get("reason") if run.state == RunState.WAITING else ""
    if reason == "sleeping" and run.wake_at is not None:
        return f"{visit}sleeps until {moment(run.wake_at, now)}"
    if reason == "turn":
        return "waits for its turn"
    if run.state in (RunState.HELD, RunState.WAITING) and latest and latest.ended_at:
        return f"{visit}{run.state} {age(now - latest.ended_at)}"
    return f"{visit}{run.state}, try {run.tries}" if run.tries else f"{visit}{run.state}"


def note_done(total: Totals, step: Step | None) -> str:
    if total.began_at is None or total.ended_at is None:
        return ""
    if total.visits > 1:
        return f"{counted(total.visits, 'visit')}, {counted(total.tries, 'try', 'tries')}"
    whole = took(total.ended_at - total.began_at)
    if total.tries == 1 or (step is not None and step.kind in WAITS):
        return whole
    return f"{counted(total.tries, 'try', 'tries')}, {whole}"


# --- parallel groups --------------------------------------------------------------------------


def branches_of(history: History, group: str, now: datetime) -> tuple[GraphBranch, ...]:
    """The branches of a parallel group side by side; none of another step."""
    step = history.workflow.steps.get(group) if history.workflow else None
    if step is None:
        return ()
    runs = history.branches.get(group, {})
    return tuple(
        branch_of(history, group, place, runs.get(place), now)
        for place in range(len(step.branches))
    )


def branch_of(
    history: History, group: str, place: int, branch: BranchRun | None, now: datetime
) -> GraphBranch:
    assert history.workflow is not None  # it has the group
    names = history.workflow.steps[group].branches[place]
    if branch is None:
        over = history.run.finished_at is not None
        comes = group in history.ahead or group == history.run.step
        line = Line(
            names, history.workflow, None, ahead=frozenset(names if comes else ()), over=over
        )
        return GraphBranch(place + 1, tuple(graph_step(line, name, now, "") for name in names))
    run, url = branch.run, reverse("run", args=[branch.run.pk])
    line = Line(
        names=names,
        workflow=history.workflow,
        run=run,
        totals=branch.totals,
        chosen=branch.chosen,
        ahead=steps_ahead(run, history.workflow),
        latest=branch.attempts[-1] if branch.attempts else None,
        over=run.finished_at is not None,
    )
    steps = tuple(graph_step(line, name, now, url) for name in names)
    return GraphBranch(place + 1, steps, run.state, url)
