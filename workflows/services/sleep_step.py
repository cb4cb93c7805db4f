"""The `sleep` kind: a wait with only a deadline. No worker is held up meanwhile."""

from __future__ import annotations

from datetime import datetime, timedelta

from workflows.core.errors import UsageError
from workflows.services.claims import Claim
from workflows.services.clock import database_now
from workflows.services.failures import after_failure, call
from workflows.services.kinds import Done, Park, Result
from workflows.services.run_view import RunView

LONGEST = timedelta(days=3650)


def execute_sleep(claim: Claim, view: RunView) -> Result:
    """Park until the time that the author's function gives, by the database's clock.

    The time is asked for once and kept with the run, so that a restart does not begin it anew.
    """
    now = database_now()
    if claim.waited_until is not None and claim.waited_until <= now:
        return Done(claim.waited_until.isoformat())
    value, problem = call(claim, view)
    if problem is not None:
        return problem
    try:
        due = due_at(value, now, claim.step.name)
    except UsageError as error:
        return after_failure(claim, error)
    if due <= now:
        return Done(due.isoformat())
    return Park("sleeping", f"It sleeps until {due:%Y-%m-%d %H:%M:%S %Z}.", wake_at=due)


def due_at(value: object, now: datetime, step: str) -> datetime:
    """Raises `UsageError` for what is neither a duration nor a time with its zone."""
    match value:
        case timedelta():
            if value > LONGEST:
                raise UsageError(f"step {step} sleeps {value}: at most {LONGEST.days} days")
            return now + value
        case datetime() if value.tzinfo is not None:
            if value - now > LONGEST:
                raise UsageError(f"step {step} sleeps until {value}: at most {LONGEST.days} days")
            return value
        case datetime():
            raise UsageError(f"step {step} returned a time without its zone: {value}")
        case _:
            kind = type(value).__name__
            raise UsageError(f"step {step} returned {kind}: a timedelta or a datetime is needed")
