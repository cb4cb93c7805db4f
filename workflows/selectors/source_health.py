"""How a source is doing: what came last, what was refused and why, what came twice."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from workflows.core.sources import Refusal
from workflows.core.states import EventState
from workflows.models import Event, EventSource, RefusalCount
from workflows.services.clock import database_now

DAYS = 7
# Of the newest events so many are counted: a page is shown at once whatever has come.
LOOKED_AT = 2_000


@dataclass(frozen=True, slots=True)
class Refused:
    """Deliveries that were refused for one reason in the last days."""

    reason: str
    number: int
    last_at: datetime
    note: str


@dataclass(frozen=True, slots=True)
class SourceHealth:
    accepted: int  # in the last days; `or_more` where it was not counted further
    or_more: bool
    rejected: int
    duplicates: int
    last_accepted: datetime | None
    last_duplicate: datetime | None
    refused: list[Refused]
    confirmation: Event | None  # the newest subscription that AWS SNS asks to confirm


def source_health(source: EventSource) -> SourceHealth:
    """Two questions, each bounded."""
    now = database_now()
    since = now - timedelta(days=DAYS)
    rows = Event.objects.filter(source=source).order_by("-id").defer("body")
    newest = list(rows[:LOOKED_AT])
    lately = [event for event in newest if event.received_at >= since]
    taken = [event for event in newest if event.state != EventState.REJECTED]
    return SourceHealth(
        accepted=len([event for event in taken if event.received_at >= since]),
        or_more=len(lately) == LOOKED_AT,
        rejected=len([event for event in lately if event.state == EventState.REJECTED]),
        duplicates=sum(event.duplicates for event in lately),
        last_accepted=taken[0].received_at if taken else None,
        last_duplicate=max(
            (event.last_duplicate_at for event in newest if event.last_duplicate_at), default=None
        ),
        refused=refused_since(source, since),
        confirmation=next((event for event in newest if is_confirmation(event)), None),
    )


def is_confirmation(event: Event) -> bool:
    """Whether AWS SNS asks in it whether a subscription is wanted, and nobody has dismissed it."""
    return event.type == "SubscriptionConfirmation" and event.dismissed_at is None


def refused_since(source: EventSource, since: datetime) -> list[Refused]:
    rows = RefusalCount.objects.filter(source=source, day__gte=since.date())
    found: dict[str, Refused] = {}
    for row in rows.order_by("last_at"):
        before = found.get(row.reason)
        number = row.number + (before.number if before else 0)
        found[row.reason] = Refused(row.reason, number, row.last_at, row.note)
    order = list(Refusal)
    return sorted(found.values(), key=lambda each: order.index(Refusal(each.reason)))
