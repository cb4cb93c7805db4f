"""What a held step holds back: the later steps of its run, and the runs that wait for its end."""

from __future__ import annotations

from collections.abc import Iterator

from reconciliation.pages import BlockedStep
from workflows.core.ahead import Ahead, Waiting, the_end_of
from workflows.core.words import listed


def blocked_by(own: BlockedStep, ahead: Ahead | None) -> tuple[BlockedStep, ...]:
    """`own` first; nothing else where what comes after it is not known here."""
    if ahead is None:
        return (own,)
    later = (BlockedStep(step.name, step.title) for step in ahead.follows.steps)
    return (own, *later, *(waiting_steps(ahead.waiting) if ahead.waiting else ()))


def waiting_steps(waiting: Waiting) -> tuple[BlockedStep, ...]:
    beside = f"; {listed(waiting.beside)}" if waiting.beside else ""
    here = BlockedStep(waiting.step, f"{waiting.name} waits here for {the_end_of(waiting)}{beside}")
    later = (BlockedStep(step.name, step.title) for step in waiting.follows.steps)
    return (here, *later, *steps_above(waiting))


def steps_above(waiting: Waiting) -> Iterator[BlockedStep]:
    """Where other runs wait in turn: each for the one that it has started."""
    below = waiting.name
    for name, step in waiting.above:
        yield BlockedStep(step, f"{name} waits here for the end of {below}")
        below = name
