"""Events among which those are looked for that came close to a wait.

What bounds it: only events that nobody has taken or dismissed, only of the wait's own tenant, of
these the newest `NEWEST` (index `event_to_act_on`), and beside them the oldest few whose
correlation is a likely mistake for the one waited for (index `event_unconsumed`). So it costs the
same however many events there are, and one that came close long ago may not be found.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.models import QuerySet

from workflows.core.near_misses import Expected, NearMiss, Said, likely, near_misses
from workflows.core.states import EventState
from workflows.models import Event, Wait
from workflows.models.event import TO_ACT_ON, UNCONSUMED

NEWEST = 500
LIKELY = 50
SHOWN = 5

COLUMNS = (
    *("type", "correlation", "received_at", "event_id", "state", "ambiguous_at"),
    "source__name",
)


def near_to(tenant: UUID, expected: Expected) -> tuple[NearMiss, ...]:
    """The events of `tenant` that came close to what is expected. Two queries."""
    same = Event.objects.filter(
        UNCONSUMED, tenant=tenant, correlation__in=likely(expected.correlation)
    )
    among = {event.id: event for event in (*newest(tenant), *said(same[:LIKELY]))}
    return near_misses(expected, among.values(), SHOWN)


def newest(tenant: UUID) -> Sequence[Said]:
    """The newest events of `tenant` that nobody has taken or dismissed."""
    return said(Event.objects.filter(TO_ACT_ON, tenant=tenant).order_by("-pk")[:NEWEST])


def fitting(tenant: UUID, expected: Expected) -> tuple[Said | None, bool]:
    """The oldest event that fits and nobody has, and whether other waits could have it too."""
    found = Event.objects.filter(
        UNCONSUMED, tenant=tenant, correlation=expected.correlation, type__in=expected.types
    )
    event = without_bodies(found).order_by("received_at", "pk").first()
    return (None, False) if event is None else (said_by(event), event.ambiguous_at is not None)


def without_bodies(events: QuerySet[Event]) -> QuerySet[Event]:
    """With their sources, of which only the name is read."""
    return events.select_related("source").only(*COLUMNS)


def said(events: QuerySet[Event]) -> list[Said]:
    return [said_by(event) for event in without_bodies(events)]


def said_by(event: Event) -> Said:
    """What an event that comes with its source says of itself."""
    return Said(
        event.pk,
        event.type,
        event.correlation,
        event.received_at,
        event.event_id or "",
        event.source.name,
        rejected=event.state == EventState.REJECTED,
    )


def near_to_each(waits: Sequence[Wait]) -> dict[UUID, tuple[NearMiss, ...]]:
    """What came close to each of `waits`, of any tenants: one query.

    Looked for among the newest events alone: a list shows what a page of one wait would find, or
    less.
    """
    tenants = list(dict.fromkeys(wait.tenant_id for wait in waits))
    if not tenants:
        return {}
    each = max(NEWEST // len(tenants), LIKELY)
    columns = ("tenant_id", "pk", *COLUMNS)
    first, *others = [
        Event.objects.filter(TO_ACT_ON, tenant=tenant).order_by("-pk").values_list(*columns)[:each]
        for tenant in tenants
    ]
    by_tenant: dict[UUID, list[Said]] = {tenant: [] for tenant in tenants}
    for tenant, pk, kind, correlation, at, event_id, state, _, source in first.union(
        *others, all=True
    ):
        rejected = state == EventState.REJECTED
        said = Said(pk, kind, correlation, at, event_id or "", source, rejected=rejected)
        by_tenant[tenant].append(said)
    found = {
        wait.pk: near_misses(
            Expected(tuple(wait.event_types), wait.correlation), by_tenant[wait.tenant_id], SHOWN
        )
        for wait in waits
    }
    return {pk: near for pk, near in found.items() if near}
