"""What the subcommands of `manage.py events` answer with."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from workflows.core.event_words import standing
from workflows.management.base import Refused
from workflows.models import Event, Match
from workflows.selectors.event_bodies import body_of
from workflows.selectors.event_lists import shown_state
from workflows.selectors.event_page import matches_of, waits_near
from workflows.services.event_items import Done, facts_of


def event_named(pk: UUID) -> Event:
    found = Event.objects.select_related("source", "tenant").filter(pk=pk).first()
    if found is None:
        raise Refused(f"there is no event {pk}")
    return found


def as_json(event: Event) -> dict[str, Any]:
    return {
        "id": event.pk,
        "event_id": event.event_id,
        "type": event.type,
        "correlation": event.correlation,
        "source": event.source.slug,
        "tenant": event.tenant.slug,
        "state": event.state,
        "shown_as": shown_state(event),
        "problem": event.problem,
        "received_at": event.received_at.isoformat(),
        "duplicates": event.duplicates,
        "dismissed_by": event.dismissed_by,
        "dismissed_reason": event.dismissed_reason,
        "purged_at": event.purged_at.isoformat() if event.purged_at else None,
    }


def line(event: Event) -> str:
    named = f"{event.source.slug}  {event.type or 'no type'}  “{event.correlation}”"
    more = f"  {event.duplicates} duplicates" if event.duplicates else ""
    return (
        f"{event.pk}  {shown_state(event):<9} {event.received_at:%Y-%m-%d %H:%M:%S} UTC  "
        f"{named}{more}"
    )


def as_document(event: Event) -> dict[str, Any]:
    """Everything about one event but what was received."""
    could, close = waits_near(event)
    return as_json(event) | {
        "why": standing(facts_of(event)),
        "given": [given(match) for match in matches_of(event)],
        "could_take_it": [{"wait": wait.pk, "run": wait.run_id} for wait in could],
        "came_close_to": [
            {"wait": wait.pk, "run": wait.run_id, "differs": str(miss.nearness)}
            for wait, miss in close
        ],
    }


def given(match: Match) -> dict[str, Any]:
    return {
        "wait": match.wait_id,
        "run": match.wait.run_id,
        "step": match.wait.step,
        "at": match.at.isoformat(),
        "by": match.by,
        "reason": match.reason,
    }


def lines_of(event: Event, document: dict[str, Any], *, body: bool) -> Iterator[str]:
    yield line(event)
    yield document["why"]
    for each in document["given"]:
        by = f", attached by {each['by']}: {each['reason']}" if each["by"] else ""
        yield f"Given to {each['step']} of run {each['run']}{by}"
    for each in document["could_take_it"]:
        yield f"Could be taken by run {each['run']}, wait {each['wait']}"
    for each in document["came_close_to"]:
        yield f"Came close to run {each['run']}, wait {each['wait']}: {each['differs']}"
    if body:
        received = body_of(event, payloads=True)
        yield from filter(None, [received.note])
        yield from received.text.splitlines()


def concluded(command: Any, given: argparse.Namespace, event: UUID, done: Done) -> None:
    """Say what came of it; refuse where it was not done."""
    found = event_named(event)
    document = as_json(found) | {"done": done.done, "changed": done.changed}
    command.answer(given, document | {"message": done.sentence}, [done.sentence])
    if not done.done:
        raise Refused(done.sentence)
