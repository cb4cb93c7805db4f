"""The lanes of a run's timeline: each step with its tries, what hangs on it, and the workers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from workflows.core.durations import took
from workflows.core.states import AttemptState, RunState
from workflows.core.timeline import Lane, Span, Timeline, draw
from workflows.models import Attempt
from workflows.selectors.run_history import History, StepSeen
from workflows.selectors.run_parts import RunParts

STOPPED = {AttemptState.LOST: "lost", AttemptState.SUPERSEDED: "lost"}


def timeline_of(history: History, parts: RunParts, now: datetime, *, folded: bool) -> Timeline:
    run = history.run
    return draw(
        step_lanes(history, parts),
        worker_lanes(history),
        start=run.created_at,
        end=run.finished_at or now,
        running=run.finished_at is None,
        fold=folded,
    )


# --- steps ------------------------------------------------------------------------------------


def step_lanes(history: History, parts: RunParts) -> list[Lane]:
    lanes: list[Lane] = []
    for step in history.steps:
        lanes += [step_lane(history, parts, step), *parts.lanes.get(step.name, ())]
    return lanes


def step_lane(history: History, parts: RunParts, step: StepSeen) -> Lane:
    run = history.run
    tries = history.of_step(step.name)
    url = parts.urls.get(step.name, "")
    here = step.name == run.step and run.state != RunState.COMPLETED
    if here or step.name in history.done:
        spans = (*tried(history, tries), *rests(history, tries, parts), *held(parts, step))
        kind, state = ("run", run.state) if here else ("step", "done")
        return Lane(step.name, spans, kind=kind, state=state, url=url)
    if run.finished_at is not None:
        return Lane(step.name, note="never started", pending=True)
    return Lane(step.name, blocked(history), kind="step", state="blocked", pending=True)


def held(parts: RunParts, step: StepSeen) -> tuple[Span, ...]:
    return tuple(parts.spans.get(step.name, ()))


def tried(history: History, tries: list[Attempt]) -> tuple[Span, ...]:
    return tuple(attempt_span(history, attempt) for attempt in tries)


def attempt_span(history: History, attempt: Attempt) -> Span:
    state = AttemptState(attempt.state)
    paint = STOPPED.get(state, "none")
    if state is AttemptState.RUNNING:
        paint = "move"
    elif attempt.pk in history.committed:
        paint = "good"
    outcome = outcome_of(history, attempt)
    return Span(
        paint,
        attempt.claimed_at,
        attempt.ended_at,
        f"{attempt.step}, try {attempt.number} on {history.worker(attempt)}: {outcome}",
        label=f"{attempt.number} lost" if paint == "lost" else str(attempt.number),
        url="#leases",
    )


def outcome_of(history: History, attempt: Attempt) -> str:
    """How a try ended, in a few words."""
    after = took((attempt.ended_at or attempt.claimed_at) - attempt.claimed_at)
    match AttemptState(attempt.state):
        case AttemptState.RUNNING:
            return "at work"
        case AttemptState.COMMITTED if attempt.pk in history.committed:
            return f"committed after {after}"
        case AttemptState.COMMITTED:
            return f"stopped after {after}, without an output"
        case AttemptState.FAILED:
            return f"ended with an error after {after}"
        case AttemptState.LOST:
            return f"lost after {after}; its worker went quiet"
        case AttemptState.SUPERSEDED:
            return "came back too late; its writes were refused"


def rests(history: History, tries: list[Attempt], parts: RunParts) -> list[Span]:
    """The waits between tries of one step, and after the last, as long as they are no hold."""
    holds = parts.spans.get(tries[0].step, ()) if tries else ()
    gaps: list[tuple[datetime | None, datetime | None]] = [
        (left.ended_at, right.claimed_at) for left, right in pairwise(tries)
    ]
    if tries and is_resting(history, tries[-1]):
        gaps.append((tries[-1].ended_at, None))
    return [
        Span("wait", begin, until, "Waiting", working=False)
        for begin, end in gaps
        if begin is not None and (until := until_held(holds, begin, end)) != begin
    ]


def is_resting(history: History, last: Attempt) -> bool:
    run = history.run
    resting = (RunState.WAITING, RunState.READY, RunState.HELD)
    return run.step == last.step and run.state in resting


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
    """One lane for each worker, in the order of their first lease."""
    leases: dict[str, list[Attempt]] = {}
    for attempt in history.attempts:
        leases.setdefault(history.worker(attempt), []).append(attempt)
    return [
        Lane(name, tuple(lease_span(name, each) for each in held), note=note_of(held[-1]))
        for name, held in leases.items()
    ]


def lease_span(name: str, attempt: Attempt) -> Span:
    gone = AttemptState(attempt.state) in STOPPED
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
