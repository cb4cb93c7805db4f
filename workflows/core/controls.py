"""What people may do to a run that is not over, and what happens then, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from workflows.core.run_facts import RunFacts
from workflows.core.states import RunState
from workflows.core.words import who


class Control(StrEnum):
    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"


@dataclass(frozen=True)
class Consequence:
    """What is read before a button is pressed.

    Attributes:
        title: the question.
        happens, stays: in sentences.
        button, keep: the two ways out.
        grave: it cannot be taken back.
    """

    title: str
    happens: tuple[str, ...]
    stays: tuple[str, ...]
    button: str
    keep: str
    grave: bool = False


def offered(facts: RunFacts) -> tuple[Control, ...]:
    """What can be done to the run now: nothing when it is over, or is to be."""
    if facts.state.is_final or facts.cancel is not None:
        return ()
    return (Control.RESUME if facts.pause else Control.PAUSE, Control.CANCEL)


def consequence(
    control: Control, facts: RunFacts, now: datetime, *, started: int = 0
) -> Consequence:
    """Say what follows. `started`: the runs that it started and that are not over."""
    match control:
        case Control.CANCEL:
            return Consequence(
                "Cancel this run?",
                tuple(when_cancelled(facts, now, started)),
                (
                    "What is committed stays, and so does the record. Nothing that was done is "
                    "undone.",
                    "A cancelled run cannot be started again; a new one can.",
                ),
                "Cancel the run",
                "Keep the run",
                grave=True,
            )
        case Control.PAUSE:
            return Consequence(
                "Pause this run?",
                tuple(when_paused(facts, now)),
                tuple(during_pause(started)),
                "Pause the run",
                "Let it go on",
            )
        case Control.RESUME:
            return Consequence(
                "Resume this run?",
                tuple(when_resumed(facts)),
                (),
                "Resume the run",
                "Keep it paused",
            )


def when_cancelled(facts: RunFacts, now: datetime, started: int) -> Iterator[str]:
    if facts.unsettled:
        yield (
            f"The outcome of “{facts.unsettled}” is open. It is settled first, by the provider's "
            "answer or by a decision, and nothing more is sent. The run ends then."
        )
    else:
        yield (
            f"Nothing of it is open on another system, so the run ends at once, {facts.place}. The "
            "steps after it never run."
        )
        if at_work(facts, now):
            yield (
                f"Worker {facts.worker} is at this step now and is not interrupted. What it "
                "brings is refused, and kept as evidence."
            )
        if facts.state is RunState.HELD:
            yield "Its hold is closed: nobody has to decide it any more."
    if started:
        those = "1 unfinished run" if started == 1 else f"{started:,} unfinished runs"
        verb = "is" if started == 1 else "are"
        yield (
            f"{those} that it started {verb} cancelled too; where the outcome of a write is open, "
            "that is settled first."
        )


def when_paused(facts: RunFacts, now: datetime) -> Iterator[str]:
    if at_work(facts, now):
        yield (
            f"Worker {facts.worker} finishes this step, {facts.step}, and its result is kept. "
            "The run stops before the next one."
        )
    elif facts.state in (RunState.WAITING, RunState.HELD):
        yield (
            f"What it waits for {facts.place} goes on. When that has come, the run stays where it "
            "is until it is resumed."
        )
    else:
        yield f"No worker takes it up {facts.place} until it is resumed."


def during_pause(started: int) -> Iterator[str]:
    yield (
        "Look-ups, holds and decisions go on. A write whose outcome is open is looked up where "
        "its provider can be asked, and is not sent again before the run is resumed."
    )
    if started:
        yield "The runs that it started go on: each is paused on its own page."
    yield "It can be resumed at any time."


def when_resumed(facts: RunFacts) -> Iterator[str]:
    if facts.state in (RunState.WAITING, RunState.HELD):
        yield f"The run goes on when what it waits for {facts.place} has come."
    else:
        yield f"The run goes on {facts.place}, as soon as a worker is free."
    for pause in facts.pauses:
        what = f"{pause.what[0].upper()}{pause.what[1:]}"
        yield (
            f"{what} is paused too, by {who(pause.stop.by)}: the run stays until that is taken "
            "back as well."
        )
    if not facts.able:
        yield f"No live worker has {facts.workflow} version {facts.version}: it waits for one."


def at_work(facts: RunFacts, now: datetime) -> bool:
    """Whether a worker holds the run under a lease that counts."""
    return facts.state is RunState.RUNNING and not facts.lease_ran_out(now)
