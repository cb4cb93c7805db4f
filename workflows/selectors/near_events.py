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
from workflows.together import together

NEWEST = 500
LIKELY = 50
SHOWN = 5

COLUMNS = (
    *("type", "correlation", "received_at", "event_id", "state", "ambiguous_at"),
    "source__name",
)


def looked_for(tenant: UUID, expected: Expected) -> tuple[Said | None, bool, tuple[NearMiss, ...]]:
    """The oldest event that fits and nobody has, and whether other waits could have it too; where
    there is none, the events of `tenant` that came close. One query."""
    ours = Event.objects.filter(UNCONSUMED, tenant=tenant)
    fits = ours.filter(correlation=expected.correlation, type__in=expected.types)
    fitting, same, newest = together(
        without_bodies(fits).order_by("received_at", "pk")[:1],
        without_bodies(ours.filter(correlation__in=likely(expected.correlation)))[:LIKELY],
        without_bodies(newest_of(tenant))[:NEWEST],
    )
    if fitting:
        return said_by(fitting[0]), fitting[0].ambiguous_at is not None, ()
    among = {event.pk: said_by(event) for event in (*newest, *same)}
    return None, False, near_misses(expected, among.values(), SHOWN)


def newest_of(tenant: UUID) -> QuerySet[Event]:
    """The events of `tenant` that nobody has taken or dismissed, the newest first."""
    return Event.objects.filter(TO_ACT_ON, tenant=tenant).order_by("-pk")


def without_bodies(events: QuerySet[Event]) -> QuerySet[Event]:
    """With their sources, of which only the name is read."""
    return events.select_related("source").only(*COLUMNS)


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
    first, *others = [newest_of(tenant).values_list(*columns)[:each] for tenant in tenants]
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
