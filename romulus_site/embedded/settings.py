"""How processes reach the server of a data folder: known before it was ever started."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

DATABASE = "romulus"
USER = "app"
PORT = "5432"  # only a part of the socket's name: the server does not listen on the network

# The shortest limit for a socket's path among the systems that have them: macOS's.
LONGEST_SOCKET_PATH = 103
# The broker's client pastes the folder into a connection string without quoting it.
PLAIN_PATH = re.compile(r"[\w/.+@~%=-]+")


def database_settings(data: Path) -> dict[str, Any]:
    """Return Django's `DATABASES` entry for the server of `data`."""
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": DATABASE,
        "USER": USER,
        "PASSWORD": "",
        "HOST": str(socket_folder(data)),
        "PORT": PORT,
    }


def broker_options(database: dict[str, Any]) -> dict[str, Any]:
    """Return the `pgmq://` transport's options for a queue in `database`, a `DATABASES` entry.

    The transport keeps only host, port, user, password and name of it: right for a local socket
    or a server without TLS. Elsewhere use RabbitMQ or Redis by `BROKER_URL`.
    """
    return {
        "conn_string": connection_string(
            host=database.get("HOST") or "localhost",
            port=database.get("PORT") or PORT,
            user=database.get("USER") or USER,
            password=database.get("PASSWORD") or "unused",  # the transport insists on one
            dbname=database.get("NAME") or DATABASE,
        ),
        "init_extension": False,
        "use_notify": True,
        "notify_throttle_interval_ms": 0,
        # No long poll in the server: NOTIFY wakes at once, a look each second is the second net.
        "wait_time_seconds": 0,
        "polling_interval": 1,
        # A message is gone with its reading: it is acknowledged before the task in any case.
        "visibility_timeout": 0,
        "pool_size": 3,
        # How long a publish may block while the database is away; the sweep publishes again.
        "pool_timeout": 3,
    }


def connection_string(**parameters: object) -> str:
    return " ".join(f"{keyword}={quoted(value)}" for keyword, value in parameters.items())


def quoted(value: object) -> str:
    return "'" + re.sub(r"(['\\])", r"\\\1", str(value)) + "'"


def socket_folder(data: Path) -> Path:
    """Return the folder of the server's socket: in `data`, or where that path would not do, a
    private temporary folder whose name is kept in `data`.
    """
    folder = data.resolve() / "socket"
    socket = folder / f".s.PGSQL.{PORT}"
    if len(os.fsencode(socket)) <= LONGEST_SOCKET_PATH and PLAIN_PATH.fullmatch(str(folder)):
        return folder
    return remembered_folder(data)


def remembered_folder(data: Path) -> Path:
    """Return the temporary folder of `data`, made once; processes that start together agree."""
    note = data / "socket.path"
    if not note.exists():
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="romulus-"))
        draft = data / f"socket.path.{os.getpid()}"
        draft.write_text(str(folder))
        try:
            os.link(draft, note)
        except FileExistsError:
            folder.rmdir()
        finally:
            draft.unlink()
    return Path(note.read_text())
