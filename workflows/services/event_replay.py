"""Replaying a kept event: its body is read once more by its source's rules as they are now.

For whoever has mended a source's paths or schema. What is found replaces what was found when the
event came, and the event goes through matching again, with the time at which it came.
"""

from __future__ import annotations

from uuid import UUID

import structlog
from django.db import IntegrityError, transaction

from workflows.core.errors import DeliveryRefused, EventIsTaken
from workflows.core.event_words import EventAction, offered
from workflows.core.events import Outcome
from workflows.core.extraction import Found, read_body, read_event
from workflows.core.json_text import NotJson
from workflows.core.sources import Scheme
from workflows.core.states import EventState
from workflows.core.unpacking import unpacked
from workflows.failpoints import failpoint
from workflows.models import Event
from workflows.models.event import TO_ACT_ON
from workflows.services import audit
from workflows.services.event_items import (
    CAME_OF,
    PURGED,
    Done,
    check_reason,
    facts_of,
    first,
    lock_all,
)
from workflows.services.inbox import matched
from workflows.services.known_sources import rules_now

log = structlog.get_logger(__name__)

ONCE = "event_once"  # the constraint: a source's ID is one event's


def replay(event_id: UUID, *, by: str, reason: str) -> Done:
    """Read an event anew and take it through matching.

    Raises:
        UsageError: no reason is given.
        Event.DoesNotExist
    """
    check_reason(by, reason)
    event = Event.objects.select_related("source").get(pk=event_id)
    if EventAction.REPLAY not in offered(facts_of(event)):
        return Done(False, True, False, PURGED) if event.purged_at else first(event, by)
    found = found_now(event)
    if found.problem:
        return unreadable(event, found)
    failpoint("before_replay")
    try:
        with transaction.atomic():
            outcome = take(event, found)
            detail = {"outcome": str(outcome), "type": found.type}
            audit.record(by, "event replayed", f"event:{event.pk}", reason=reason, **detail)
    except EventIsTaken:
        return first(Event.objects.get(pk=event_id), by)
    except IntegrityError as error:
        if ONCE not in str(error):
            raise
        return same_again(event, found)
    failpoint("after_replay")
    log.info("event.replayed", event_row=str(event.pk), outcome=str(outcome))
    return Done(True, False, True, f"It was read anew. {CAME_OF[outcome]}")


def found_now(event: Event) -> Found:
    """What the source's rules find in the kept body. Headers that they name are kept no more:
    what was found in one stays."""
    rules = rules_now(event.source)
    headers = {rules.id_header: event.event_id or "", rules.type_header: event.type}
    try:
        body = unpacked(bytes(event.body or b""), event.encoding, limit_of(event))
        payload = read_body(body, Scheme(event.source.scheme))
    except (NotJson, DeliveryRefused) as problem:
        return Found(problem=f"the body cannot be read: {problem}")
    return read_event(rules, headers, payload)


def limit_of(event: Event) -> int:
    """It was taken under a limit that may have been lowered since."""
    return max(event.source.max_bytes, len(event.body or b""))


def take(event: Event, found: Found) -> Outcome:
    """Write down what was found and match by it. What is matched under is locked before the event:
    the keys of what it was and of what it is."""
    keys = ([event.type], event.correlation), ([found.type], found.correlation)
    lock_all(event.tenant_id, *keys)
    same = (event.type, event.correlation) == (found.type, found.correlation)
    stays = same and event.state == EventState.LATE
    changed = Event.objects.filter(TO_ACT_ON, pk=event.pk, state=event.state).update(
        event_id=found.event_id,
        type=found.type,
        correlation=found.correlation,
        state=EventState.LATE if stays else EventState.STORED,
        problem=event.problem if stays else "",
    )
    if not changed:
        raise EventIsTaken
    event.refresh_from_db()
    return matched(event)


def unreadable(event: Event, found: Found) -> Done:
    stays = "It stays rejected" if event.state == EventState.REJECTED else "It stays as it is"
    return Done(False, False, False, f"{stays}: {found.problem}. Nothing was changed.")


def same_again(event: Event, found: Found) -> Done:
    """Its sender has delivered it again since, and that one was understood."""
    other = Event.objects.filter(source=event.source_id, event_id=found.event_id).first()
    named = f" as event …{other.pk.hex[-6:]}" if other else ""
    said = f"Its source has delivered the same ID again{named}: this one can be dismissed."
    return Done(False, True, False, f"{said} Nothing was changed.")
