"""What the frame around every page asks of the database: one query.

It is in SQL, and planned once, since every page asks it: to have it made took longer than to make
many a page. `tests/console/test_frame.py` compares it with the query sets that say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from django.contrib.auth.models import AnonymousUser, User
from django.urls import reverse

from reconciliation import access
from reconciliation.core.queue_views import Looked, Tab, View, looked_at
from reconciliation.core.rota import changes_at
from reconciliation.models import Channel, DispatchStop, Provider, ReviewQueue, Shift
from reconciliation.pages import CLOSING
from reconciliation.selectors.case_stamp import CHANGED, seen_of
from reconciliation.selectors.queue_tabs import TABS, VIEWS, capped
from reconciliation.selectors.words import name_of
from reconciliation.services.rota import on_call_at, rota_of
from workflows.core.words import listed
from workflows.models import Tenant
from workflows.selectors.paging import address
from workflows.sql import fetch_of
from workflows.sql.statement import Row, Statement

BANNER_SHOWN = 3
SAVED_SHOWN = 5  # the queue itself shows more of them, and says how much is in each
ON_CALL_SHOWN = 2
TODAY = timedelta(hours=20)  # within it a time of day says which day

# The views of the queue that stand beside every page, with how much is in them: what
# `queue_filters.condition` says of them stands in `COUNTED`.
VIEWS_SHOWN = {
    "mine": (TABS[Tab.MINE], Looked(tab=Tab.MINE)),
    "closing": (VIEWS[View.CLOSING], Looked(view=View.CLOSING)),
}

# --- what is asked ----------------------------------------------------------------------------

CLOSES = f"statement_timestamp() + interval '{CLOSING.total_seconds():.0f} s'"
# As `services.providers.whose_key_is_trusted`.
TRUSTED = """provider_id IN (
    SELECT id FROM reconciliation_provider WHERE replay_trust <> '' AND contradicted_at IS NULL
)"""
OPEN_HOLDS = access.open_holds_counted(f"""
    count(*) AS held,
    count(*) FILTER (
        WHERE snoozed_until IS NULL OR snoozed_until <= statement_timestamp()
    ) AS awake,
    count(*) FILTER (
        WHERE window_ends_at > statement_timestamp() AND window_ends_at <= {CLOSES} AND {TRUSTED}
    ) AS closing
""")
COUNTED = f"""
    SELECT {CHANGED} AS changed, coalesce(sum(held), 0)::bigint AS held,
        coalesce(sum(awake) FILTER (WHERE assignee_id = %(user)s), 0)::bigint AS mine,
        coalesce(sum(closing), 0)::bigint AS closing
    FROM {OPEN_HOLDS}
"""  # noqa: S608 (constants)
STOPS = f"""
    SELECT it.action, it.state, it.by, it.reason, it.at, it.until,
        provider.name AS provider, tenant.name AS tenant
    FROM (SELECT * FROM {access.VISIBLE_STOPS}) it
    LEFT JOIN reconciliation_provider provider ON provider.id = it.provider_id
    LEFT JOIN workflows_tenant tenant ON tenant.id = it.tenant_id
    ORDER BY it.at DESC LIMIT {BANNER_SHOWN}
"""  # noqa: S608 (constants)
FAILING = f"""
    SELECT it.kind, it.problem, it.failing_since, it.stopped_at, queue.name AS queue,
        person.first_name, person.last_name, person.username
    FROM (SELECT * FROM {access.VISIBLE_CHANNELS}) it
    LEFT JOIN reconciliation_reviewqueue queue ON queue.id = it.queue_id
    LEFT JOIN auth_user person ON person.id = it.person_id
    WHERE it.failing_since IS NOT NULL
    ORDER BY it.failing_since DESC LIMIT {BANNER_SHOWN}
"""  # noqa: S608 (constants)
# As `queue_tabs.saved_for`.
SAVED = f"""
    SELECT name, query FROM reconciliation_savedview
    WHERE person_id = %(user)s OR queue_id IN ({access.OWNED})
    ORDER BY name, id LIMIT {SAVED_SHOWN}
"""  # noqa: S608 (constants)
# The rotas of the first of the queues whose cases are theirs to see to.
SHIFTS = f"""
    SELECT it.queue_id, queue.name AS queue, it.person_id, it.weekdays, it.starts, it.ends, it.zone,
        it.starts_at, it.ends_at,
        person.first_name, person.last_name, person.username, person.is_active,
        {access.DECIDES.format(person="it.person_id", queue="it.queue_id")} AS decides
    FROM (
        SELECT id, name FROM (SELECT * FROM {access.TEAM_QUEUES}) team
        WHERE EXISTS (SELECT FROM reconciliation_shift WHERE queue_id = team.id)
        ORDER BY name, id LIMIT {ON_CALL_SHOWN}
    ) queue
    JOIN reconciliation_shift it ON it.queue_id = queue.id
    JOIN auth_user person ON person.id = it.person_id
    ORDER BY queue.name, queue.id, it.id
"""  # noqa: S608 (constants)
ASKED = Statement(
    "frame",
    f"""
    SELECT counted.*,
        (SELECT json_agg(found) FROM ({STOPS}) found) AS stops,
        (SELECT json_agg(found) FROM ({FAILING}) found) AS failing,
        (SELECT json_agg(found) FROM ({SAVED}) found) AS saved,
        (SELECT json_agg(found) FROM ({SHIFTS}) found) AS shifts
    FROM ({COUNTED}) counted
    """,  # noqa: S608 (constants)
)

# --- what is shown ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SideView:
    """A view of the queue in the side bar; `key` and `count` are empty where it is not counted."""

    text: str
    url: str
    count: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class OnCall:
    """Who answers for a queue now; nobody where `people` is empty.

    Attributes:
        powerless: those of them who may not decide there.
        until: when somebody else does; None: not within a week.
        today: that is within the day.
    """

    queue: str
    people: str
    powerless: str
    until: datetime | None
    today: bool


class Frame(NamedTuple):
    """Attributes:
    needs_you: open holds that the person may see.
    seen: changes with what is counted here (`case_stamp.cases_seen`).
    stops: what nothing is sent of, as far as it is theirs to know: the newest first.
    failing: the channels that are theirs to see to and fail: those that failed last come first.
    views: ways to look at the queue, those that the person keeps last.
    on_call: who answers now for the queues whose cases are theirs to see to.
    """

    needs_you: int = 0
    seen: str = ""
    stops: tuple[DispatchStop, ...] = ()
    failing: tuple[Channel, ...] = ()
    views: tuple[SideView, ...] = ()
    on_call: tuple[OnCall, ...] = ()


def frame_of(user: User | AnonymousUser, now: datetime) -> Frame:
    """Nobody has none of it; who is on call is said of `now`, all else is as the database has it.
    What is said of its rows is all that was read of them."""
    if not isinstance(user, User):
        return Frame()
    asked = access.asked_of(user)
    (found,) = fetch_of(ASKED, asked)
    return Frame(
        found["held"],
        seen_of(asked, found["changed"]),
        tuple(stop_of(row) for row in found["stops"] or ()),
        tuple(channel_of(row) for row in found["failing"] or ()),
        views_of(found, found["saved"] or ()),
        duties(found["shifts"] or (), now),
    )


def stop_of(row: Row) -> DispatchStop:
    return DispatchStop(
        provider=Provider(name=row["provider"]) if row["provider"] else None,
        tenant=Tenant(name=row["tenant"]) if row["tenant"] else None,
        at=datetime.fromisoformat(row["at"]),
        until=time_of(row["until"]),
        **{name: row[name] for name in ("action", "state", "by", "reason")},
    )


def channel_of(row: Row) -> Channel:
    return Channel(
        kind=row["kind"],
        queue=ReviewQueue(name=row["queue"]) if row["queue"] else None,
        person=person_of(row) if row["username"] else None,
        problem=row["problem"],
        failing_since=time_of(row["failing_since"]),
        stopped_at=time_of(row["stopped_at"]),
    )


def person_of(row: Row, **more: Any) -> User:
    return User(**{name: row[name] for name in ("first_name", "last_name", "username")}, **more)


def time_of(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def views_of(counted: Mapping[str, int], saved: Iterable[Row]) -> tuple[SideView, ...]:
    here = reverse("review")
    always = (
        SideView(text, address(here, looked.query()), capped(counted[name]), name)
        for name, (text, looked) in VIEWS_SHOWN.items()
    )
    kept = (
        SideView(view["name"], address(here, looked_at(dict(parse_qsl(view["query"]))).query()))
        for view in saved
    )
    return (*always, *kept)


# --- who is on call ---------------------------------------------------------------------------


def duties(shifts: Iterable[Row], now: datetime) -> tuple[OnCall, ...]:
    by_queue = groupby(shifts, key=lambda row: (row["queue_id"], row["queue"]))
    return tuple(duty_of(queue, list(rows), now) for (_, queue), rows in by_queue)


def shift_of(row: Row) -> Shift:
    return Shift(
        person=person_of(row, pk=row["person_id"], is_active=row["is_active"]),
        weekdays=row["weekdays"],
        starts=time.fromisoformat(row["starts"]) if row["starts"] else None,
        ends=time.fromisoformat(row["ends"]) if row["ends"] else None,
        zone=row["zone"],
        starts_at=time_of(row["starts_at"]),
        ends_at=time_of(row["ends_at"]),
    )


def duty_of(queue: str, rows: list[Row], now: datetime) -> OnCall:
    shifts = [shift_of(row) for row in rows]
    able = {row["person_id"] for row in rows if row["decides"]}
    people = on_call_at(shifts, now)
    until = changes_at(rota_of(shifts), now)
    return OnCall(
        queue,
        listed([name_of(person) for person in people]),
        listed([name_of(person) for person in people if person.pk not in able]),
        until,
        until is not None and until - now < TODAY,
    )
