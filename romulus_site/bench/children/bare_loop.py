"""The ceiling: the least that a durable step needs on this very PostgreSQL, without our code.

Plain psycopg, one prepared statement and one commit a step: a guarded move of the run's row
(whoever lost the run changes nothing), and one row for the output, which a later step or a person
finds by its two keys, as `(run, step, visit)` and as itself. Columns are those that any such engine
has; the row of the run has room for its next version beside it, and no index but its primary key.

The same loop in another language would be somewhat faster: this is the ceiling for a worker that is
written in Python.
"""

from __future__ import annotations

import threading
from collections import deque
from uuid import UUID

import psycopg
from django.conf import settings
from uuid_utils.compat import uuid7

from romulus_site.bench.children.walking import FLUSH, WARM_UPS, Order, serve, taken
from romulus_site.bench.database import dsn_of

TABLES = (
    "DROP TABLE IF EXISTS bench_run, bench_output",
    """
    CREATE TABLE bench_run (
        id uuid PRIMARY KEY,
        workflow text NOT NULL DEFAULT 'bench.long',
        state text NOT NULL DEFAULT 'running',
        lease_owner uuid NOT NULL,
        fence bigint NOT NULL DEFAULT 0,
        step text NOT NULL DEFAULT ''
    ) WITH (fillfactor = 50)
    """,
    """
    CREATE TABLE bench_output (
        id uuid PRIMARY KEY,
        run uuid NOT NULL,
        worker uuid NOT NULL,
        claimed_at timestamptz NOT NULL,
        ended_at timestamptz NOT NULL,
        fence bigint NOT NULL,
        visit int NOT NULL,
        number int NOT NULL,
        step text NOT NULL,
        state text NOT NULL,
        error text NOT NULL,
        output jsonb NOT NULL,
        UNIQUE (run, step, visit)
    )
    """,
)
STEP = """
WITH moved AS (
    UPDATE bench_run SET step = %(step)s, fence = fence + 1
    WHERE id = %(run)s AND state = 'running' AND lease_owner = %(worker)s AND fence = %(fence)s
    RETURNING id, lease_owner, fence
)
INSERT INTO bench_output
    (id, run, worker, claimed_at, ended_at, fence, visit, number, step, state, error, output)
SELECT %(output)s, id, lease_owner, statement_timestamp(), statement_timestamp(), fence, 1, 1,
    %(step)s, 'committed', '', '1'
FROM moved
RETURNING fence
"""


class BareLoop:
    """A walk of the loop; see `walking.Job`."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.worker: UUID = uuid7()
        warm_ups = [uuid7() for _ in range(order.in_flight)]
        runs = [uuid7() for _ in range(order.runs)]
        self.warm_ups, self.runs = deque(warm_ups), deque(runs)
        self.expected = order.runs * order.steps + order.in_flight * WARM_UPS
        self.mine = threading.local()
        with connect() as connection:
            for statement in TABLES:
                connection.execute(statement)
            rows = [(run, self.worker) for run in (*warm_ups, *runs)]
            connection.cursor().executemany(
                "INSERT INTO bench_run (id, lease_owner) VALUES (%s, %s)", rows
            )
            connection.execute(FLUSH)

    def warm(self) -> None:
        self.mine.connection = connect()
        self.walk(self.warm_ups.popleft(), WARM_UPS)
        self.mine.connection.execute(FLUSH)

    def work(self) -> None:
        for run in taken(self.runs):
            self.walk(run, self.order.steps)

    def walk(self, run: UUID, steps: int) -> None:
        with self.mine.connection.cursor() as cursor:
            for number in range(steps):
                values = {
                    "run": run,
                    "worker": self.worker,
                    "fence": number,
                    "output": uuid7(),
                    "step": f"step_{number}",
                }
                cursor.execute(STEP, values, prepare=True)
                assert cursor.fetchone() is not None

    def close(self) -> None:
        self.mine.connection.close()

    def undone(self) -> int:
        with connect() as connection:
            row = connection.execute("SELECT count(*) FROM bench_output").fetchone()
        return self.expected - int(row[0] if row else 0)


def connect() -> psycopg.Connection:
    return psycopg.connect(dsn_of(settings.DATABASES["default"]), autocommit=True)


def main() -> None:
    serve(BareLoop)
