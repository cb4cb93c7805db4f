"""Real systems that nobody here wrote, each in a process of its own on the loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.waiting import wait_for

START_SECONDS = 60.0
ACCOUNT = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}

# By its own command it listens on every interface of the machine.
LOCALSTRIPE = """
import sys
from aiohttp import web
from localstripe import resources, server
web.run_app(server.app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
"""


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port: int = listening.getsockname()[1]
    return port


@contextmanager
def running(command: list[str], port: int, folder: Path, **environment: str) -> Iterator[str]:
    """Run a server until the block is left; gives its address when it listens."""
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | {"PYTHONWARNINGS": "ignore"} | environment,
            stdout=output,
            stderr=output,
        )
    try:
        wait_for(lambda: listens(process, port, log), f"a server on {port}", limit=START_SECONDS)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def listens(process: subprocess.Popen[bytes], port: int, log: Path) -> bool:
    assert process.poll() is None, log.read_text()[-3000:]
    with closing(socket.socket()) as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def moto(folder: Path) -> Iterator[str]:
    """Most services of AWS; EC2 ignores its client token."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with running(command, port, folder, **ACCOUNT) as url:
        yield url


@contextmanager
def ministack(folder: Path) -> Iterator[str]:
    """Other services of AWS; DynamoDB heeds its token, and refuses other parameters under it."""
    port = free_port()
    environment = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), **ACCOUNT}
    with running([sys.executable, "-m", "ministack"], port, folder, **environment) as url:
        yield url


@contextmanager
def localstripe(folder: Path) -> Iterator[str]:
    """Stripe's API, which ignores idempotency keys."""
    port = free_port()
    with running([sys.executable, "-c", LOCALSTRIPE, str(port)], port, folder) as url:
        yield url
