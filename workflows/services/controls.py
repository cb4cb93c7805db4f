"""Doing to one run what somebody wishes, and telling them whether they were the first.

Twice is harmless: whoever repeats their own wish finds it fulfilled. Who comes second to somebody
else is told of the first, whose wish stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from workflows.core.controls import Control
from workflows.core.durations import on
from workflows.core.errors import RunIsOver
from workflows.core.states import RunState
from workflows.core.words import who
from workflows.models import Run
from workflows.services.clock import database_now
from workflows.services.settling import unsettled
from workflows.services.stopping import Cancelled, cancel_run, pause_run, resume_run


@dataclass(frozen=True)
class Outcome:
    """What came of a wish.

    Attributes:
        done: the run is as wished, or will be without more being asked.
        theirs: it is as somebody else had wished before; nothing was changed by this.
        changed: this has changed it.
        sentence: for people.
    """

    done: bool
    theirs: bool
    changed: bool
    sentence: str


def control_run(
    run: UUID, control: Control, *, by: str, reason: str, paused_at: datetime | None = None
) -> Outcome:
    """Cancel, pause or resume a run.

    Args:
        paused_at: when the pause began that whoever resumes it has read of; another one, which
            somebody began since, they do not end unread.

    Raises:
        UsageError: `by` or `reason` is too long, or no plain text.
        Run.DoesNotExist
    """
    try:
        if control is Control.RESUME:
            return resume(run, by, reason, paused_at)
        return CONTROLS[control](run, by, reason)
    except RunIsOver:
        return over(Run.objects.get(pk=run), control, by)


def cancel(run_id: UUID, by: str, reason: str) -> Outcome:
    before = Run.objects.values_list("cancel_asked_at", flat=True).get(pk=run_id)
    ended = cancel_run(run_id, by=by, reason=reason) is Cancelled.AT_ONCE
    run = Run.objects.get(pk=run_id)
    if run.cancel_asked_by != by:
        return as_before(f"{who(run.cancel_asked_by)} asked for its end", run.cancel_asked_at)
    if ended:
        return Outcome(True, False, True, "It is cancelled.")
    asked = "Its end is asked for" if before is None else "Its end was asked for already"
    first = unsettled(run_id)
    sentence = f"{asked}; first it is settled what became of “{first}”." if first else f"{asked}."
    return Outcome(True, False, before is None, sentence)


def pause(run_id: UUID, by: str, reason: str) -> Outcome:
    if pause_run(run_id, by=by, reason=reason):
        return Outcome(True, False, True, "It is paused.")
    run = Run.objects.get(pk=run_id)
    if run.paused_by != by:
        return as_before(f"{who(run.paused_by)} paused it", run.paused_at)
    return Outcome(True, False, False, "It is paused already.")


def resume(run_id: UUID, by: str, reason: str, paused_at: datetime | None) -> Outcome:
    if resume_run(run_id, by=by, reason=reason, paused_at=paused_at):
        return Outcome(True, False, True, "It is resumed.")
    run = Run.objects.get(pk=run_id)
    if run.paused_at is not None:
        anew = f"{who(run.paused_by)} paused it anew, {on(run.paused_at, database_now())}"
        return Outcome(False, True, False, f"{anew}. Nothing was changed.")
    return Outcome(True, True, False, "It is not paused, or not any more. Nothing was changed.")


def as_before(what: str, at: datetime | None) -> Outcome:
    first = f"{what} first, {on(at, database_now())}" if at else f"{what} first"
    return Outcome(True, True, False, f"{first}. Nothing was changed, and yours is not recorded.")


def over(run: Run, control: Control, by: str) -> Outcome:
    """It has ended already: as wished, or not."""
    wished = control is Control.CANCEL and run.state == RunState.CANCELLED
    sentence = f"It is {run.state} already. Nothing was changed."
    return Outcome(wished, not (wished and run.cancel_asked_by == by), False, sentence)


CONTROLS: dict[Control, Callable[[UUID, str, str], Outcome]] = {
    Control.CANCEL: cancel,
    Control.PAUSE: pause,
}
