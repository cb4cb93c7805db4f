"""The console as a process of its own, by its address."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from romulus_site import leash, parts
from tests.destination import NO_CERTIFICATES
from tests.ports import free_port
from tests.waiting import wait_for
from tests.workers import ROOT

START_SECONDS = 180.0


class Web:
    def __init__(self, port: int, pid: int = 0) -> None:
        self.port, self.pid = port, pid
        self._client = httpx.Client(
            base_url=f"http://localhost:{port}", timeout=60, verify=NO_CERTIFICATES, trust_env=False
        )

    def ready(self) -> tuple[int, str]:
        """What it says of itself to whoever asks whether it is ready."""
        answer = self._client.get("/readyz")
        return answer.status_code, answer.text

    def close(self) -> None:
        self._client.close()


@contextmanager
def web(environment: dict[str, str], folder: Path) -> Iterator[Web]:
    """Run the console; give it when it answers."""
    port = free_port()
    part = parts.console("127.0.0.1", port)
    command = leash.command(part.command, signal=signal.SIGKILL)
    with (folder / "web.log").open("ab") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    console = Web(port, process.pid)
    try:
        wait_for(lambda: part.is_ready(process.pid), "the console answers", limit=START_SECONDS)
        yield console
    finally:
        console.close()
        process.kill()
        process.wait(timeout=120)
