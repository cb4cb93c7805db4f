"""The `wait` kind: the run waits for events, without a worker, until they or its deadline come.

What comes of a wait is decided under the lock that whoever stores an event takes too
(`services.inbox`), in one transaction with what is written of the run:

- opening: the wait is stored and looks for stored events. It finds what it needs, or its deadline
  is past already, or the run is given back to wait.
- its events come: `receive` resolves the wait and makes the run ready. Whoever claims it finds the
  wait resolved, reads the events and goes on.
- its deadline comes: the sweep makes the run ready, and the wait looks for stored events once
  more. An event that was stored in time wins over the deadline, whenever somebody comes by.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings

from workflows.core.errors import InvalidInput, UnstorableValue, UsageError
from workflows.core.events import MAX_CORRELATION
from workflows.core.states import WaitState
from workflows.core.steps import WaitOptions
from workflows.core.values import Json, to_json
from workflows.core.waits import ReceivedEvent, lock_keys
from workflows.core.words import is_storable
from workflows.failpoints import failpoint
from workflows.models import Match
from workflows.models.ids import new_id
from workflows.services.claims import Claim
from workflows.services.clock import database_now
from workflows.services.failures import after_failure, call
from workflows.services.kinds import Decide, Done, Fail, Hold, Park, Result
from workflows.services.payloads import Kept, payload_of
from workflows.services.run_view import RunView
from workflows.sql import fetch
from workflows.sql.statement import Row

LONGEST = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a wait is for: asked of the author once, and kept with the wait."""

    types: tuple[str, ...]
    correlation: str
    within: timedelta | None = None
    until: datetime | None = None


def execute_wait(claim: Claim, view: RunView) -> Result:
    """Open the wait, look at it again, or go on with its events."""
    options = options_of(claim)
    rows = latest(claim)
    match rows and WaitState(rows[0]["wait_state"]):
        case WaitState.RESOLVED:
            return with_events(claim, rows)
        case WaitState.WAITING:
            wait = rows[0]
            keys = lock_keys(claim.tenant, wait["wait_types"], wait["wait_correlation"])
            return Decide(keys, partial(look, claim, wait["wait"]))
        case WaitState.EXPIRED if options.goes_on:
            # What came in time could not be read then; now it may be.
            return without_the_rest(claim, rows)
        case _:
            # None yet; or one that is over, and a person has let the step be tried again.
            return opened(claim, view, options, rows)


def options_of(claim: Claim) -> WaitOptions:
    assert claim.step.wait is not None, "the decorator sets them"
    return claim.step.wait


def latest(claim: Claim) -> list[Row]:
    """The latest wait of this step and visit, a row for each event that it got; none: no wait."""
    here = {"run": claim.run, "step": claim.step.name, "visit": claim.visit}
    return fetch("latest_wait", here)


# --- opening ----------------------------------------------------------------------------------


def opened(claim: Claim, view: RunView, options: WaitOptions, before: list[Row]) -> Result:
    """Ask the author what it is for and until when, and open it.

    Args:
        before: the wait that it follows, a row for each of its events; empty for the first.
    """
    correlation, problem = call(claim, view)
    within: object = options.within
    until: object = options.until
    if problem is None and callable(options.within):
        within, problem = call(claim, view, options.within)
    if problem is None and callable(options.until):
        until, problem = call(claim, view, options.until)
    if problem is not None:
        return problem
    try:
        expected = Expected(
            options.events,
            checked_correlation(correlation, claim.step.name),
            checked_within(within, claim.step.name),
            checked_until(until, claim.step.name),
        )
    except UsageError as error:
        return after_failure(claim, error)
    keys = lock_keys(claim.tenant, expected.types, expected.correlation)
    return Decide(keys, partial(open_and_look, claim, expected, before))


def checked_correlation(value: object, step: str) -> str:
    """Raises `UsageError` for what no event's correlation can be equal to."""
    if not isinstance(value, str):
        raise UsageError(
            f"step {step} returned {type(value).__name__}: a correlation is text, compared "
            "character by character; return str(…) of what the sender writes"
        )
    if not value or not is_storable(value, MAX_CORRELATION):
        raise UsageError(
            f"step {step} returned a correlation that no event can have: plain text of 1 to "
            f"{MAX_CORRELATION} characters"
        )
    return value


def checked_within(value: object, step: str) -> timedelta | None:
    if value is not None and not isinstance(value, timedelta):
        raise UsageError(f"step {step}: within= gave {type(value).__name__}: a timedelta is needed")
    if value is not None and abs(value) > LONGEST:
        raise UsageError(f"step {step} waits {value}: at most {LONGEST.days} days")
    return value


def checked_until(value: object, step: str) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        kind = "a time without its zone" if isinstance(value, datetime) else type(value).__name__
        raise UsageError(f"step {step}: until= gave {kind}: a datetime with its zone is needed")
    if value - database_now() > LONGEST:
        raise UsageError(f"step {step} waits until {value}: at most {LONGEST.days} days")
    return value


def open_and_look(claim: Claim, expected: Expected, before: list[Row]) -> Result | None:
    """Store the wait and look for what is stored for it, under the lock."""
    options = options_of(claim)
    wait = new_id()
    fetch(
        "open_wait",
        {
            "wait": wait,
            "run": claim.run,
            "step": claim.step.name,
            "visit": claim.visit,
            "tenant": claim.tenant,
            "types": list(expected.types),
            "correlation": expected.correlation,
            "deadline": expected.until,
            "within": None if expected.within is None else expected.within.total_seconds(),
            "needed": options.count,
            "shared": options.shared,
        },
    )
    if is_for_the_same(expected, before):
        # Of several events some came in time; they were taken, and do not come again.
        Match.objects.filter(wait=before[0]["wait"]).update(wait=wait)
    failpoint("wait_opened", claim.step.name)
    return look(claim, wait)


def is_for_the_same(expected: Expected, before: list[Row]) -> bool:
    """Whether the wait before it was for the same, and ran out."""
    if not before or before[0]["wait_state"] != WaitState.EXPIRED:
        return False
    types, correlation = before[0]["wait_types"], before[0]["wait_correlation"]
    return (tuple(types), correlation) == (expected.types, expected.correlation)


# --- what comes of it -------------------------------------------------------------------------


def look(claim: Claim, wait: UUID) -> Result | None:
    """Take what is stored for an open wait; say how the run goes on, None with its events.

    The caller holds the lock.
    """
    matches = [new_id() for _ in range(options_of(claim).count)]
    rows = fetch("take_events", {"wait": wait, "matches": matches})
    if not rows:
        return None  # it was resolved meanwhile
    state, deadline, got = rows[0]["state"], rows[0]["deadline"], rows[0]["got"]
    match state:
        case WaitState.RESOLVED:
            return None
        case WaitState.EXPIRED:
            return after_deadline(claim, deadline, got)
        case _:
            return Park("event", waits_for(claim, deadline), wake_at=deadline)


def waits_for(claim: Claim, deadline: datetime | None) -> str:
    until = "" if deadline is None else f" until {deadline:%Y-%m-%d %H:%M:%S %Z}"
    return f"It waits for {named(options_of(claim))}{until}."


def named(options: WaitOptions) -> str:
    types = " or ".join(options.events)
    return f"{options.count:,} events of {types}" if options.count > 1 else types


def after_deadline(claim: Claim, deadline: datetime, got: int) -> Result:
    """What the author wants when the deadline came first."""
    options = options_of(claim)
    some = f"Only {got:,} of {named(options)}" if got else f"No {' or '.join(options.events)}"
    message = f"{some} came until {deadline:%Y-%m-%d %H:%M:%S %Z}."
    match options.on_deadline:
        case "fail":
            return Fail("deadline", message)
        case "hold":
            return Hold("deadline", message)
        case _:
            return without_the_rest(claim, latest(claim))


def without_the_rest(claim: Claim, rows: list[Row]) -> Result:
    """Go on as the author wants, with those of several events that came in time."""
    options = options_of(claim)
    so_far = Done(None) if options.count == 1 else with_events(claim, rows)
    return replace(so_far, goto=options.target) if isinstance(so_far, Done) else so_far


def with_events(claim: Claim, rows: list[Row]) -> Done | Hold:
    """The events of the `latest` wait as the step's output, the oldest first."""
    options = options_of(claim)
    events = []
    for row in rows:
        if row["id"] is None:
            continue  # it has none
        said = f"event {row['event_id']} of {row['slug']}"
        if row["body"] is None:
            return Hold("event_purged", f"{said}: its body is not kept any more.")
        try:
            payload = read_payload(row, options.payload)
        except InvalidInput as error:
            return Hold("payload_unfit", f"{said} does not fit what the wait declares: {error}")
        events.append(
            ReceivedEvent(
                id=row["id"],
                event_id=row["event_id"] or "",
                type=row["type"],
                correlation=row["correlation"],
                source=row["slug"],
                received_at=row["received_at"],
                payload=payload,
            )
        )
    try:
        return Done(as_output(claim, events))
    except UnstorableValue as error:
        return Hold(
            "payload_unfit",
            f"{error}. Declare payload= with a type that takes only what later steps read.",
        )


def read_payload(row: Row, annotation: Any) -> Any:
    """Raises `InvalidInput`."""
    kept = Kept(row["body"], row["encoding"], row["scheme"], row["max_bytes"])
    return payload_of(kept, annotation)


def as_output(claim: Claim, events: list[ReceivedEvent[object]]) -> Json:
    return to_json(
        events[0] if options_of(claim).count == 1 else events,
        claim.step.returns,
        limit=settings.ROMULUS_MAX_OUTPUT_BYTES,
        what=f"output of step {claim.step.name}",
    )
