"""What the logs of the processes tell: errors that nobody has caused.

A database or a broker that is away is what the blows are for; any other traceback is a finding.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# What a process says when the database, the broker or the destination was taken from it: the last
# line of a traceback begins so.
OUTAGE = re.compile(
    r"""
    (django\.db\.utils\.|psycopg\.|psycopg\.errors\.)(OperationalError|InterfaceError
        |AdminShutdown|CrashShutdown|CannotConnectNow|IdleSessionTimeout)\b
    | psycopg_pool\.(PoolTimeout|PoolClosed)\b
    | kombu\.exceptions\.OperationalError\b
    | amqp\.exceptions\.|redis\.exceptions\.|kombu\.exceptions\.
    # The embedded broker's transport, when its connection has gone while a message was taken.
    | AttributeError:\ 'NoneType'\ object\ has\ no\ attribute\ '_get_pgmq_client'
    | ConnectionResetError|ConnectionRefusedError|BrokenPipeError|ConnectionAbortedError
    """,
    re.VERBOSE,
)
# What no blow brings about, though Django gives it the same name: two of us in each other's way.
COLLISION = re.compile(r"deadlock detected|could not serialize")
TRACEBACK = "Traceback (most recent call last):"
# Logged before there was a traceback: events that say that something of Romulus itself failed.
# What was taken back was tried again, and is a finding all the same: the order of locks is one.
ALARMS = frozenset(
    {
        "step.crashed",
        "step.not_held",
        "contract.contradicted",
        "transmission.crashed",
        "step.taken_back",
        "transaction.taken_back",
    }
)


@dataclass(frozen=True)
class Trouble:
    """An error in a log that no blow explains."""

    log: str
    event: str
    error: str


def troubles_in(folder: Path) -> list[Trouble]:
    return [
        trouble
        for log in sorted(folder.glob("*.log"))
        for trouble in troubles_of(log.name, log.read_text(errors="replace"))
    ]


def troubles_of(name: str, text: str) -> Iterator[Trouble]:
    """Read a log: lines of JSON, and what a process wrote when it could not log."""
    plain: list[str] = []
    for line in text.splitlines():
        entry = entry_of(line)
        if entry is None:
            plain.append(line)
            continue
        error = entry.get("exception", "")
        if TRACEBACK in error and not is_outage(error):
            yield Trouble(name, str(entry.get("event", "")), last_line(error))
        elif entry.get("event") in ALARMS and not error:
            yield Trouble(name, str(entry["event"]), "")
    for error in tracebacks_in(plain):
        if not is_outage(error):
            yield Trouble(name, "", last_line(error))


def entry_of(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None  # cut off: its process was killed while it wrote
    return entry if isinstance(entry, dict) else None


def tracebacks_in(lines: list[str]) -> Iterator[str]:
    """Yield each traceback among plain lines, to the line that names its error."""
    found: list[str] | None = None
    for line in lines:
        if line.startswith(TRACEBACK):
            found = [line]
        elif found is not None:
            found.append(line)
            if line and not line[0].isspace():
                yield "\n".join(found)
                found = None


def is_outage(error: str) -> bool:
    """Whether the error is one that blows cause: by its own name, not by what led to it."""
    line = last_line(error)
    return OUTAGE.match(line) is not None and COLLISION.search(line) is None


def last_line(error: str) -> str:
    """The line that names the error: the first after the last traceback that is not indented."""
    _, _, last = error.rpartition(TRACEBACK)
    return next((line for line in last.splitlines() if line and not line[0].isspace()), "")
