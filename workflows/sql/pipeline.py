"""Several hot statements in one round trip: libpq's pipeline mode, entered and left for each.

While it waits for the server it holds neither the interpreter's lock nor anything else of this
process: another thread may have to go on first, so that the server can answer.
"""

from __future__ import annotations

import select
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from django.conf import settings
from psycopg.errors import InvalidSqlStatementName
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from workflows.sql.statement import BEGIN, Row, Statement, begin, checked, is_plain, is_to_begin


@dataclass(frozen=True, slots=True)
class Asked:
    statement: Statement
    parameters: dict[str, Any]


def run_together(raw: psycopg.Connection[Any], asked: Sequence[Asked]) -> list[list[Row]]:
    """Run statements in their order; raises what the first one that fails raises."""
    begins = is_to_begin(raw)
    if begins and not is_plain(raw):
        begin(raw)
        begins = False
    if settings.ROMULUS_PREPARE:
        for each in asked:
            each.statement.prepare(raw)
    results = sent_and_heard(raw, asked, begins=begins)
    if begins:
        checked(results.pop(0), ExecStatus.COMMAND_OK)
    try:
        return [
            each.statement.rows_of(checked(result, ExecStatus.TUPLES_OK))
            for each, result in zip(asked, results, strict=False)
        ]
    except InvalidSqlStatementName:
        for each in asked:
            each.statement.forget(raw)
        raise


def sent_and_heard(
    raw: psycopg.Connection[Any], asked: Sequence[Asked], *, begins: bool
) -> list[PGresult]:
    """Return a result for each statement, the BEGIN before them included."""
    server = raw.pgconn
    given = [each.statement.given(each.parameters) for each in asked]
    server.enter_pipeline_mode()
    try:
        if begins:
            server.send_query_params(BEGIN, None)
        for each, values in zip(asked, given, strict=True):
            each.statement.send(raw, values)
        server.pipeline_sync()
        return list(heard(server))
    finally:
        # It refuses while something is outstanding: then the connection is gone.
        with suppress(psycopg.OperationalError):
            server.exit_pipeline_mode()


def heard(server: PGconn) -> Sequence[PGresult]:
    """Wait for all that was sent to be answered."""
    results: list[PGresult] = []
    while True:
        result = next_result(server)
        if result is None and server.status != ConnStatus.BAD:
            continue  # the end of one statement's results
        if result is None:
            raise psycopg.OperationalError("the connection was lost")
        if result.status == ExecStatus.PIPELINE_SYNC:
            return results
        results.append(result)


def next_result(server: PGconn) -> PGresult | None:
    ready = select.poll()
    while server.flush():
        ready.register(server.socket, select.POLLIN | select.POLLOUT)
        ready.poll()
        server.consume_input()
    ready.register(server.socket, select.POLLIN)
    while server.is_busy():
        ready.poll()
        server.consume_input()
    return server.get_result()
