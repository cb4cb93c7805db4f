"""Fills the tables with stored events and open waits, by the database itself (see `fill`)."""

from __future__ import annotations

from collections.abc import Callable

import psycopg

from romulus_site.bench.fill import (
    KEY,
    MOMENT,
    RUNS,
    YESTERDAY_MS,
    checkpoint,
    database_day,
    insertion,
    without_checks,
)
from romulus_site.bench.flows import EVENT_TYPE, parked_run
from workflows.core.states import EventState, RunState, WaitState
from workflows.models import Event, Run, Wait
from workflows.models.ids import new_id

BATCH = 100_000
APART_MS = 10
TENANT = "(SELECT id FROM workflows_tenant WHERE slug = 'bench')"
BODY = """convert_to(
    '{"id": "old-' || s.n || '", "type": "bench.event", "data": {"order": "old-' || s.n || '"}}',
    'UTF8'
)"""
# The prefix sets those apart that are filled later, for deliveries that find their wait.
RUN = KEY.format(ms="s.ms", seed="%(prefix)s || '-run-' || s.n")

EVENT_COLUMNS = {
    "id": KEY.format(ms="s.ms", seed="'event-' || s.n"),
    "source": "(SELECT id FROM workflows_eventsource WHERE slug = 'bench')",
    "tenant": TENANT,
    "event_id": "'old-' || s.n",
    "type": f"'{EVENT_TYPE}'",
    "correlation": "'old-' || s.n",
    "received_at": MOMENT.format(ms=0),
    "content_type": "'application/json'",
    "body": BODY,
    "state": f"'{EventState.STORED}'",
}
RUN_COLUMNS = {
    "id": RUN,
    "workflow": f"'{parked_run.name}'",
    "version": "1",
    "tenant": TENANT,
    "state": f"'{RunState.WAITING}'",
    "step": "'arrived'",
    "visit": "1",
    "input": "jsonb_build_object('correlation', %(prefix)s || '-' || s.n)",
    "failure": """'{"reason": "event", "message": "It waits."}'::jsonb""",
    "ready_at": MOMENT.format(ms=0),
    "created_at": MOMENT.format(ms=0),
    "wake_at": "now() + interval '30 days'",
}
WAIT_COLUMNS = {
    "id": KEY.format(ms="s.ms", seed="%(prefix)s || '-wait-' || s.n"),
    "run": RUN,
    "step": "'arrived'",
    "visit": "1",
    "tenant": TENANT,
    "event_types": f"ARRAY['{EVENT_TYPE}']",
    "correlation": "%(prefix)s || '-' || s.n",
    "deadline": "now() + interval '30 days'",
    "needed": "1",
    "shared": "false",
    "started_at": MOMENT.format(ms=0),
    "state": f"'{WaitState.WAITING}'",
}


def fill_events(connection: psycopg.Connection, number: int, say: Callable[[str], None]) -> None:
    """Add `number` events that nobody has taken, of the source `bench`, which is there."""
    without_checks(connection)
    for batch in batches(connection, number, "old"):
        say(f"stored event {batch['first']} of {number}")
        connection.execute(insertion(Event, EVENT_COLUMNS, RUNS), batch)


def fill_waits(
    connection: psycopg.Connection, number: int, prefix: str, say: Callable[[str], None]
) -> None:
    """Add `number` runs that wait; the correlation of each is `prefix` and its number."""
    without_checks(connection)
    for batch in batches(connection, number, prefix):
        say(f"open wait {batch['first']} of {number}")
        connection.execute(insertion(Run, RUN_COLUMNS, RUNS), batch)
        connection.execute(insertion(Wait, WAIT_COLUMNS, RUNS), batch)


def settle(connection: psycopg.Connection, say: Callable[[str], None]) -> None:
    """Let the planner know, and let nothing of it be done in the middle of what is measured."""
    say("vacuum, analyze, checkpoint")
    for model in (Run, Event, Wait):
        connection.execute(f"VACUUM (ANALYZE) {model._meta.db_table}".encode())
    checkpoint(connection)


Batch = dict[str, int | str]


def batches(connection: psycopg.Connection, number: int, prefix: str) -> list[Batch]:
    newest = YESTERDAY_MS * (database_day(connection) - 1)
    return [
        {
            "newest": newest,
            "number": number,
            "apart": APART_MS,
            "first": first,
            "last": min(first + BATCH - 1, number),
            "prefix": prefix,
        }
        for first in range(1, number + 1, BATCH)
    ]


def fresh_prefix() -> str:
    return f"new-{new_id().hex[-8:]}"
