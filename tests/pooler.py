"""PgBouncer as a process of a test, in transaction mode: each transaction on another connection.

Debian's package `pgbouncer`; `PGBOUNCER` names another program.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.ports import LOOPBACK, free_port
from tests.waiting import wait_for

PROGRAM = os.environ.get("PGBOUNCER") or shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
SERVERS = 4  # its connections to the server, shared by all clients
PREPARES_SINCE = (1, 21)
CONFIGURATION = """
[databases]
* = host={host} port={port} user={user}{password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listens}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {servers}
max_client_conn = 200
# So that a client meets each of them.
server_round_robin = 1
logfile = {folder}/pgbouncer.log
{more}
"""


@dataclass(frozen=True)
class Pooler:
    """A running one.

    Attributes:
        settings: of the database, by way of it.
    """

    settings: dict[str, Any]
    log: Path


def version() -> tuple[int, ...]:
    """The installed version; skips the test when there is none."""
    if not Path(PROGRAM).exists():
        pytest.skip(f"PgBouncer is not installed at {PROGRAM}: apt-get install pgbouncer")
    said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
    numbers = re.search(r"PgBouncer (\d+)\.(\d+)", said.stdout)
    assert numbers, said.stdout
    return tuple(map(int, numbers.groups()))


@contextmanager
def pooler(settings: dict[str, Any], **options: object) -> Iterator[Pooler]:
    """Run one before the server of `settings`; `options` go into its configuration."""
    version()
    with tempfile.TemporaryDirectory(prefix="pooler-") as made:
        folder = Path(made)
        listens = free_port()
        configuration = folder / "pgbouncer.ini"
        configuration.write_text(
            CONFIGURATION.format(
                host=settings["HOST"] or LOOPBACK,
                port=settings["PORT"] or 5432,
                user=settings["USER"],
                password=f" password={settings['PASSWORD']}" if settings["PASSWORD"] else "",
                listens=listens,
                servers=SERVERS,
                folder=folder,
                more="\n".join(f"{name} = {value}" for name, value in options.items()),
            )
        )
        process = launch(configuration, Path(str(settings["HOST"])))
        try:
            log = folder / "pgbouncer.log"
            wait_for(lambda: listens_at(listens, process, log), "the pooler listens")
            yield Pooler({**settings, "HOST": LOOPBACK, "PORT": listens, "PASSWORD": ""}, log)
        finally:
            process.kill()
            process.wait(timeout=120)


def launch(configuration: Path, server: Path) -> subprocess.Popen[bytes]:
    """Start it as somebody who can reach the server's socket; it refuses to run as root."""
    options: dict[str, Any] = {}
    if os.geteuid() == 0:
        owner = server.stat() if server.is_dir() else None
        # The server's own account; a server without a local socket anybody can reach.
        uid, gid = (owner.st_uid, owner.st_gid) if owner and owner.st_uid else (65534, 65534)
        for path in (configuration.parent, configuration):
            os.chown(path, uid, gid)
        options = {"user": uid, "group": gid, "extra_groups": []}
    return subprocess.Popen([PROGRAM, "--quiet", str(configuration)], **options)


def listens_at(port: int, process: subprocess.Popen[bytes], log: Path) -> bool:
    said = log.read_text() if log.exists() else ""
    assert process.poll() is None, f"the pooler ended with {process.returncode}: {said}"
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0
