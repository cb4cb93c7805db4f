"""The events and waits page: what came, what is waited for, and what came close.

Whatever the number of tenants, events and waits: each list is read newest first from an index of
one tenant, a page of it from each, and what is counted is counted up to a limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Count, Model, Q, QuerySet
from django.urls import reverse

from workflows.core.ranges import DAY, HOUR, WEEK
from workflows.core.states import EventState
from workflows.core.words import who
from workflows.event_pages import EventRow, EventsPage, Tally
from workflows.models import Event, EventSource, Match, Tenant
from workflows.models.event import AMBIGUOUS, KIND, TO_ACT_ON
from workflows.pages import Filter, Pager
from workflows.selectors.events_asked import COUNTED, Asked, Reader, here, newest_of
from workflows.selectors.open_waits import close, waits_of, waits_part
from workflows.selectors.paging import PAGE_ROWS, address, as_uuid
from workflows.selectors.run_children import link_to
from workflows.selectors.words import counted

SOURCES_SHOWN = 50
RANGES = (HOUR, DAY, WEEK)
ALL = "all"
DISMISSED = "dismissed"

# What the tally counts, and the list may be narrowed to.
KINDS: dict[str, str] = {
    EventState.STORED: "no wait for it yet",
    EventState.LATE: "its wait had ended",
    AMBIGUOUS: "more than one wait could take it",
    EventState.REJECTED: "not as its source declares",
}


def events_page(reader: Reader, asked: Asked) -> EventsPage:
    """What `reader` sees. A bounded number of queries."""
    asked = understood(asked, reader.sources)
    rows, newer, older = list_of(reader, asked)
    waits, near = waits_of(reader, asked)
    closest, comparison = close(reader, waits, near, asked)
    return EventsPage(
        rows=rows_of(rows),
        tally=tally(reader, asked),
        views=views(asked),
        sources=source_filters(asked, reader.sources),
        pager=pager(rows, asked, newer=newer, older=older),
        url=address(here(), asked.query(before=asked.before, after=asked.after)),
        waits=waits_part(reader, waits, near, asked),
        near=closest,
        comparison=comparison,
        filtered=bool(asked.state or asked.source or asked.range),
        ranges=ranges(asked),
        may_send=reader.may_send,
    )


def sources_of(tenants: QuerySet[Tenant]) -> QuerySet[EventSource]:
    """Those that the list may be narrowed to."""
    found = EventSource.objects.filter(tenant__in=tenants).order_by("name", "pk")
    return found.only("slug", "name", "tenant_id")[:SOURCES_SHOWN]


def understood(asked: Asked, sources: Sequence[EventSource]) -> Asked:
    return Asked(
        view=ALL if asked.view == ALL else "",
        state=asked.state if asked.state in KINDS else "",
        source=asked.source if asked.source in {each.slug for each in sources} else "",
        before=asked.before,
        after=asked.after,
        wbefore=asked.wbefore,
        wafter=asked.wafter,
        wait=asked.wait,
        event=asked.event,
        range=asked.range if asked.since else "",
        since=asked.since,
    )


# --- events -----------------------------------------------------------------------------------


def list_of(reader: Reader, asked: Asked) -> tuple[list[Event], bool, bool]:
    chosen = Q() if asked.view else TO_ACT_ON
    if asked.state:
        chosen &= Q(kind=asked.state) & TO_ACT_ON
    tenants = [tenant.pk for tenant in reader.tenants]
    if asked.source:
        source = next(each for each in reader.sources if each.slug == asked.source)
        chosen, tenants = chosen & Q(source=source), [source.tenant_id]
    chosen &= received(asked)
    events = Event.objects.alias(kind=KIND)
    parts = [events.filter(chosen, tenant=tenant) for tenant in tenants]
    whole = Event.objects.select_related("source").defer("body")
    return newest_of(parts, whole, as_uuid(asked.before), as_uuid(asked.after), PAGE_ROWS)


def received(asked: Asked) -> Q:
    return Q(pk__gte=asked.since) if asked.since else Q()


def rows_of(events: Sequence[Event]) -> tuple[EventRow, ...]:
    given = given_to(events)
    return tuple(row_of(event, given.get(event.pk, [])) for event in events)


def given_to(events: Sequence[Event]) -> dict[UUID, list[Match]]:
    """By event, the waits that got it, with their runs."""
    matched = [event.pk for event in events if event.state == EventState.MATCHED]
    found: dict[UUID, list[Match]] = {}
    matches = Match.objects.filter(event__in=matched).select_related("wait__run")
    for match in matches.defer("wait__run__input").order_by("at", "pk") if matched else ():
        found.setdefault(match.event_id, []).append(match)
    return found


def row_of(event: Event, given: Sequence[Match]) -> EventRow:
    return EventRow(
        id=event.pk,
        url=reverse("event", args=[event.pk]),
        type=event.type,
        correlation=event.correlation,
        source=event.source.name,
        state=shown_state(event),
        received_at=event.received_at,
        went=went(event, given),
        run=link_to(given[0].wait.run) if given else None,
        duplicates=event.duplicates,
    )


def shown_state(event: Event) -> str:
    """The word for people: of what nobody has taken, what counts most."""
    if event.state == EventState.MATCHED:
        return EventState.MATCHED
    if event.dismissed_at is not None:
        return DISMISSED
    return AMBIGUOUS if event.ambiguous_at is not None else event.state


def went(event: Event, given: Sequence[Match]) -> str:
    """What became of it, in a few words."""
    if given:
        by = f", attached by {who(given[0].by)}" if given[0].by else ""
        more = f" and {counted(len(given) - 1, 'other')}" if len(given) > 1 else ""
        return f"{given[0].wait.step}{by}{more}"
    match shown_state(event):
        case "dismissed":
            return f"by {who(event.dismissed_by)}"
        case "ambiguous":
            return "more than one wait could take it"
        case EventState.STORED:
            return "no wait for it yet"
        case _:
            return event.problem


def views(asked: Asked) -> tuple[Filter, ...]:
    def url(view: str) -> str:
        return address(here(), asked.query(view=view, state=""))

    return (
        Filter("To act on", url(""), not asked.view),
        Filter("All", url(ALL), asked.view == ALL),
    )


def ranges(asked: Asked) -> tuple[Filter, ...]:
    def url(key: str) -> str:
        return address(here(), asked.query(range=key))

    some = (Filter(each.text, url(each.key), asked.range == each.key) for each in RANGES)
    return (Filter("All time", url(""), not asked.range), *some)


def source_filters(asked: Asked, sources: Sequence[EventSource]) -> tuple[Filter, ...]:
    if len(sources) < 2:  # noqa: PLR2004 (one is no choice)
        return ()
    every = Filter("All sources", address(here(), asked.query(source="")), not asked.source)
    chosen = (
        Filter(each.name, address(here(), asked.query(source=each.slug)), asked.source == each.slug)
        for each in sources
    )
    return (every, *chosen)


def tally(reader: Reader, asked: Asked) -> tuple[Tally, ...]:
    """How many of each kind there are to act on, among so many as are counted at most."""
    events = Event.objects.annotate(kind=KIND)
    among = events.filter(TO_ACT_ON, received(asked), tenant__in=reader.tenants)[:COUNTED]
    numbers = among.aggregate(
        whole=Count("pk"),
        **{str(name): Count("pk", filter=Q(kind=name)) for name in KINDS},
    )
    more = " or more" if numbers["whole"] >= COUNTED else ""
    return tuple(
        Tally(
            state=name,
            count=f"{numbers[str(name)]:,}{more if numbers[str(name)] else ''}",
            meaning=meaning,
            url=address(here(), asked.query(view="", state="" if asked.state == name else name)),
            current=asked.state == name,
        )
        for name, meaning in KINDS.items()
    )


def pager(rows: Sequence[Model], asked: Asked, *, newer: bool, older: bool) -> Pager:
    def at(**place: str) -> str:
        return address(here(), asked.query(**place))

    if not rows:
        # Past the end: the way back is the beginning.
        return Pager(newer=at() if newer or older else "")
    return Pager(
        newer=at(after=str(rows[0].pk)) if newer else "",
        older=at(before=str(rows[-1].pk)) if older else "",
    )
