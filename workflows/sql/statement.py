"""A hot statement's way to the server: prepared once per connection, one call into libpq.

psycopg's cursor takes some forty Python calls and gives up the interpreter's lock at each of its
waits, which costs more than the statement itself when many threads do it. This is the same
connection, its transactions and its errors; only scalars and lists of them go in and come out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from struct import Struct
from typing import Any
from uuid import UUID
from weakref import WeakSet

import psycopg
from django.conf import settings
from psycopg.errors import InvalidSqlStatementName, error_from_result
from psycopg.pq import DiagnosticField, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

Row = dict[str, Any]
Columns = list[tuple[str, Callable[[str], Any]]]
Write = Callable[[Any], bytes]

BEGIN = b"BEGIN"
INTERVAL = Struct("!qii")  # microseconds, days, months
MOMENT = Struct("!q")  # microseconds since the server's first
FIRST_MOMENT = datetime(2000, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
PARAMETER = re.compile(r"%\((\w+)\)s")
# A parameter's name says its type, in every statement.
TYPES = {
    name: kind
    for kind, names in {
        "uuid": "run worker attempt next_attempt tenant parent source event wait operation",
        "uuid[]": "runs attempts waits matches workers holds proposals",
        "text": "state step workflow next_step attempt_state form error parent_step"
        " event_id type correlation content_type encoding problem by reason patience object slug"
        " session_key started approve",
        "text[]": "types names steps inputs labels start_keys states failures apps"
        " queues tenants deciding",
        "int": "batch visit next_visit number tries parent_visit needed session user",
        "int[]": "versions places users people",
        "bigint": "fence",
        "bigint[]": "keys",
        "bool": "ambiguous shared superuser any_queue no_queue any_tenant any_deciding",
        "bytea": "body",
        # In seconds; those that each step sends as an interval, which costs the server less.
        "interval": "next_timeout next_lease",
        "float8": "lease missing again delay purge_after broker_away swept within lately",
        "float8[]": "timeouts",
        "jsonb": "output failure",
        "timestamptz": "claimed_at wake_at received_at deadline now soon",
    }.items()
    for name in names.split()
}
# How the server's text of a type is read, by the type's number (pg_type.oid); else it stays text.
READERS: dict[int, Callable[[str], Any]] = {
    16: lambda text: text == "t",
    17: lambda text: bytes.fromhex(text[2:]),
    20: int,
    23: int,
    114: json.loads,
    1184: datetime.fromisoformat,
    2950: UUID,
}


def quoted(text: str) -> bytes:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'.encode()


def array_of(write: Write) -> Write:
    def written(items: Iterable[Any]) -> bytes:
        return b"{%b}" % b",".join(b"NULL" if item is None else write(item) for item in items)

    return written


def whole(number: int) -> bytes:
    return b"%d" % number


def moment(at: datetime | bytes) -> bytes:
    """A moment with its zone; or what `timestamptz_send` gave, which goes back as it came."""
    return at if isinstance(at, bytes) else MOMENT.pack((at - FIRST_MOMENT) // MICROSECOND)


# How a parameter of a type is written for the server. As text, but for what is shorter and read
# faster in the form that the server keeps it in.
WRITERS: dict[str, Write] = {
    "uuid": attrgetter("bytes"),
    "uuid[]": array_of(lambda value: value.hex.encode()),
    "text": str.encode,
    "text[]": array_of(quoted),
    "int": whole,
    "int[]": array_of(whole),
    "bigint": whole,
    "bigint[]": array_of(whole),
    "bool": lambda true: b"t" if true else b"f",
    "bytea": bytes,
    "float8": lambda number: repr(number).encode(),
    "float8[]": array_of(lambda number: repr(number).encode()),
    "interval": lambda seconds: INTERVAL.pack(round(seconds * 1e6), 0, 0),
    "jsonb": str.encode,
    "timestamptz": moment,
}
BINARY = ("uuid", "bytea", "interval", "timestamptz")


class Statement:
    """One statement, whose parameters are written `%(name)s`."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name.encode()
        types = {name: TYPES[name] for name in PARAMETER.findall(text)}
        self.parameters = tuple(types)
        self._writers = [(name, WRITERS[kind]) for name, kind in types.items()]
        self._formats = [int(kind in BINARY) for kind in types.values()]
        places = {
            name: f"${place}::{kind}" for place, (name, kind) in enumerate(types.items(), start=1)
        }
        self.text = PARAMETER.sub(lambda found: places[found[1]], text).encode()
        self._columns: Columns | None = None
        self._prepared_on: WeakSet[psycopg.Connection[Any]] = WeakSet()

    def fetch(self, raw: psycopg.Connection[Any], parameters: dict[str, Any]) -> list[Row]:
        """Run it on an open connection and return its rows.

        Raises:
            psycopg.Error: as a cursor would.
        """
        return self.rows_of(self._run(raw, self.given(parameters)))

    def given(self, parameters: dict[str, Any]) -> list[Any]:
        """The parameters as they are sent, in their order."""
        return [
            None if (value := parameters[name]) is None else write(value)
            for name, write in self._writers
        ]

    def rows_of(self, result: PGresult) -> list[Row]:
        if self._columns is None:
            self._columns = columns_of(result)
        return [row_of(result, row, self._columns) for row in range(result.ntuples)]

    def send(self, raw: psycopg.Connection[Any], given: list[Any]) -> None:
        """Send it on a connection that is in pipeline mode (`pipeline`)."""
        if settings.ROMULUS_PREPARE:
            raw.pgconn.send_query_prepared(self.name, given, self._formats)
        else:
            raw.pgconn.send_query_params(self.text, given, None, self._formats)

    def prepare(self, raw: psycopg.Connection[Any]) -> None:
        """Prepare it on this connection, once."""
        if raw not in self._prepared_on:
            checked(raw.pgconn.prepare(self.name, self.text), ExecStatus.COMMAND_OK)
            self._prepared_on.add(raw)

    def forget(self, raw: psycopg.Connection[Any]) -> None:
        """Somebody's DISCARD or DEALLOCATE on this connection, or a pooler in between."""
        self._prepared_on.discard(raw)

    def _run(self, raw: psycopg.Connection[Any], given: list[Any]) -> PGresult:
        server = raw.pgconn
        if is_to_begin(raw):
            begin(raw)
        if not settings.ROMULUS_PREPARE:
            result = server.exec_params(self.text, given, None, self._formats)
            return checked(result, ExecStatus.TUPLES_OK)
        self.prepare(raw)
        try:
            result = server.exec_prepared(self.name, given, self._formats)
            return checked(result, ExecStatus.TUPLES_OK)
        except InvalidSqlStatementName:
            self.forget(raw)
            if server.transaction_status != TransactionStatus.IDLE:
                raise
            return self._run(raw, given)


def is_to_begin(raw: psycopg.Connection[Any]) -> bool:
    """Whether Django has opened a transaction that psycopg has not begun yet: it does so with the
    first statement of a cursor, and without one the next statement here would commit by itself."""
    return not raw.autocommit and raw.pgconn.transaction_status == TransactionStatus.IDLE


def is_plain(raw: psycopg.Connection[Any]) -> bool:
    """Whether its transactions begin without a word about their kind."""
    return raw.isolation_level is None and raw.read_only is None and raw.deferrable is None


def begin(raw: psycopg.Connection[Any]) -> None:
    if is_plain(raw):
        checked(raw.pgconn.exec_(BEGIN), ExecStatus.COMMAND_OK)
    else:
        raw.execute("")


def checked(result: PGresult, expected: ExecStatus) -> PGresult:
    if result.status == expected:
        return result
    if not result.error_field(DiagnosticField.SQLSTATE):
        # Not the server's word but the client library's: the connection is gone, whatever its
        # status says so far (after a failed write it says that all is well).
        raise psycopg.OperationalError(result.get_error_message().strip())
    raise error_from_result(result)


def columns_of(result: PGresult) -> Columns:
    return [
        ((result.fname(place) or b"").decode(), READERS.get(result.ftype(place), str))
        for place in range(result.nfields)
    ]


def row_of(result: PGresult, row: int, columns: Columns) -> Row:
    values: Row = {}
    for place, (name, read) in enumerate(columns):
        value = result.get_value(row, place)
        values[name] = None if value is None else read(value.decode())
    return values
