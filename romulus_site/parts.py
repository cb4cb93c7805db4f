"""The parts of the system on one machine: how each is started, and how it shows that it works."""

from __future__ import annotations

import http.client
import os
import socket
import sys
from http import HTTPStatus
from pathlib import Path

from django.db import InterfaceError, OperationalError, connection

from romulus_site.embedded.queue import QUEUES
from romulus_site.processes import Part

LOOPBACK = "127.0.0.1"
CONSOLE_THREADS = 8
# Longer than most pages wait between two polls: on a phone a new connection takes as long as an
# answer. Not much longer: whoever opens connections and is silent keeps them for so long.
CONSOLE_KEEP_SECONDS = 20
# The console's own limit for requests in progress, within the supervisor's.
CONSOLE_GRACE_SECONDS = 5
# The destination's first port, counted from the console's.
DESTINATION_OFFSET = 100
LAST_PORT = 65_535
HTTP_SECONDS = 2.0


def console(host: str, port: int) -> Part:
    command = [
        *(sys.executable, "-m", "gunicorn", "romulus_site.wsgi"),
        f"--bind={bracketed(host)}:{port}",
        "--worker-class=romulus_site.console_threads.TimedThreads",
        "--workers=1",
        f"--threads={CONSOLE_THREADS}",
        f"--keep-alive={CONSOLE_KEEP_SECONDS}",
        f"--graceful-timeout={CONSOLE_GRACE_SECONDS}",
        "--no-control-socket",
    ]
    return Part("console", command, lambda _pid: answers(host, port, "/healthz"))


def bracketed(host: str) -> str:
    """Return `host` as it stands before a port."""
    return f"[{host}]" if ":" in host else host


def worker(number: int, concurrency: int) -> Part:
    command = [
        *(sys.executable, "-m", "celery", "--app=romulus_site", "worker"),
        "--pool=threads",
        f"--concurrency={concurrency}",
        f"--queues={','.join(QUEUES)}",
        # Two installations may share one machine and one broker: no two workers share a name.
        f"--hostname=worker-{number}-{os.getpid()}@%h",
        "--without-gossip",
        "--without-mingle",
        "--without-heartbeat",
    ]
    return Part(f"worker-{number}", command, is_live_worker)


def destination(port: int, data: Path) -> Part:
    command = [
        *(sys.executable, "-m", "reconciliation.rehearsal.destination"),
        f"--port={port}",
        f"--data={data}",
    ]
    return Part("destination", command, lambda _pid: answers(LOOPBACK, port, "/_admin/health"))


def is_live_worker(pid: int) -> bool:
    """Whether the worker with this process ID has written itself down in the database."""
    from workflows.selectors import live_worker_pids

    try:
        return pid in live_worker_pids()
    except (OperationalError, InterfaceError):
        # The database is away for a moment: the next question opens a new connection.
        connection.close()
        return False


def answers(host: str, port: int, path: str) -> bool:
    """Whether a GET of `path` is answered with 200."""
    server = http.client.HTTPConnection(host, port, timeout=HTTP_SECONDS)
    try:
        # The console answers to known names only, and listens on addresses.
        server.request("GET", path, headers={"Host": "localhost"})
        return server.getresponse().status == HTTPStatus.OK.value
    except (OSError, http.client.HTTPException):
        return False
    finally:
        server.close()


def why_not_free(host: str, port: int) -> OSError | None:
    """Return why no server could listen there now, or None when one could."""
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return error
    return None


def destination_port(data: Path, console_port: int) -> int:
    """Return the port that the destination of `data` had before if it is free, else another.

    Operations in progress are bound to the address that they were first sent to.
    """
    note = data / "destination.port"
    noted = note.read_text() if note.exists() else ""
    if noted.isdecimal() and why_not_free(LOOPBACK, int(noted)) is None:
        return int(noted)
    port = free_port(console_port + DESTINATION_OFFSET)
    note.write_text(str(port))
    return port


def free_port(wished: int) -> int:
    """Return `wished` if a server could listen there, else what the system picks."""
    if wished <= LAST_PORT and why_not_free(LOOPBACK, wished) is None:
        return wished
    with socket.create_server((LOOPBACK, 0)) as probe:
        port: int = probe.getsockname()[1]
    return port
