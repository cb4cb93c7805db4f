"""The end of what is kept of notifications: what people were told, and how it got to them.

They are no record: what happened stands in the ledger and the audit record. What goes is older than
`ROMULUS_TOLD_SECONDS`, was addressed, and waits for no channel. Of a hold that is still open
everything stays: by its cause it is known what was told already.
"""

from __future__ import annotations

from datetime import timedelta

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from reconciliation.core.channels import MessageState
from reconciliation.core.states import HoldState
from reconciliation.models import Delivery, Message, Notification
from workflows.models.ids import id_at
from workflows.services.clock import database_now

log = structlog.get_logger(__name__)

BATCH = 500


def forget_told() -> int:
    """Forget what people were told long ago, batch by batch; return of how many things. Any number
    of processes may do so at once."""
    forgotten = 0
    while number := forget_batch():
        forgotten += number
    if forgotten:
        log.info("notifications.forgotten", number=forgotten)
    return forgotten


@transaction.atomic
def forget_batch() -> int:
    rows = long_told().select_for_update(of=("self",), skip_locked=True).order_by("pk")
    told = list(rows.values_list("pk", flat=True)[:BATCH])
    deliveries = Delivery.objects.filter(notification__in=told)
    messages = list(deliveries.exclude(message=None).values_list("message", flat=True))
    deliveries.delete()
    # A summary goes with the last of what it told of.
    Message.objects.filter(pk__in=messages, deliveries=None).delete()
    Notification.objects.filter(pk__in=told).delete()
    return len(told)


def long_told() -> QuerySet[Notification]:
    before = database_now() - timedelta(seconds=settings.ROMULUS_TOLD_SECONDS)
    waits = Q(message=None) | Q(message__state=MessageState.WAITING)
    return Notification.objects.filter(
        ~Exists(Delivery.objects.filter(waits, notification=OuterRef("pk"))),
        Q(hold=None) | ~Q(hold__state=HoldState.OPEN),
        pk__lt=id_at(before),  # an ID tells when it was made
        addressed_at__isnull=False,
    )
