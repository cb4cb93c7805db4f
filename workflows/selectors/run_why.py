"""Why a run is not moving: one sentence, what helps, and each cause that was looked at."""

from __future__ import annotations

from workflows.core.explain import Cause, Explanation
from workflows.core.states import AttemptState, RunState
from workflows.pages import CheckedCause, Why
from workflows.selectors.run_history import History
from workflows.selectors.run_parts import RunParts
from workflows.selectors.words import counted


def why_of(history: History, explained: Explanation, parts: RunParts) -> Why:
    """Put what the run says of itself beside what other apps know about it."""
    lead, _, text = explained.sentence.partition(". ")
    unfinished = history.run.finished_at is None
    return Why(
        lead=lead if lead.endswith(".") else f"{lead}.",
        text=text,
        helps=parts.helps or explained.moves,
        owner=parts.owner or explained.owner,
        links=parts.links,
        causes=causes(history, explained, parts) if unfinished else (),
    )


def causes(history: History, explained: Explanation, parts: RunParts) -> tuple[CheckedCause, ...]:
    own = (
        held(history),
        missing_signal(explained),
        backlog(explained),
        lease(history, explained),
    )
    known = {cause.name: cause for cause in (*own, *parts.causes)}
    order = ["Held", "Missing signal", "Mismatch", "Dispatch", "Backlog", "Lease lost"]
    names = [name for name in order if name in known] + [
        name for name in known if name not in order
    ]
    return tuple(known[name] for name in names)


def held(history: History) -> CheckedCause:
    if history.run.state == RunState.HELD:
        return CheckedCause("Held", "is", "yes: it waits for a decision")
    return CheckedCause("Held", "no", "no: nothing waits for a person")


def missing_signal(explained: Explanation) -> CheckedCause:
    if explained.cause is Cause.SETTLING:
        return CheckedCause("Missing signal", "is", "yes: the provider's answer is not known yet")
    return CheckedCause("Missing signal", "no", "no: this step waits for no event")


def backlog(explained: Explanation) -> CheckedCause:
    match explained.cause:
        case Cause.BACKLOG:
            return CheckedCause("Backlog", "is", "yes: it waits for a free worker")
        case Cause.NO_WORKER:
            return CheckedCause("Backlog", "is", "yes: no live worker has this version")
        case Cause.RETRY:
            return CheckedCause("Backlog", "maybe", "no: it rests before the next try")
        case _:
            return CheckedCause("Backlog", "no", "no: it is not queued")


def lease(history: History, explained: Explanation) -> CheckedCause:
    if explained.cause is Cause.LEASE_EXPIRED:
        return CheckedCause(
            "Lease lost", "is", "yes: its worker went quiet; another one takes over"
        )
    lost = sum(
        AttemptState(attempt.state) in (AttemptState.LOST, AttemptState.SUPERSEDED)
        for attempt in history.attempts
    )
    if lost:
        text = f"not now: lost {counted(lost, 'time')} earlier, each handed over"
        return CheckedCause("Lease lost", "maybe", text)
    return CheckedCause("Lease lost", "no", "no: never lost")
