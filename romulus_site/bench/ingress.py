"""The product's web server as the bench measures it: its rate, and its memory."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from django.conf import settings

from romulus_site import leash, parts
from romulus_site.bench.talk import last_lines
from romulus_site.bench.workers import Silence
from romulus_site.polling import wait_until

SOURCE = "bench"
SECRET = "whsec_YmVuY2ggYmVuY2ggYmVuY2ggYmVuY2g="  # noqa: S105 (of a database that is dropped)
HOOK = f"/hooks/{SOURCE}/"
BARE = "/bench/bare/"
READY_SECONDS = 60.0
END_SECONDS = 10.0
PROC = Path("/proc")


class WebServer:
    """One process of the console, with the addresses of `romulus_site.bench.urls`."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.port = free_port()
        self._log = folder / "web.log"
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 (our own command line)
                leash.command(
                    parts.console(parts.LOOPBACK, self.port).command, signal=signal.SIGKILL
                ),
                cwd=settings.BASE_DIR,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def wait_until_ready(self) -> None:
        def is_decided() -> bool:
            answers = parts.answers(parts.LOOPBACK, self.port, "/healthz")
            return answers or self._process.poll() is not None

        if not wait_until(is_decided, READY_SECONDS) or self._process.poll() is not None:
            raise Silence(f"the web server did not start:\n{last_lines(self._log)}")

    def peak_bytes(self) -> int | None:
        """The most memory that its largest process has ever had; None if unknown."""
        group = os.getpgid(self._process.pid)
        peaks = [peak_of(pid) for pid in pids_of(group)]
        return max((peak for peak in peaks if peak), default=None)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(END_SECONDS)


@contextmanager
def web_server(environment: dict[str, str], folder: Path) -> Iterator[WebServer]:
    server = WebServer(environment, folder)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.kill()


def free_port() -> int:
    with socket.create_server((parts.LOOPBACK, 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def pids_of(group: int) -> Iterator[int]:
    for entry in PROC.glob("[0-9]*"):
        with suppress(OSError):
            if os.getpgid(int(entry.name)) == group:
                yield int(entry.name)


def peak_of(pid: int) -> int | None:
    try:
        status = (PROC / str(pid) / "status").read_text()
    except OSError:
        return None
    found = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(found[0]) * 1024 if found else None


def answers_of(answer: dict[str, Any]) -> str:
    """Say which answers came how often, such as "202: 500"."""
    return ", ".join(f"{status}: {number}" for status, number in sorted(answer["answers"].items()))
