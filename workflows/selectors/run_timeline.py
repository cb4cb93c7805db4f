"""The lanes of a run's timeline: each step with its tries and what hangs on it, workers, people.

The branches of a parallel group hang on their group, each with the tries of its own run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby, pairwise

from django.urls import reverse

from workflows.core.durations import took
from workflows.core.states import AttemptState, RunState
from workflows.core.timeline import Lane, Span, Timeline, draw
from workflows.models import Attempt
from workflows.selectors.run_history import WENT_QUIET, BranchRun, History, left_output
from workflows.selectors.run_parts import Deed, RunParts
from workflows.selectors.run_steps import StepSeen
from workflows.selectors.words import counted, try_of

WORKERS_SHOWN = 12
PEOPLE_SHOWN = 6

# What a wait between two tries is, by the kind of the step.
RESTS = {
    "sleep": "Sleeping",
    "wait": "Waiting for what somebody else sends",
    "children": "Waiting for the runs that it started",
    "parallel": "Waiting for its branches",
}


def timeline_of(history: History, parts: RunParts, now: datetime, *, folded: bool) -> Timeline:
    """The drawing of the run at `now`, its axis labelled in the zone of that."""
    run = history.run
    return draw(
        step_lanes(history, parts),
        worker_lanes(history),
        people_lanes(parts.deeds),
        start=start_of(history).astimezone(now.tzinfo),
        end=(run.finished_at or now).astimezone(now.tzinfo),
        running=run.finished_at is None,
        fold=folded,
    )


def start_of(history: History) -> datetime:
    """The run's start or, where there are more tries than are drawn, that of the first of them."""
    if history.tries > len(history.attempts) and history.attempts:
        return history.attempts[0].claimed_at
    return history.run.created_at


# --- steps ------------------------------------------------------------------------------------


def step_lanes(history: History, parts: RunParts) -> list[Lane]:
    lanes: list[Lane] = []
    for step in history.steps:
        branches = history.branches.get(step.name, {})
        lanes += [
            step_lane(history, parts, step),
            *(branch_lane(history, branches[place]) for place in sorted(branches)),
            *parts.lanes.get(step.name, ()),
        ]
    return lanes


def step_lane(history: History, parts: RunParts, step: StepSeen) -> Lane:
    run = history.run
    tries = history.of_step(step.name)
    url = parts.urls.get(step.name, "")
    here = step.name == run.step and run.state != RunState.COMPLETED
    if here or history.total(step.name).passed:
        spans = (*tried(history, tries), *rests(history, step, tries, parts), *held(parts, step))
        kind, state = ("run", run.state) if here else ("step", "done")
        return Lane(step.name, spans, kind=kind, state=state, url=url)
    if step.name not in history.ahead:
        return Lane(step.name, note="not taken", pending=True)
    if run.finished_at is not None:
        return Lane(step.name, note="never started", pending=True)
    return Lane(step.name, blocked(history), kind="step", state="blocked", pending=True)


def branch_lane(history: History, branch: BranchRun) -> Lane:
    """One branch of a parallel group: the tries of its own run, and where that stands."""
    run, url = branch.run, reverse("run", args=[branch.run.pk])
    spans = tuple(attempt_span(history, each, each.step, url) for each in branch.attempts)
    name = ", ".join(dict.fromkeys([*(each.step for each in branch.attempts), run.step]))
    return Lane(name, spans, kind="run", state=run.state, url=url, child=True)


def held(parts: RunParts, step: StepSeen) -> tuple[Span, ...]:
    return tuple(parts.spans.get(step.name, ()))


def tried(history: History, tries: list[Attempt]) -> tuple[Span, ...]:
    return tuple(attempt_span(history, attempt, label_of(attempt), "#leases") for attempt in tries)


def label_of(attempt: Attempt) -> str:
    if AttemptState(attempt.state) in WENT_QUIET:
        return f"{attempt.number} lost"
    return f"visit {attempt.visit}" if attempt.visit > 1 else str(attempt.number)


def attempt_span(history: History, attempt: Attempt, label: str, url: str) -> Span:
    state = AttemptState(attempt.state)
    paint = "lost" if state in WENT_QUIET else "none"
    if state is AttemptState.RUNNING:
        paint = "move"
    elif left_output(attempt):
        paint = "good"
    outcome = outcome_of(attempt)
    return Span(
        paint,
        attempt.claimed_at,
        attempt.ended_at,
        f"{attempt.step}, {try_of(attempt)} on {history.worker(attempt)}: {outcome}",
        label=label,
        url=url,
    )


def outcome_of(attempt: Attempt) -> str:
    """How a try ended, in a few words."""
    after = took((attempt.ended_at or attempt.claimed_at) - attempt.claimed_at)
    match AttemptState(attempt.state):
        case AttemptState.RUNNING:
            return "at work"
        case AttemptState.COMMITTED if left_output(attempt):
            return f"committed after {after}"
        case AttemptState.COMMITTED:
            return f"stopped after {after}, without an output"
        case AttemptState.FAILED:
            return f"ended with an error after {after}"
        case AttemptState.LOST:
            return f"lost after {after}; its worker went quiet"
        case AttemptState.SUPERSEDED:
            return "came back too late; its writes were refused"


def rests(
    history: History, step: StepSeen, tries: list[Attempt], parts: RunParts
) -> Iterator[Span]:
    """The waits between tries of one visit, and after the last, as long as they are no hold."""
    holds = parts.spans.get(step.name, ())
    title = RESTS.get(step.kind, "Waiting")
    for begin, end in gaps(history, tries):
        until = until_held(holds, begin, end)
        if until != begin:
            yield Span("wait", begin, until, title, working=False)


def gaps(history: History, tries: list[Attempt]) -> Iterator[tuple[datetime, datetime | None]]:
    for _, visit in groupby(tries, key=lambda attempt: attempt.visit):
        for left, right in pairwise(visit):
            if left.ended_at is not None:
                yield left.ended_at, right.claimed_at
    if tries and tries[-1].ended_at is not None and is_resting(history, tries[-1]):
        yield tries[-1].ended_at, None


def is_resting(history: History, last: Attempt) -> bool:
    run = history.run
    resting = (RunState.WAITING, RunState.READY, RunState.HELD)
    return (run.step, run.visit) == (last.step, last.visit) and run.state in resting


def until_held(holds: Sequence[Span], begin: datetime, end: datetime | None) -> datetime | None:
    """When a wait from `begin` to `end` became a hold; else its end."""
    met = [
        hold.start
        for hold in holds
        if (end is None or hold.start < end) and (hold.end is None or hold.end > begin)
    ]
    return max(min(met), begin) if met else end


def blocked(history: History) -> tuple[Span, ...]:
    """What waits for the present step has waited since that began."""
    tries = history.of_step(history.run.step)
    if not tries or history.run.state not in (RunState.HELD, RunState.WAITING):
        return ()
    title = f"waits for {history.run.step}"
    return (Span("block", tries[0].claimed_at, None, title, label=title, working=False),)


# --- workers ----------------------------------------------------------------------------------


def worker_lanes(history: History) -> list[Lane]:
    """One lane for each of the latest workers, in the order of their first lease."""
    leases: dict[str, list[Attempt]] = {}
    for attempt in history.attempts:
        leases.setdefault(history.worker(attempt), []).append(attempt)
    latest = sorted(leases, key=lambda name: leases[name][-1].fence)[-WORKERS_SHOWN:]
    lanes = [
        Lane(name, tuple(lease_span(name, each) for each in held), note=note_of(held[-1]))
        for name, held in leases.items()
        if name in latest
    ]
    more = len(leases) - len(lanes)
    return [*lanes, Lane(f"and {counted(more, 'earlier worker')}")] if more else lanes


def lease_span(name: str, attempt: Attempt) -> Span:
    gone = AttemptState(attempt.state) in WENT_QUIET
    title = f"{name} held the lease for {attempt.step}, fence {attempt.fence}"
    return Span(
        "gone" if gone else "done", attempt.claimed_at, attempt.ended_at, title, url="#leases"
    )


def note_of(last: Attempt) -> str:
    match AttemptState(last.state):
        case AttemptState.RUNNING:
            return "at work"
        case AttemptState.LOST | AttemptState.SUPERSEDED:
            return "lease ended"
        case _:
            return "released"


# --- people -----------------------------------------------------------------------------------


def people_lanes(deeds: Sequence[Deed]) -> list[Lane]:
    """One lane for each of the people who did something last, in the order of their first deed."""
    by_person: dict[str, list[Deed]] = {}
    for deed in sorted(deeds, key=lambda each: each.at):
        by_person.setdefault(deed.by, []).append(deed)
    latest = sorted(by_person, key=lambda name: by_person[name][-1].at)[-PEOPLE_SHOWN:]
    lanes = [
        Lane(name, tuple(map(deed_span, done)), note=done[-1].did)
        for name, done in by_person.items()
        if name in latest
    ]
    more = len(by_person) - len(lanes)
    return [*lanes, Lane(f"and {counted(more, 'other')} before")] if more else lanes


def deed_span(deed: Deed) -> Span:
    title = f"{deed.by}: {deed.text}"
    return Span("person", deed.at, deed.at, title, deed.did, deed.url or "#log", working=False)
