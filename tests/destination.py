"""A rehearsal destination for a test: the real process on a free port of the loopback."""

from __future__ import annotations

import select
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx

from reconciliation.rehearsal.client import Destination
from romulus_site import leash
from tests.waiting import LIMIT_SECONDS

REFUNDS, CREDITS = "/keyed/v1/refunds", "/keyed/v1/credits"
MACHINES = "/lookup/v1/machines"
COMMENTS = "/blind/v1/tickets/17/comments"

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-m", "reconciliation.rehearsal.destination"]
# Generous: on a loaded machine an interpreter alone can take seconds to start.
START_SECONDS = 120.0
END_SECONDS = 60.0
POLL_SECONDS = 0.01
# A client loads every certificate of the machine unless given a context; here is no TLS.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

Found = TypeVar("Found")


class RunningDestination:
    """The process, its address, and a client of its administration."""

    def __init__(self, folder: Path) -> None:
        """Start a destination that keeps its store in `folder`."""
        self.folder = folder
        self.process = launch(folder)
        self.url = address_of(self.process)
        self.client = Destination(self.url)

    def as_account(self, account: str = "acct_1") -> httpx.Client:
        """Return a client of the personalities; close it, or use it as a context."""
        return httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {account}"},
            timeout=60,
            verify=NO_CERTIFICATES,
            # The environment's proxies are not for the loopback.
            trust_env=False,
        )

    def kill(self) -> None:
        """Kill the process as an out-of-memory killer would."""
        self.process.kill()
        self._reap()

    def terminate(self) -> int:
        """Ask the process to end; returns its exit code."""
        self.process.terminate()
        return self._reap()

    def restart(self) -> None:
        """Start it again, at the same address and with the same store."""
        self.process = launch(self.folder, port=httpx.URL(self.url).port or 0)
        assert address_of(self.process) == self.url

    def _reap(self) -> int:
        code = self.process.wait(END_SECONDS)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return code


@contextmanager
def running_destination(folder: Path) -> Iterator[RunningDestination]:
    """A destination for the block, with its store in `folder`; killed at the end."""
    destination = RunningDestination(folder)
    try:
        yield destination
    finally:
        destination.client.close()
        if destination.process.poll() is None:
            destination.kill()


def launch(folder: Path, *, port: int = 0) -> subprocess.Popen[str]:
    """Start the process and return at once."""
    return subprocess.Popen(
        leash.command(
            [*COMMAND, "--data", str(folder), "--port", str(port)], signal=signal.SIGKILL
        ),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def address_of(process: subprocess.Popen[str]) -> str:
    """Wait until the process says where it listens, and return the address."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
    line = process.stdout.readline() if ready else ""
    if not line.startswith("listening on http://"):
        process.kill()
        process.wait(END_SECONDS)
        message = f"the destination did not start; it said {line!r}"
        raise AssertionError(message)
    return line.split()[-1]


def eventually(look: Callable[[], Found], *, within_seconds: float = LIMIT_SECONDS) -> Found:
    """Call `look` until it returns something true, and return that; fails after the limit."""
    limit = time.monotonic() + within_seconds
    while not (found := look()):
        if time.monotonic() > limit:
            message = f"nothing after {within_seconds} s; the last was {found!r}"
            raise AssertionError(message)
        time.sleep(POLL_SECONDS)
    return found


def refund(operation: str = "op-1", **members: Any) -> dict[str, Any]:
    """Return the body of a refund that carries the operation as its marker."""
    marked = {"metadata": {"operation": operation}}
    return {"amount": 500, "currency": "eur", "order": "A1", **marked, **members}


def machine(operation: str = "op-1", **members: Any) -> dict[str, Any]:
    """Return the body of a machine that carries the operation as its marker."""
    marked = {"metadata": {"operation": operation}}
    return {"name": "worker-1", "size": "small", "zone": "north-1a", **marked, **members}


def keyed(key: str = "key-1") -> dict[str, str]:
    """Return the header that carries an idempotency key."""
    return {"Idempotency-Key": key}


def error(answer: httpx.Response) -> dict[str, Any]:
    """Return the error that an answer carries."""
    found: dict[str, Any] = answer.json()["error"]
    return found
