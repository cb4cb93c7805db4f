"""Why a run is not finished: one sentence, what would move it, and who owns it (promise P12).

What is asked first goes before what is asked later: a wish for the end, what only a person can
change, what is missing, what passes with time. Nothing is guessed: each sentence comes with the
facts that it rests on. What concerns workers is in `explain_workers`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from workflows.core.durations import moment, on
from workflows.core.explain_waits import open_wait, resolved_before, wait_facts
from workflows.core.explain_workers import (
    OPERATORS,
    lacks_sweep,
    ready,
    running,
    sweep_moves,
)
from workflows.core.joining import Ends, waiting_for
from workflows.core.run_facts import Cause, Explanation, RunFacts, Stop
from workflows.core.states import RunState
from workflows.core.wait_facts import WaitFacts
from workflows.core.words import who

__all__ = ["Cause", "Explanation", "RunFacts", "explain"]

NOBODY = "nobody: no queue takes it, an administrator must set one up"
DECISION = "A recorded decision. Waiting longer or restarting workers will not help."
WRITE = "the outcome of its write is being found out"

# Why a run waits while a write is settled, as whoever parked it has written down.
SETTLING = frozenset({"in_flight", "pause", "look_up_later", "at_pace", "verify_later", ""})


def explain(facts: RunFacts, now: datetime) -> Explanation:
    """Return why the run is where it is at `now`, the database's time."""
    if facts.state.is_final:
        said = finished(facts)
    elif facts.cancel is not None:
        said = cancelling(facts, facts.cancel, now)
    elif facts.state is RunState.HELD:
        said = besides(held(facts), facts, now)
    elif facts.state is RunState.WAITING:
        said = besides(waiting(facts, now), facts, now)
    else:
        said = at_workers(facts, now)
    if facts.wait is not None and not facts.wait.is_open:
        said = after_wait(said, facts.wait, now)
    return replace(said, facts={**common(facts), **said.facts})


def common(facts: RunFacts) -> dict[str, Any]:
    """The facts that every sentence rests on."""
    return {
        "state": str(facts.state),
        "workflow": facts.workflow,
        "version": facts.version,
        "step": facts.step,
        "number": facts.number,
        "steps": facts.steps,
        "visit": facts.visit,
        "try": facts.tries,
    }


def finished(facts: RunFacts) -> Explanation:
    match facts.state:
        case RunState.COMPLETED:
            return Explanation(Cause.FINISHED, "Every step is committed.", "Nothing is needed.", "")
        case RunState.FAILED:
            return Explanation(
                Cause.FINISHED,
                f"It failed {facts.place}: {facts.message}",
                "Start a new run.",
                facts.owner,
                {"reason": facts.reason, "message": facts.message},
            )
        case _:
            by = f" by {who(facts.cancel.by)}" if facts.cancel else ""
            return Explanation(
                Cause.FINISHED,
                f"It was cancelled{by} {facts.place}.",
                "Nothing is needed.",
                "",
                {"cancel": as_fact(facts.cancel)} if facts.cancel else {},
            )


def held(facts: RunFacts) -> Explanation:
    return Explanation(
        Cause.HELD,
        f"It is held {facts.place}. {facts.message}".strip(),
        facts.helps or DECISION,
        facts.owner or NOBODY,
        {"reason": facts.reason, "message": facts.message, "held_for": facts.owner or NOBODY},
    )


# --- stopped by somebody's wish ---------------------------------------------------------------


def cancelling(facts: RunFacts, stop: Stop, now: datetime) -> Explanation:
    """Its end was asked for: what has to be settled first, and who settles it."""
    asked = f"Its end was asked for by {who(stop.by)} {on(stop.at, now)}, {facts.place}."
    rests_on = {"cancel": as_fact(stop), "unsettled": facts.unsettled}
    if not facts.unsettled:
        sentence = f"{asked} Nothing of it is open on another system."
        moves, owner = sweep_moves(facts, "ends it", now)
        return Explanation(Cause.CANCELLING, sentence, moves, owner, rests_on)
    first = f"{asked} First it has to be settled what became of “{facts.unsettled}”"
    if facts.state is RunState.HELD:
        return Explanation(
            Cause.CANCELLING,
            f"{first}, and that is held. {facts.message}".strip(),
            f"{facts.helps or DECISION} The run ends then.",
            facts.owner or NOBODY,
            rests_on | {"message": facts.message, "held_for": facts.owner or NOBODY},
        )
    taken = facts.state is RunState.RUNNING and not facts.lease_ran_out(now)
    at_it = f"worker {facts.worker} is on it" if taken else facts.message or WRITE
    moves, owner = "The provider's answer, or a decision.", facts.owner or "Romulus"
    if facts.state is not RunState.WAITING and not taken and not facts.able:
        moves = f"Starting a worker that has {facts.workflow} version {facts.version}."
        owner = OPERATORS
    return Explanation(
        Cause.CANCELLING,
        f"{first}: {at_it.rstrip('.')}.",
        f"{moves} The run ends then.",
        owner,
        rests_on | {"worker": facts.worker, "message": facts.message},
    )


def paused_by(facts: RunFacts, now: datetime) -> str:
    """Say by whom and since when the run may not go on, the most specific pause first."""
    if facts.pause is not None:
        return f"it is paused by {said_of(facts.pause, now)}"
    pause = facts.pauses[0]
    return f"{pause.what} is paused by {said_of(pause.stop, now)}"


def said_of(stop: Stop, now: datetime) -> str:
    reason = f": {stop.reason.rstrip('.')}" if stop.reason else ""
    return f"{who(stop.by)} since {moment(stop.at, now)}{reason}"


def resuming(facts: RunFacts) -> str:
    """What has to be taken back before the run goes on."""
    wholes = [f"resuming {pause.what}" for pause in facts.pauses]
    return ", and ".join([*(["resuming the run"] if facts.pause else []), *wholes])


def pause_facts(facts: RunFacts) -> dict[str, Any]:
    wholes = [{"what": pause.what} | as_fact(pause.stop) for pause in facts.pauses]
    run = [{"what": "the run"} | as_fact(facts.pause)] if facts.pause else []
    return {"paused": [*run, *wholes]}


def as_fact(stop: Stop) -> dict[str, Any]:
    return {"by": stop.by, "at": stop.at, "reason": stop.reason}


def besides(said: Explanation, facts: RunFacts, now: datetime) -> Explanation:
    """Add a pause to what else keeps the run where it is: both have to end."""
    if not (facts.pause or facts.pauses):
        return said
    text = paused_by(facts, now)
    return replace(
        said,
        sentence=f"{said.sentence.rstrip('.')}. Besides, {text}.",
        moves=f"{said.moves.rstrip('.')}. Then {resuming(facts)}.",
        facts={**said.facts, **pause_facts(facts)},
    )


def at_workers(facts: RunFacts, now: datetime) -> Explanation:
    """It is ready, or a worker has it."""
    said = running(facts, now) if facts.state is RunState.RUNNING else ready(facts, now)
    if not (facts.pause or facts.pauses):
        return said
    text, moves = paused_by(facts, now), resuming(facts)
    if said.cause is Cause.LEASED:
        return replace(
            said,
            sentence=f"{said.sentence.rstrip('.')}. After this step it stops: {text}.",
            moves=f"Nothing is needed for this step. Then {moves}.",
            facts={**said.facts, **pause_facts(facts)},
        )
    where = f"It is ready {facts.place}, and {text}."
    if facts.state is RunState.RUNNING:
        where = f"Worker {facts.worker} went quiet {facts.place}, and nobody takes over: {text}."
    elif facts.pause is not None:
        where = f"It is paused {facts.place}, by {said_of(facts.pause, now)}."
    return Explanation(
        Cause.RUN_PAUSED if facts.pause else Cause.PAUSED,
        where,
        f"{moves[0].upper()}{moves[1:]}.",
        who((facts.pause or facts.pauses[0].stop).by),
        pause_facts(facts),
    )


# --- waiting ----------------------------------------------------------------------------------


def after_wait(said: Explanation, wait: WaitFacts, now: datetime) -> Explanation:
    """Say first how its wait ended: what came of that is why the run is where it is."""
    sentence = f"{resolved_before(wait, now)} {said.sentence}"
    return replace(said, sentence=sentence, facts={**said.facts, **wait_facts(wait)})


def waiting(facts: RunFacts, now: datetime) -> Explanation:
    if facts.wait is not None and facts.wait.is_open:
        return open_wait(facts, facts.wait, now)
    match facts.reason:
        case "sleeping" if facts.wake_at is not None:
            return sleeping(facts, facts.wake_at, now)
        case "children":
            return children(facts, facts.children or Ends(), now)
        case "turn":
            return turn(facts)
        case "dispatch":
            return Explanation(
                Cause.DISPATCH,
                f"It waits {facts.place}: {facts.message}",
                "Turning dispatch on.",
                facts.owner,
                {"reason": facts.reason, "message": facts.message},
            )
        case reason if reason in SETTLING:
            return Explanation(
                Cause.SETTLING,
                f"It waits {facts.place}: {facts.message or WRITE}",
                "The provider's answer, or a decision.",
                facts.owner or "Romulus",
                {"reason": reason, "message": facts.message},
            )
        case reason:
            return Explanation(
                Cause.WAITING,
                f"It waits {facts.place}: {facts.message}",
                facts.helps or "What it waits for.",
                facts.owner or "Romulus",
                {"reason": reason, "message": facts.message, "wake_at": facts.wake_at},
            )


def sleeping(facts: RunFacts, wake_at: datetime, now: datetime) -> Explanation:
    rests_on = {"wake_at": wake_at}
    if wake_at > now:
        sentence = f"It sleeps {facts.place} until {moment(wake_at, now)}."
        return Explanation(Cause.SLEEPING, sentence, "Time.", "Romulus", rests_on)
    moves, owner = sweep_moves(facts, "wakes it", now)
    cause = Cause.SWEEP_BEHIND if lacks_sweep(facts, now) else Cause.SLEEPING
    sentence = f"It slept {facts.place} until {moment(wake_at, now)}, and is to be woken."
    return Explanation(cause, sentence, moves, owner, rests_on)


def children(facts: RunFacts, ends: Ends, now: datetime) -> Explanation:
    """Some held, some at work: a decision moves the former, the latter move by themselves."""
    moves, owner = "The ends of those runs.", "Romulus"
    if ends.held:
        moves, owner = "A recorded decision on what is held", "whoever decides what is held"
        moves += ", and the ends of the others." if ends.held < ends.unfinished else "."
    elif ends.total and not ends.unfinished:
        moves, owner = sweep_moves(facts, "lets it go on", now)
    rests_on = {
        "started": ends.total,
        "completed": ends.completed,
        "failed": ends.failed,
        "held": ends.held,
        "at_work": ends.at_work,
        "queued": ends.queued,
        "held_runs": [{"id": each.id, "name": each.name} for each in facts.held_children],
    }
    sentence = f"It waits {facts.place}: {waiting_for(ends)}"
    return Explanation(Cause.CHILDREN, sentence, moves, owner, rests_on)


def turn(facts: RunFacts) -> Explanation:
    beside = facts.beside or Ends()
    why = "so many at once are not allowed"
    if facts.at_once is not None:
        why = (
            f"of the {beside.total:,} runs started with it {facts.at_once:,} may be at work at once"
        )
    return Explanation(
        Cause.TURN,
        f"It has not begun: it waits for its turn, {why}.",
        "The end, or the hold, of one of the runs beside it.",
        "Romulus",
        {"at_once": facts.at_once, "at_work_beside": beside.at_work, "queued": beside.queued},
    )
