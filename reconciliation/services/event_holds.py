"""Holds of events that more than one wait could take: opened and closed for the execution record.

Each in the transaction of whoever stores the event, gives it to a wait or dismisses it. Nobody
decides such a hold by itself: it ends with what is done about its event.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

import structlog
from django.db.models import F
from django.db.models.functions import Now

from reconciliation.core.states import HoldState
from reconciliation.models import Hold
from reconciliation.services.audit import add_entry
from reconciliation.services.holds import due_in, queue_for
from reconciliation.services.telling import tell_opened

log = structlog.get_logger(__name__)

AMBIGUOUS = "ambiguous_event"


class EventHolds:
    """The holds of events, for `workflows.services.event_holds`."""

    def open(self, event: UUID, tenant: UUID, message: str) -> None:
        """Open a hold in the tenant's queue. A second one is ignored: the index allows one."""
        queue = queue_for(tenant, None)
        hold = Hold(
            event_id=event,
            queue=queue,
            reason=AMBIGUOUS,
            message=message[:1000],
            due_at=due_in(queue),
        )
        Hold.objects.bulk_create([hold], ignore_conflicts=True)
        if Hold.objects.filter(pk=hold.pk).exists():
            subject = f"event:{event}"
            add_entry("system", "held", subject, {"hold": str(hold.pk), "reason": AMBIGUOUS})
            tell_opened(hold)
            log.info("hold.opened", hold=str(hold.pk), event_row=str(event), reason=AMBIGUOUS)

    def close(self, events: Collection[UUID], why: str, by: str) -> None:
        """All holds before the first entry: whoever has a hold may be waiting for the record."""
        open_ones = Hold.objects.filter(event__in=events, state=HoldState.OPEN).order_by("pk")
        held = list(open_ones.select_for_update(no_key=True).values_list("pk", "event"))
        Hold.objects.filter(pk__in=[pk for pk, _ in held]).update(
            state=HoldState.CLOSED, closed_at=Now(), version=F("version") + 1
        )
        for _, event in held:
            add_entry(by or "system", f"hold closed: {why}", f"event:{event}", {})
