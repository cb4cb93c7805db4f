"""One event: what was received, what became of it and why, and what may be done about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo
from uuid import UUID

from django.db.models import Count, QuerySet
from django.urls import reverse

from workflows.core.event_words import EventAction, EventFacts, offered, standing
from workflows.core.near_misses import CLOSENESS, Expected, NearMiss, fits, nearness
from workflows.core.states import EventState, WaitState
from workflows.core.words import who
from workflows.event_pages import Comparison, EventPage, GivenTo
from workflows.models import Event, Match, Wait
from workflows.pages import ControlLink, Fact, LogEntry
from workflows.selectors.comparisons import comparison_of
from workflows.selectors.event_bodies import body_of
from workflows.selectors.event_lists import shown_state
from workflows.selectors.near_events import said_by
from workflows.selectors.open_waits import wait_row
from workflows.selectors.run_children import link_to
from workflows.services.event_items import facts_of

WAITS_READ = 500  # open waits of the tenant, the newest, among which those close to it are
CANDIDATES, CLOSE = 20, 3
GIVEN_SHOWN = 20

LOOKS = {
    EventAction.ATTACH: ("Attach to a wait…", "matched"),
    EventAction.REPLAY: ("Replay…", "refresh"),
    EventAction.DISMISS: ("Dismiss…", "cancelled"),
    EventAction.RESTORE: ("Take the dismissal back…", "refresh"),
}
HELPS = {
    EventState.MATCHED: "Nothing is needed.",
    EventState.STORED: "Nothing, if its wait is still to come. Else attach it or dismiss it.",
    EventState.LATE: "Nothing, if nobody needs it any more: dismiss it. Else attach it to an open "
    "wait.",
    EventState.REJECTED: "Mending the paths or the schema of its source, then replaying it; or "
    "dismissing it.",
}


def event_page(event: Event, zone: tzinfo, *, payloads: bool, control: bool) -> EventPage:
    """The page of `event`, which comes with its source. A fixed number of queries.

    Args:
        zone: in which times are said in sentences.
        payloads: the reader may see what was received.
        control: and may act on it.
    """
    facts = facts_of(event)
    matches = matches_of(event)
    candidates, close = waits_near(event)
    shown = shown_state(event)
    return EventPage(
        id=event.pk,
        title=event.type or "Event without a type",
        state=shown,
        lead=standing(facts),
        helps=helps(event, facts),
        facts=tuple(facts_shown(event)),
        source=event.source.name,
        event_id=event.event_id or "",
        correlation=event.correlation,
        received_at=event.received_at,
        duplicates=event.duplicates,
        last_duplicate_at=event.last_duplicate_at,
        body=body_of(event, payloads=payloads),
        given=tuple(given(match) for match in matches),
        candidates=tuple(wait_row(wait) for wait in candidates),
        comparisons=comparisons(close, zone, control=control),
        actions=actions_of(event, facts) if control else (),
        record=tuple(sorted(record(event, matches), key=lambda entry: entry.at)),
        purged_at=event.purged_at,
    )


def helps(event: Event, facts: EventFacts) -> str:
    if event.state != EventState.MATCHED and facts.dismissed:
        return "Nothing is needed. The dismissal can be taken back."
    if facts.ambiguous:
        return "Attaching it to the wait that is meant, or dismissing it. The hold ends with that."
    return HELPS[EventState(event.state)]


def facts_shown(event: Event) -> Iterator[Fact]:
    yield Fact("Source", event.source.name)
    yield Fact("Scheme", event.source.get_scheme_display())
    if event.problem and event.state != EventState.MATCHED:
        yield Fact("Problem", event.problem)


def actions_of(event: Event, facts: EventFacts) -> tuple[ControlLink, ...]:
    return tuple(
        ControlLink(action.value, LOOKS[action][0], url_of(event, action), LOOKS[action][1])
        for action in offered(facts)
    )


def url_of(event: Event, action: EventAction) -> str:
    return reverse(f"event_{action}", args=[event.pk])


# --- waits ------------------------------------------------------------------------------------


def matches_of(event: Event) -> Sequence[Match]:
    found = Match.objects.filter(event=event).select_related("wait__run").order_by("at", "pk")
    return list(found.defer("wait__run__input")[:GIVEN_SHOWN])


def given(match: Match) -> GivenTo:
    wait = match.wait
    by = who(match.by) if match.by else ""
    return GivenTo(link_to(wait.run), wait.step, wait.state, match.at, by, match.reason)


def waits_near(event: Event) -> tuple[Sequence[Wait], Sequence[tuple[Wait, NearMiss]]]:
    """The open waits that could take an event, and those that it came close to; three queries.

    Of an event that is with a wait, or dismissed, none.
    """
    if event.state == EventState.MATCHED or event.dismissed_at is not None:
        return (), ()
    said = said_by(event)
    open_waits = Wait.objects.filter(state=WaitState.WAITING, tenant=event.tenant_id)
    same = expectations(open_waits.filter(correlation=event.correlation).order_by("pk"), CANDIDATES)
    expected = same | expectations(open_waits.order_by("-pk"), WAITS_READ)
    could = [pk for pk, each in expected.items() if fits(each, said) and not said.rejected]
    near = {pk: found for pk, each in expected.items() if (found := nearness(each, said))}
    closest = sorted(near, key=lambda pk: CLOSENESS[near[pk]])
    rows = with_runs(Wait.objects.all()).in_bulk([*could[:CANDIDATES], *closest[:CANDIDATES]])
    return (
        [rows[pk] for pk in could if pk in rows],
        [(rows[pk], NearMiss(near[pk], said)) for pk in closest if pk in rows],
    )


def expectations(waits: QuerySet[Wait], most: int) -> dict[UUID, Expected]:
    columns = waits.values_list("pk", "event_types", "correlation")[:most]
    return {pk: Expected(tuple(types), correlation) for pk, types, correlation in columns}


def with_runs(waits: QuerySet[Wait]) -> QuerySet[Wait]:
    return waits.select_related("run").defer("run__input").annotate(got=Count("matches"))


def comparisons(
    close: Sequence[tuple[Wait, NearMiss]], zone: tzinfo, *, control: bool
) -> tuple[Comparison, ...]:
    return tuple(
        comparison_of(wait, miss, zone, may_attach=control) for wait, miss in close[:CLOSE]
    )


# --- the record -------------------------------------------------------------------------------


def record(event: Event, matches: Sequence[Match]) -> Iterator[LogEntry]:
    """What happened to it, as far as its own rows tell."""
    source = event.source.name
    yield LogEntry(event.received_at, "event", received_as(event), "Received", source)
    if event.last_duplicate_at is not None:
        text = f"Delivered again, {event.duplicates} times in all; only counted"
        text = "Delivered again; only counted" if event.duplicates == 1 else text
        yield LogEntry(event.last_duplicate_at, "event", "duplicate", text, source)
    for match in matches:
        text = f"Given to {match.wait.step} of run …{match.wait.run_id.hex[-6:]}"
        if match.by:
            text = f"Attached to {match.wait.step} of run …{match.wait.run_id.hex[-6:]}"
        text = f"{text}: {match.reason}" if match.reason else text
        yield LogEntry(match.at, "event", "matched", text, who(match.by) if match.by else "Romulus")
    if event.dismissed_at is not None:
        text = f"Dismissed: {event.dismissed_reason}".rstrip(": ")
        yield LogEntry(event.dismissed_at, "event", "dismissed", text, who(event.dismissed_by))
    if event.purged_at is not None:
        yield LogEntry(event.purged_at, "event", "dismissed", "Its body was purged", "Romulus")


def received_as(event: Event) -> str:
    return event.state if event.state != EventState.MATCHED else EventState.STORED
