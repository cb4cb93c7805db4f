"""The inbox: an event is stored and given to whoever waits for it, in one transaction.

Both sides of a match take the same lock first (`core.waits`): `receive` looks for open waits when
it stores an event, a wait that opens looks for stored events. So neither can miss the other, and
the sweep is only a second net. Lock order: what is matched under, runs, their waits, events.

An event that comes in time wins over a deadline that was not carried out yet: `received_at` is
taken under the lock, and what a deadline ends is decided under it too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models.functions import Now

from workflows.core.errors import EventIsTaken, WaitIsOver
from workflows.core.events import Incoming, Outcome, Receipt
from workflows.core.states import EventState
from workflows.core.waits import OpenWait, lock_keys, takers
from workflows.failpoints import failpoint
from workflows.models import Event
from workflows.models.event import TO_ACT_ON
from workflows.models.ids import new_id
from workflows.services import event_holds, hints
from workflows.sql import fetch, fetch_together
from workflows.sql.statement import Row

log = structlog.get_logger(__name__)


def receive(incoming: Incoming, *, patience: float | None = None) -> Receipt:
    """Store an event and give it to the wait that it is for; committed when this returns.

    Inside the caller's own transaction it commits or rolls back with it.

    Args:
        patience: for so many seconds it waits for what others have locked; None: for ever.

    Raises:
        OperationalError: Django's, when the database is away or `patience` is over.
    """
    event = new_id()
    failpoint("before_event")
    with transaction.atomic():
        could = locked_waits(incoming, patience)
        get = takers(could)
        stored = store(event, incoming, get, ambiguous=bool(could) and not get)
        if stored.was_rejected and not incoming.problem:
            stored = mended(stored, incoming)
        elif stored.outcome is Outcome.AMBIGUOUS:
            candidates = [wait.id for wait in could]
            event_holds.open_hold(event, incoming.tenant, incoming.source, candidates)
        failpoint("event_stored")
    failpoint("after_event")
    hints.runs_are_ready(stored.runs)
    log.info("event.received", event_row=str(stored.event), outcome=str(stored.outcome))
    return Receipt(stored.event, stored.outcome)


def match_again(event_id: UUID) -> Outcome:
    """Take a stored event through matching once more, after its source's rules were mended.

    Raises:
        EventIsTaken: a wait has it already, or a person has dismissed it.
        Event.DoesNotExist
    """
    event = Event.objects.defer("body").get(pk=event_id)
    failpoint("before_match")
    with transaction.atomic():
        lock_matching(event.tenant_id, [event.type], event.correlation)
        # It may have been read anew meanwhile, and be for another wait.
        same = Event.objects.filter(pk=event_id, type=event.type, correlation=event.correlation)
        ensure_taken(same.count(), event_id)
        outcome = matched(event)
    failpoint("after_match")
    return outcome


def matched(event: Event) -> Outcome:
    """Give a stored event, whose key is locked, to the wait that it is for, if there is one."""
    could = open_waits(event)
    get = takers(could)
    if get:
        give(event.pk, [wait.id for wait in get])
        return Outcome.MATCHED
    rows = Event.objects.filter(TO_ACT_ON, pk=event.pk)
    changed = rows.update(ambiguous_at=Now() if could else None)
    ensure_taken(changed, event.pk)
    if could:
        candidates = [wait.id for wait in could]
        event_holds.open_hold(event.pk, event.tenant_id, event.source_id, candidates)
        return Outcome.AMBIGUOUS
    # It is kept for a wait that may come.
    event_holds.close_holds([event.pk], "no open wait could take the event any more")
    return Outcome.LATE if event.state == EventState.LATE else Outcome.STORED


def give(event: UUID, waits: Collection[UUID], *, by: str = "", reason: str = "") -> list[UUID]:
    """Give a stored event to open waits, in the caller's transaction: all of them, or none.

    The caller has locked what is matched under (`lock_matching`), if it looked for the waits.

    Args:
        by: the person who attaches it, for the record; empty: the rules.
        reason: why, which a person has to say.

    Returns:
        The runs that go on. They are told of after the transaction.

    Raises:
        EventIsTaken: a wait has the event already, or a person has dismissed it.
        WaitIsOver: one of `waits` is open no more.
    """
    locked = fetch("lock_waits", {"waits": list(waits)})
    if len(locked) != len(set(waits)):
        raise WaitIsOver("this wait is over: it was resolved, ran out or was cancelled meanwhile")
    rows = fetch(
        "give_event",
        {
            "event": event,
            "waits": [row["id"] for row in locked],
            "matches": [new_id() for _ in locked],
            "by": by,
            "reason": reason,
        },
    )
    ensure_taken(len(rows), event)
    event_holds.close_holds([event], "the event was given to a wait", by)
    runs = [row["run"] for row in rows if row["run"] is not None]
    hints.runs_are_ready(runs)
    return runs


def ensure_taken(rows: int, event: UUID) -> None:
    if not rows:
        raise EventIsTaken(f"event {event}: a wait has it already, or a person has dismissed it")


# --- its parts --------------------------------------------------------------------------------


def lock_matching(tenant: UUID, types: Collection[str], correlation: str) -> None:
    """Lock what is matched under, before anything else is, until the transaction ends."""
    fetch("lock_matching", {"keys": lock_keys(tenant, types, correlation)})


def locked_waits(incoming: Incoming, patience: float | None) -> list[OpenWait]:
    """Lock what is matched under, then the open waits that could take what arrives now: one round
    trip. What is rejected none could take."""
    keys = lock_keys(incoming.tenant, [incoming.type], incoming.correlation)
    looked_for = {
        "tenant": incoming.tenant,
        "type": incoming.type,
        "correlation": incoming.correlation,
        "received_at": None,
    }
    asked: list[tuple[str, dict[str, Any]]] = [
        ("lock_matching", {"keys": keys}),
        ("open_waits", looked_for),
    ]
    if patience is not None:
        asked.insert(0, ("be_patient", {"patience": f"{round(patience * 1000)}ms"}))
    *_, rows = fetch_together(*asked)
    return [] if incoming.problem else waits_in(rows)


def open_waits(event: Event) -> list[OpenWait]:
    """Lock the open waits that could take a stored event: they were open when it was received."""
    rows = fetch(
        "open_waits",
        {
            "tenant": event.tenant_id,
            "type": event.type,
            "correlation": event.correlation,
            "received_at": event.received_at,
        },
    )
    return waits_in(rows)


def waits_in(rows: Sequence[Row]) -> list[OpenWait]:
    return [OpenWait(row["id"], row["run_id"], row["shared"], row["moment"]) for row in rows]


@dataclass(frozen=True, slots=True)
class Stored:
    event: UUID
    outcome: Outcome
    runs: Sequence[UUID] = ()  # that go on
    was_rejected: bool = False  # when its source sent it before


def store(event: UUID, incoming: Incoming, get: Sequence[OpenWait], *, ambiguous: bool) -> Stored:
    """Write the event down and give it to the waits that `get` it: one statement."""
    rows = fetch(
        "store_event",
        {
            "event": event,
            "source": incoming.source,
            "tenant": incoming.tenant,
            "event_id": incoming.event_id,
            "type": incoming.type,
            "correlation": incoming.correlation,
            "content_type": incoming.content_type,
            "encoding": incoming.encoding,
            "body": incoming.body,
            "state": state_of(incoming, get),
            "received_at": get[0].looked_at if get else None,
            "problem": incoming.problem,
            "ambiguous": ambiguous,
            "waits": [wait.id for wait in get],
            "matches": [new_id() for _ in get],
        },
    )
    first = rows[0]
    if first["id"] != event:
        was_rejected = first["state"] == EventState.REJECTED
        return Stored(first["id"], Outcome.DUPLICATE, was_rejected=was_rejected)
    outcome = Outcome.AMBIGUOUS if ambiguous else Outcome(first["state"])
    return Stored(event, outcome, [row["run"] for row in rows if row["run"] is not None])


def mended(stored: Stored, incoming: Incoming) -> Stored:
    """What was rejected when it came first is of a good shape now: this delivery counts."""
    rows = Event.objects.filter(pk=stored.event, state=EventState.REJECTED, dismissed_at=None)
    changed = rows.update(
        state=EventState.STORED,
        type=incoming.type,
        correlation=incoming.correlation,
        content_type=incoming.content_type,
        encoding=incoming.encoding,
        body=incoming.body,
        problem="",
        received_at=Now(),
    )
    if not changed:
        return stored
    return replace(stored, outcome=matched(Event.objects.defer("body").get(pk=stored.event)))


def state_of(incoming: Incoming, get: Sequence[OpenWait]) -> EventState:
    if incoming.problem:
        return EventState.REJECTED
    return EventState.MATCHED if get else EventState.STORED
