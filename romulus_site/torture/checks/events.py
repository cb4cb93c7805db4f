"""Waits and events: what was sent is kept once; a wait got what came in time, else its deadline.

When an event was sent does not count, nor when somebody came by: when it was received does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

from romulus_site.torture.player import Delivery
from romulus_site.torture.record import Record
from workflows.core.events import Outcome
from workflows.core.states import EventState, WaitState
from workflows.models import Event, Wait

KEPT = (EventState.STORED, EventState.LATE)


# --- sent -------------------------------------------------------------------------------------


def sent(record: Record) -> Iterator[str]:
    """What was sent is there, once, however often; and nothing else is."""
    rows: dict[str, list[Event]] = {}
    for event in record.events:
        rows.setdefault(event.event_id or "", []).append(event)
    told = deliveries_of(record)
    for event_id in dict.fromkeys(each.event_id for each in record.plan.sendings):
        if len(rows.get(event_id, [])) != 1:
            yield f"event {event_id} was sent, and is kept {len(rows.get(event_id, []))} times"
            continue
        yield from copies(rows[event_id][0], told.get(event_id, []))
    for event_id in rows.keys() - {each.event_id for each in record.plan.sendings}:
        yield f"event {event_id} is kept, and nobody sent it"


def deliveries_of(record: Record) -> dict[str, list[Delivery]]:
    deliveries = sorted(record.performance.deliveries, key=attrgetter("sending.event_id"))
    return {name: list(of) for name, of in groupby(deliveries, attrgetter("sending.event_id"))}


def copies(event: Event, told: list[Delivery]) -> Iterator[str]:
    """A try that was not answered may have been counted, or not; each that was answered was."""
    answered, tried = len(told), sum(each.tries for each in told)
    if not answered <= 1 + event.duplicates <= tried:
        yield (
            f"event {event.event_id} was answered {answered} times of {tried} tries, and "
            f"{event.duplicates} copies of it are counted"
        )
    first = [each for each in told if each.outcome != Outcome.DUPLICATE]
    if len(first) > 1 or (answered == tried and len(first) != 1):
        yield f"{len(first)} senders of event {event.event_id} were told that it is the first"


# --- waits ------------------------------------------------------------------------------------


def decided(record: Record) -> Iterator[str]:
    """Each wait was resolved once: by what came in time, by its deadline, or with its run."""
    places = Counter((wait.run_id, wait.step, wait.visit) for wait in record.waits)
    for (run, step, visit), number in places.items():
        if number != 1:
            yield f"{record.name(run)} has waited {number} times at {step}, visit {visit}"
    for wait in record.waits:
        wrong = complaint_about(record, wait)
        if wrong:
            yield f"{record.name(wait.run_id)}: its wait at {wait.step} is {wait.state}: {wrong}"


def complaint_about(record: Record, wait: Wait) -> str:
    got = record.got_by.get(wait.pk, [])
    match WaitState(wait.state):
        case WaitState.RESOLVED:
            return "" if len(got) == wait.needed else f"it got {len(got)} events"
        case WaitState.EXPIRED:
            return with_deadline(record, wait, got)
        case WaitState.CANCELLED:
            asked = record.run_of[wait.run_id].cancel_asked_at
            return "" if asked is not None else "nobody has cancelled its run"
        case WaitState.WAITING:
            return "it got an event" if got else ""


def with_deadline(record: Record, wait: Wait, got: list[Event]) -> str:
    if wait.deadline is None:
        return "it has no deadline"
    if wait.resolved_at is None or wait.resolved_at <= wait.deadline:
        return f"it was over at {wait.resolved_at}, and its deadline is {wait.deadline}"
    if got:
        return f"it got event {got[0].event_id}"
    in_time = [event.event_id for event in record.events if could_take(wait, event)]
    return f"event {in_time[0]} came in time" if in_time else ""


def could_take(wait: Wait, event: Event) -> bool:
    """Whether the wait could have it: nobody else has, and it came in time."""
    return event.state in KEPT and fits(wait, event) and is_in_time(wait, event)


def fits(wait: Wait, event: Event) -> bool:
    named = (wait.tenant_id, wait.correlation)
    return (event.tenant_id, event.correlation) == named and event.type in wait.event_types


def is_in_time(wait: Wait, event: Event) -> bool:
    return wait.deadline is None or event.received_at <= wait.deadline


def none_waits(record: Record) -> Iterator[str]:
    for wait in record.waits:
        if wait.state != WaitState.WAITING:
            continue
        for event in record.events:
            if could_take(wait, event):
                yield f"{record.name(wait.run_id)} waits for event {event.event_id}, which is there"


# --- events -----------------------------------------------------------------------------------


def taken(record: Record) -> Iterator[str]:
    wait_of = {wait.pk: wait for wait in record.waits}
    times = Counter(match.event_id for match in record.matches)
    for event in record.events:
        number = times[event.pk]
        if number != (event.state == EventState.MATCHED):
            yield f"event {event.event_id} is {event.state}, and {number} waits got it"
        elif number == 0:
            yield from labelled(record, event)
    event_of = {event.pk: event for event in record.events}
    for match in record.matches:
        wait, event = wait_of[match.wait_id], event_of[match.event_id]
        if not fits(wait, event):
            yield f"{record.name(wait.run_id)} got event {event.event_id}, which is not for it"
        elif not is_in_time(wait, event):
            yield (
                f"{record.name(wait.run_id)} got event {event.event_id} of {event.received_at}, "
                f"after its deadline {wait.deadline}"
            )


def labelled(record: Record, event: Event) -> Iterator[str]:
    """What nobody took is late if a wait had been there for it, else only stored."""
    before = [w for w in record.waits if fits(w, event) and w.started_at <= event.received_at]
    should = EventState.LATE if before else EventState.STORED
    if event.state != should or event.dismissed_at is not None:
        yield f"event {event.event_id}, which nobody took, is {event.state}, and should be {should}"
