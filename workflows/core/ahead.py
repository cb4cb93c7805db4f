"""What comes after a step, in words: what begins once it is over, and who waits for its run.

A run may be a branch of a parallel group, or one of those that another run has started: then that
one waits for its end, and its steps are held back, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workflows.core.definitions import Workflow
from workflows.core.joining import JoinPolicy
from workflows.core.steps import Step
from workflows.core.words import listed


@dataclass(frozen=True, slots=True)
class Follows:
    """The steps after one: `next` begins once it is over, `later` may come after that.

    At the end of a run, or of a branch of a group, there is no `next`.
    """

    next: Step | None = None
    later: tuple[Step, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.later if self.next is None else (self.next, *self.later)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A run that waits for the end of another one, which it has started.

    Attributes:
        name: what people call it.
        step: the step at which it waits.
        join: how it waits there; None where its version is not known here.
        holds: whether it is held, and not failed, when the step comes to nothing.
        follows: what comes after the step.
        beside: the other branches of its group that have not ended, such as "bill is held".
        broken: a branch of its group has not completed, so that the step comes to nothing.
        above: those that wait for its own end in turn, as name and step: the nearest first.
    """

    name: str
    step: str
    join: JoinPolicy | None = None
    holds: bool = False
    follows: Follows = Follows()
    beside: tuple[str, ...] = ()
    broken: bool = False
    above: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Ahead:
    """What comes after a step of a run, and the run that waits for the end of this one."""

    follows: Follows = Follows()
    waiting: Waiting | None = None


def follows(workflow: Workflow, name: str) -> Follows:
    """Return what comes after the step `name`, which is no branch, within its own line."""
    track = workflow.track_of(name)
    first = workflow.after(name)
    later = (
        step
        for step in workflow.later(name)
        if step is not first and workflow.track_of(step.name) == track
    )
    return Follows(first, tuple(later))


# --- in words ---------------------------------------------------------------------------------


def goes_on(ahead: Ahead) -> str:
    """What follows at once when the step is over: one sentence or two."""
    if ahead.follows.next is not None:
        return f"The run goes on with {ahead.follows.next.name}."
    if ahead.waiting is None:
        return "The run completes."
    return f"{its_end(ahead.waiting)} {when_completed(ahead.waiting)}"


def starts(ahead: Ahead) -> tuple[str, ...]:
    """The same in order, with all that may come later: a sentence for each moment."""
    if ahead.follows.next is None:
        return (goes_on(ahead),)
    later = [step.name for step in ahead.follows.later]
    verb = "may follow" if has_choice(ahead.follows.steps) else "follow" + "s" * (len(later) == 1)
    rest = f" {listed(later)} {verb}." if later else ""
    own = f"{ahead.follows.next.name} starts after that.{rest}"
    if ahead.waiting is None:
        return (own,)
    waiting = ahead.waiting
    return (own, f"{waiting.name} waits at {waiting.step} for {the_end_of(waiting)}.")


def fails(ahead: Ahead, at: str) -> str:
    """What follows when the run fails at the step `at`."""
    never = listed([step.name for step in ahead.follows.steps])
    own = f"The run fails at {at}. Never run: {never}." if never else f"The run fails at {at}."
    return own if ahead.waiting is None else f"{own} {when_failed(ahead.waiting)}"


def when_completed(waiting: Waiting) -> str:
    on = goes_on_at(waiting)
    match waiting.join:
        case JoinPolicy.EVERY if waiting.broken:
            return when_failed(waiting)
        case JoinPolicy.EVERY if not waiting.beside:
            return f"{on}."
        case JoinPolicy.EVERY:
            return f"{on} when the other branches have ended, too: {listed(waiting.beside)}."
        case JoinPolicy.ALL:
            return f"{on} when all runs that it started at {waiting.step} have ended."
        case JoinPolicy.FIRST:
            return f"{on} at once: it waits at {waiting.step} for the first that completes."
        case JoinPolicy.ANY_FAILURE:
            return f"{on} when all runs that it started at {waiting.step} have completed."
        case None:
            return f"{waiting.name} waits for that at {waiting.step}."


def when_failed(waiting: Waiting) -> str:
    ends = f"{waiting.name} {'is held' if waiting.holds else 'fails'} at {waiting.step}"
    match waiting.join:
        case JoinPolicy.EVERY if not waiting.beside:
            return f"{ends} with it."
        case JoinPolicy.EVERY:
            return f"{ends} when the other branches have ended, too: {listed(waiting.beside)}."
        case JoinPolicy.ALL:
            return (
                f"{goes_on_at(waiting)} all the same, when all runs that it started at "
                f"{waiting.step} have ended."
            )
        case JoinPolicy.FIRST:
            return f"{ends} unless another run that it started there completes."
        case JoinPolicy.ANY_FAILURE:
            return f"{ends} with it."
        case None:
            return f"{waiting.name} waits for that at {waiting.step}."


def its_end(waiting: Waiting) -> str:
    is_branch = waiting.join is JoinPolicy.EVERY
    return f"This branch of {waiting.step} ends." if is_branch else "The run completes."


def the_end_of(waiting: Waiting) -> str:
    return "all its branches" if waiting.join is JoinPolicy.EVERY else "the end of this run"


def goes_on_at(waiting: Waiting) -> str:
    following = waiting.follows.next
    return f"{waiting.name} " + (f"goes on with {following.name}" if following else "completes")


def has_choice(steps: Iterable[Step]) -> bool:
    """Whether one of `steps` may lead elsewhere than to the next."""
    return any(step.to for step in steps)
