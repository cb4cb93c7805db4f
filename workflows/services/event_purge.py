"""The end of what is kept of events: their bodies, after their source's `retain`.

The rule, counted from when the event came; a source without `retain` keeps its bodies for good:

- An event that was given to a wait, or dismissed: after `retain`, once every run that got it is
  past the wait, or over. Until then a worker may still have to read it.
- One that nobody has taken or dismissed: after `retain` and, beyond it, the 90 days of
  `ROMULUS_UNCONSUMED_SECONDS`, unless an open wait fits it. It is dismissed with that, since a
  wait could not read it any more.

What goes is the body. The row stays and says when, so that the same event is still known when its
sender delivers it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from itertools import islice
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Length

from workflows.core.states import WaitState
from workflows.failpoints import failpoint
from workflows.models import Event, EventSource, Match, Wait
from workflows.models.event import BODY_KEPT, TO_ACT_ON
from workflows.models.ids import id_at
from workflows.services import audit, event_holds
from workflows.services.clock import database_now

log = structlog.get_logger(__name__)

BATCH = 500
BY = "system"
# An event's ID is made a moment before it is received, on another clock.
CLOCKS_APART = timedelta(hours=1)


@dataclass(frozen=True)
class PurgedEvents:
    """What a purge did, or would do."""

    events: int = 0
    dismissed: int = 0  # of these: nobody had taken them
    bytes: int = 0

    def __add__(self, other: PurgedEvents) -> PurgedEvents:
        return PurgedEvents(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def purge_due_events() -> PurgedEvents:
    """Purge the bodies that are due. Any number of purges may run at once."""
    return sum(purging_events(), PurgedEvents())


def purging_events(*, dry_run: bool = False, limit: int | None = None) -> Iterator[PurgedEvents]:
    """Purge batch after batch, `limit` batches at most, source by source."""
    now = database_now()
    sources = EventSource.objects.filter(retain__isnull=False).order_by("pk")
    batches = (
        each
        for source in sources
        for due in (over_and_done(source, now), never_taken(source, now))
        for each in batches_of(due, now, dry_run=dry_run)
    )
    yield from islice(batches, limit)


def unconsumed_for() -> timedelta:
    return timedelta(seconds=settings.ROMULUS_UNCONSUMED_SECONDS)


# --- what is due ------------------------------------------------------------------------------


def over_and_done(source: EventSource, now: datetime) -> QuerySet[Event]:
    """Events of `source` that nobody needs any more (index `event_body_kept`)."""
    assert source.retain is not None
    came = received_before(now - source.retain)
    return Event.objects.filter(BODY_KEPT, ~Exists(still_read()), came, source=source)


def never_taken(source: EventSource, now: datetime) -> QuerySet[Event]:
    """Events of `source` that nobody took for longer than they are kept (`event_to_act_on`)."""
    assert source.retain is not None
    came = received_before(now - source.retain - unconsumed_for())
    return Event.objects.filter(
        TO_ACT_ON, ~Exists(fitting_waits()), came, source=source, tenant=source.tenant_id
    )


def received_before(at: datetime) -> Q:
    """The ID alone bounds what an index is read for."""
    return Q(received_at__lt=at, pk__lt=id_at(at + CLOCKS_APART))


def still_read() -> QuerySet[Match]:
    """Waits that are open still, or whose run has not gone on from them yet."""
    at_it = Q(wait__run__finished_at=None) & Q(
        wait__run__step=F("wait__step"), wait__run__visit=F("wait__visit")
    )
    needed = Q(wait__state=WaitState.WAITING) | at_it
    return Match.objects.filter(needed, event=OuterRef("pk"))


def fitting_waits() -> QuerySet[Wait]:
    return Wait.objects.filter(
        state=WaitState.WAITING,
        tenant=OuterRef("tenant"),
        correlation=OuterRef("correlation"),
        event_types__contains=[OuterRef("type")],
    )


# --- purging ----------------------------------------------------------------------------------


def batches_of(due: QuerySet[Event], now: datetime, *, dry_run: bool) -> Iterator[PurgedEvents]:
    """What is done leaves `due`; what was only looked at does not, and is counted at once."""
    if dry_run:
        sizes = due.aggregate(bytes=Sum(Length("body")))
        found = list(due.values_list("dismissed_at", "state"))
        yield PurgedEvents(len(found), sum(is_untaken(*row) for row in found), sizes["bytes"] or 0)
        return
    while (done := purge_batch(due, now)).events:
        yield done


def is_untaken(dismissed_at: datetime | None, state: str) -> bool:
    return dismissed_at is None and state != "matched"


def purge_batch(due: QuerySet[Event], now: datetime) -> PurgedEvents:
    failpoint("before_purge_events")
    with transaction.atomic():
        rows = due.order_by("pk").select_for_update(skip_locked=True, of=("self",))
        locked = list(rows.values_list("pk", flat=True)[:BATCH])
        # Looked at once more under the lock: it may have been given to a wait meanwhile.
        still = due.filter(pk__in=locked)
        found = list(still.values_list("pk", "dismissed_at", "state", Length("body")))
        untaken = [pk for pk, dismissed_at, state, _ in found if is_untaken(dismissed_at, state)]
        dismiss_for_good(untaken, now)
        gone = Event.objects.filter(pk__in=[pk for pk, *_ in found])
        gone.update(body=None, purged_at=now)
    failpoint("after_purge_events")
    if found:
        log.info("events.purged", events=len(found), dismissed=len(untaken))
    return PurgedEvents(len(found), len(untaken), sum(size or 0 for *_, size in found))


def dismiss_for_good(events: list[UUID], now: datetime) -> None:
    """Their bodies go, so no wait may take them; the rows are locked."""
    reason = "Nobody took it for as long as it is kept, and its body was purged."
    Event.objects.filter(TO_ACT_ON, pk__in=events).update(
        dismissed_at=now, dismissed_by=BY, dismissed_reason=reason, ambiguous_at=None
    )
    event_holds.close_holds(events, "the event was purged")
    for event in events:
        audit.record(BY, "event dismissed", f"event:{event}", reason=reason)
