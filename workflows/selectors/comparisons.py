"""A wait and an event that came close to it, side by side, field by field."""

from __future__ import annotations

from datetime import datetime, tzinfo

from django.urls import reverse

from workflows.core.durations import zone_name
from workflows.core.near_misses import (
    NearMiss,
    Nearness,
    Piece,
    Said,
    side_by_side,
    side_by_side_types,
)
from workflows.event_pages import Compared, Comparison
from workflows.models import Wait
from workflows.pages import Link
from workflows.selectors.paging import address
from workflows.selectors.run_children import link_to
from workflows.selectors.words import title_of


def comparison_of(wait: Wait, miss: NearMiss, zone: tzinfo, *, may_attach: bool) -> Comparison:
    """The wait comes with its run. What was rejected is replayed and not attached."""
    event = miss.event
    attach = reverse("event_attach", args=[event.id])
    may = may_attach and miss.nearness is not Nearness.REJECTED
    return Comparison(
        fields=(type_of(wait, event), correlation_of(wait, event), time_of(wait, event, zone)),
        lead=miss.nearness.sentence,
        text=consequence(wait, miss),
        event=Link(event.event_id or f"…{event.id.hex[-6:]}", reverse("event", args=[event.id])),
        run=link_to(wait.run),
        attach_url=address(attach, {"wait": str(wait.pk)}) if may else "",
    )


def type_of(wait: Wait, event: Said) -> Compared:
    if event.type in wait.event_types:
        return alike("Type", event.type)
    expected, said = side_by_side_types(wait.event_types, event.type)
    return Compared("Type", expected, said, same=False, fit="differs")


def correlation_of(wait: Wait, event: Said) -> Compared:
    if event.correlation == wait.correlation:
        return alike("Correlation", event.correlation)
    expected, said = side_by_side(wait.correlation, event.correlation)
    return Compared("Correlation", expected, said, same=False, fit="differs")


def alike(name: str, text: str) -> Compared:
    return Compared(name, (Piece(text),), (Piece(text),), same=True, fit="same")


def time_of(wait: Wait, event: Said, zone: tzinfo) -> Compared:
    until = "no deadline" if wait.deadline is None else f"until {clock(wait.deadline, zone)}"
    inside = wait.deadline is None or event.received_at <= wait.deadline
    return Compared(
        "Time",
        (Piece(until),),
        (Piece(clock(event.received_at, zone)),),
        same=inside,
        fit="inside" if inside else "too late",
    )


def clock(at: datetime, zone: tzinfo) -> str:
    own = at.astimezone(zone)
    return f"{own:%Y-%m-%d %H:%M:%S} {zone_name(own)}"


def consequence(wait: Wait, miss: NearMiss) -> str:
    if miss.nearness is Nearness.REJECTED:
        return "Mend the paths or the schema of its source, and replay the event."
    goes_on = f"{title_of(wait.run)} goes on from {wait.step}"
    if wait.needed > 1:
        goes_on = f"it counts as one of the {wait.needed} events that {wait.step} waits for"
    return f"If this is the event that is meant and it is attached, {goes_on}."
