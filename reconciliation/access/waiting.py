"""The open holds that a person may see, listed and counted."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from reconciliation.access.seeing import visible_holds
from reconciliation.core.states import HoldState
from reconciliation.models import Hold, ReviewQueue
from workflows.models import Tenant
from workflows.rights import held_on

if TYPE_CHECKING:
    from django.contrib.auth.models import User

# As `open_holds`, said in SQL: each page that is open counts them twice a minute.
OPEN_HOLDS = """
    reconciliation_hold hold
    WHERE state = 'open'
        AND (queue_id = ANY (%(queues)s::uuid[])
            OR %(any_queue)s AND queue_id IS NOT NULL
            OR %(no_queue)s AND queue_id IS NULL)
        AND (%(any_tenant)s OR tenant_id = ANY (%(tenants)s::uuid[]))
"""


def of_open_holds(user: User) -> dict[str, Any]:
    """What `OPEN_HOLDS` is asked with."""
    queues = held_on(user, "reconciliation.view_reviewqueue", ReviewQueue)
    tenants = held_on(user, "workflows.view_tenant", Tenant)
    return {
        "user": user.pk,
        "queues": queues or [],
        "any_queue": queues is None,
        "no_queue": user.is_superuser and user.is_active,
        "tenants": tenants or [],
        "any_tenant": tenants is None,
    }


def count_open_holds(user: User) -> tuple[int, datetime]:
    """How many open holds a person may see, and the database's time. One query."""
    counted = f"SELECT count(*), statement_timestamp() FROM {OPEN_HOLDS}"  # noqa: S608 (constants)
    with connection.cursor() as cursor:
        cursor.execute(counted, of_open_holds(user))
        number, now = cursor.fetchone() or (0, timezone.now())
    return number, now


def open_holds(user: User) -> QuerySet[Hold]:
    return visible_holds(user).filter(state=HoldState.OPEN)
