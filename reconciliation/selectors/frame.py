"""What the frame around every page asks of the database: one query.

It is in SQL since every page asks it: to have it made took longer than many a page.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib.auth.models import AnonymousUser, User
from django.db import connection

from reconciliation import access
from reconciliation.models import Channel, DispatchStop, Provider, ReviewQueue
from reconciliation.selectors.operation_stamp import IN_FORCE
from workflows.models import Tenant

BANNER_SHOWN = 3
# As `access.visible_stops`.
STOPS = f"""
    SELECT it.action, it.state, it.by, it.reason, it.at, it.until,
        provider.name AS provider, tenant.name AS tenant
    FROM reconciliation_dispatchstop it
    LEFT JOIN reconciliation_provider provider ON provider.id = it.provider_id
    LEFT JOIN workflows_tenant tenant ON tenant.id = it.tenant_id
    WHERE ({IN_FORCE}) AND CASE
        WHEN it.tenant_id IS NOT NULL
        THEN %(any_tenant)s OR it.tenant_id = ANY (%(tenants)s::uuid[])
        ELSE EXISTS (
            SELECT FROM workflows_tenant WHERE %(any_tenant)s OR id = ANY (%(tenants)s::uuid[])
        ) END
    ORDER BY it.at DESC LIMIT {BANNER_SHOWN}
"""  # noqa: S608 (constants)
# As `access.visible_channels`.
FAILING = f"""
    SELECT it.kind, it.problem, it.failing_since, it.stopped_at, queue.name AS queue,
        person.first_name, person.last_name, person.username
    FROM reconciliation_channel it
    LEFT JOIN reconciliation_reviewqueue queue ON queue.id = it.queue_id
    LEFT JOIN auth_user person ON person.id = it.person_id
    WHERE it.failing_since IS NOT NULL AND (
        %(superuser)s OR it.person_id = %(user)s OR EXISTS (
            SELECT FROM reconciliation_reviewqueue_owners own
            WHERE own.reviewqueue_id = it.queue_id AND own.user_id = %(user)s
                AND (%(any_queue)s OR own.reviewqueue_id = ANY (%(queues)s::uuid[]))
        )
    )
    ORDER BY it.failing_since DESC LIMIT {BANNER_SHOWN}
"""  # noqa: S608 (constants)
ASKED = f"""
    SELECT (SELECT count(*) FROM {access.OPEN_HOLDS}),
        (SELECT json_agg(found)::text FROM ({STOPS}) found),
        (SELECT json_agg(found)::text FROM ({FAILING}) found)
"""  # noqa: S608 (constants)


class Frame(NamedTuple):
    """Attributes:
    needs_you: open holds that the person may see.
    stops: what nothing is sent of, as far as it is theirs to know: the newest first.
    failing: the channels that are theirs to see to and fail: those that failed last come first.
    What is said of these two is all that was read of them.
    """

    needs_you: int = 0
    stops: tuple[DispatchStop, ...] = ()
    failing: tuple[Channel, ...] = ()


def frame_of(user: User | AnonymousUser) -> Frame:
    """Nobody has none of it."""
    if not isinstance(user, User):
        return Frame()
    with connection.cursor() as cursor:
        cursor.execute(ASKED, access.of_open_holds(user) | {"superuser": user.is_superuser})
        number, stops, failing = cursor.fetchone() or (0, None, None)
    return Frame(
        number,
        tuple(stop_of(row) for row in json.loads(stops or "[]")),
        tuple(channel_of(row) for row in json.loads(failing or "[]")),
    )


def stop_of(row: dict[str, Any]) -> DispatchStop:
    return DispatchStop(
        provider=Provider(name=row["provider"]) if row["provider"] else None,
        tenant=Tenant(name=row["tenant"]) if row["tenant"] else None,
        at=datetime.fromisoformat(row["at"]),
        until=datetime.fromisoformat(row["until"]) if row["until"] else None,
        **{name: row[name] for name in ("action", "state", "by", "reason")},
    )


def channel_of(row: dict[str, Any]) -> Channel:
    names = {name: row[name] for name in ("first_name", "last_name", "username")}
    return Channel(
        kind=row["kind"],
        queue=ReviewQueue(name=row["queue"]) if row["queue"] else None,
        person=User(**names) if row["username"] else None,
        problem=row["problem"],
        failing_since=datetime.fromisoformat(row["failing_since"]),
        stopped_at=datetime.fromisoformat(row["stopped_at"]) if row["stopped_at"] else None,
    )
