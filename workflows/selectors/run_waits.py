"""The waits of one run: what each was for, which events it got, and which came too late."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet
from django.urls import reverse

from workflows.core.states import EventState, WaitState
from workflows.core.timeline import Lane, Span
from workflows.core.words import who
from workflows.models import Event, Match, Run, Wait
from workflows.models.event import UNCONSUMED
from workflows.pages import LogEntry, RunWait, SeenEvent
from workflows.selectors.run_parts import Deed, RunParts
from workflows.selectors.wait_facts import give_first, with_first_events

WAITS_SHOWN = 20
LATE_SHOWN = 20
LANES_SHOWN = 3  # of the waits of one step, the newest

ENDS = {
    WaitState.RESOLVED: "The wait at {step} was resolved",
    WaitState.EXPIRED: "The deadline of the wait at {step} came first",
    WaitState.CANCELLED: "The wait at {step} was cancelled",
}


def wait_rows(run: Run, before: datetime | None = None) -> tuple[QuerySet[Wait], QuerySet[Match]]:
    """The newest waits of `run`, or of those from before, and what each got first; to be read."""
    waits = Wait.objects.filter(run=run)
    if before is not None:
        waits = waits.filter(started_at__lt=before)
    return with_first_events(waits.order_by("-pk")[:WAITS_SHOWN])


def waits_shown(
    rows: Sequence[Wait], matches: Sequence[Match], late: Mapping[UUID, Sequence[Event]]
) -> tuple[RunWait, ...]:
    """What those rows say, the newest wait first, with what came too late for them."""
    give_first(rows, matches)
    return tuple(shown(wait, late.get(wait.pk, [])) for wait in rows)


def shown(wait: Wait, late: Sequence[Event]) -> RunWait:
    first: Sequence[Match] = getattr(wait, "first", ())
    return RunWait(
        step=wait.step,
        visit=wait.visit,
        types=" or ".join(wait.event_types),
        correlation=wait.correlation,
        state=wait.state,
        started_at=wait.started_at,
        deadline=wait.deadline,
        resolved_at=wait.resolved_at,
        needed=wait.needed,
        got=getattr(wait, "got", 0),
        events=tuple(given(match) for match in first),
        late=tuple(seen(event) for event in late),
    )


def given(match: Match) -> SeenEvent:
    by = who(match.by) if match.by else ""
    return replace(seen(match.event), at=match.at, by=by, reason=match.reason)


def seen(event: Event) -> SeenEvent:
    return SeenEvent(
        text=f"{event.type} {event.event_id or ''}".strip(),
        url=reverse("event", args=[event.pk]),
        source=event.source.name,
        at=event.received_at,
    )


def late_beside(waits: Sequence[Wait]) -> Mapping[UUID, list[Event]]:
    """By wait that is over, the events that would have fitted it and that nobody took since: the
    oldest few (index `event_unconsumed`)."""
    over = [wait for wait in waits if wait.state != WaitState.WAITING]
    if not over:
        return {}
    fitting = functools.reduce(
        operator.or_,
        (Q(correlation=wait.correlation, type__in=wait.event_types) for wait in over),
    )
    events = Event.objects.filter(
        fitting, UNCONSUMED, tenant=over[0].tenant_id, state=EventState.LATE
    )
    found: dict[UUID, list[Event]] = {}
    ordered = events.select_related("source").defer("body").order_by("received_at", "pk")
    for event in ordered[:LATE_SHOWN]:
        # Beside the latest of the waits that it would have fitted: `over` begins with that.
        wait = next(
            each
            for each in over
            if each.correlation == event.correlation and event.type in each.event_types
        )
        found.setdefault(wait.pk, []).append(event)
    return found


# --- in the timeline and the log --------------------------------------------------------------


def with_waits(parts: RunParts, waits: Sequence[RunWait], past: Sequence[RunWait]) -> RunParts:
    """Add waits to what other apps know of a run: a lane below their step, lines in the log.

    Args:
        past: those whose lines the log is to show.
    """
    if not (waits or past):
        return parts
    lanes = {step: [*of_step] for step, of_step in parts.lanes.items()}
    for step in dict.fromkeys(wait.step for wait in waits):
        newest = [wait for wait in waits if wait.step == step][:LANES_SHOWN]
        lanes[step] = [*map(lane, reversed(newest)), *lanes.get(step, [])]
    log = [*parts.log, *(entry for wait in past for entry in entries(wait))]
    deeds = [*parts.deeds, *(deed for wait in waits for deed in attached(wait))]
    return replace(parts, lanes=lanes, log=log, deeds=deeds)


def attached(wait: RunWait) -> Iterator[Deed]:
    """The events that somebody gave it by hand."""
    for event in wait.events:
        if event.by:
            text = f"attached {event.text} to {wait.step}"
            yield Deed(event.by, event.at, "attached", text, event.url)


def lane(wait: RunWait) -> Lane:
    title = f"Waits for {wait.types} “{wait.correlation}”"
    spans = [Span("wait", wait.started_at, wait.resolved_at, title, working=False)]
    spans += [
        Span("good", event.at, event.at, f"Got {event.text}", url=event.url, working=False)
        for event in wait.events
    ]
    spans += [
        Span("hold", event.at, event.at, f"{event.text} came late", url=event.url, working=False)
        for event in wait.late
    ]
    name = f"{wait.types} {wait.correlation}"
    return Lane(name, tuple(spans), kind="wait", state=wait.state, child=True)


def entries(wait: RunWait) -> Iterator[LogEntry]:
    text = f"{wait.step} waits for {wait.types} “{wait.correlation}”"
    yield LogEntry(wait.started_at, "wait", "waiting", text, "Romulus")
    for event in wait.events:
        text = f"{event.text} of {event.source} was given to {wait.step}"
        text = f"{text}: {event.reason}" if event.reason else text
        yield LogEntry(event.at, "event", "matched", text, event.by or "Romulus")
    for event in wait.late:
        text = f"{event.text} of {event.source} came too late for {wait.step}; it changed nothing"
        yield LogEntry(event.at, "event", "late", text, event.source)
    if wait.resolved_at is not None:
        text = ENDS[WaitState(wait.state)].format(step=wait.step)
        yield LogEntry(wait.resolved_at, "wait", wait.state, text, "Romulus")
