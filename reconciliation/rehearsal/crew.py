"""The worker processes of a rehearsal: real ones, killed where a case says."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TextIO
from uuid import UUID

from django.conf import settings

from reconciliation.rehearsal.flow import WRITE
from reconciliation.rehearsal.worker import READY
from workflows.core.errors import RomulusError

START_SECONDS = 120.0
# Short, so that the run of a killed worker is free soon.
LEASE_SECONDS = 2.0
# Where the fault proxy listens: the stand-in alone may be called there.
PROXY = "127.0.0.1/32"


class RehearsalStopped(RomulusError):
    """A rehearsal could not go on; the message says why. Nothing was concluded from it."""


class WorkerProcess:
    """One worker, told of runs by its standard input."""

    def __init__(self, provider: str, log: Path, failpoint: str = "") -> None:
        self.log = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(  # noqa: S603 (our own command line)
                [sys.executable, "-m", "reconciliation.rehearsal.worker", provider],
                cwd=settings.BASE_DIR,
                env=os.environ
                | {
                    "ROMULUS_FAILPOINTS": failpoint,
                    "ROMULUS_LEASE_SECONDS": str(LEASE_SECONDS),
                    "PYTHONPATH": str(settings.BASE_DIR),
                    "ROMULUS_ALLOWED_ADDRESSES": ",".join(
                        [*settings.ROMULUS_ALLOWED_ADDRESSES, f"{provider}={PROXY}"]
                    ),
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        assert self.process.stdout is not None
        self._said: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._listen, args=(self.process.stdout,), daemon=True).start()

    def _listen(self, output: TextIO) -> None:
        for line in output:
            self._said.put(line.strip())
        self._said.put("")  # it has ended

    def wait_until_ready(self) -> None:
        self._wait_for(READY, START_SECONDS)

    def take(self, run: UUID, seconds: float) -> None:
        """Have it take `run` as far as it goes. Raises `RehearsalStopped` when that is too long."""
        self.tell(run)
        self._wait_for(str(run), seconds)

    def tell(self, run: UUID) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{run}\n")
        self.process.stdin.flush()

    def wait_until_dead(self, seconds: float) -> None:
        """Wait until a failpoint has killed it."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        if code != -signal.SIGKILL:
            raise RehearsalStopped(f"the worker was not killed in time; see {self.log}")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def _wait_for(self, word: str, seconds: float) -> None:
        limit = time.monotonic() + seconds
        while (left := limit - time.monotonic()) > 0:
            try:
                said = self._said.get(timeout=left)
            except queue.Empty:
                break
            if said == word:
                return
            if not said:
                raise RehearsalStopped(f"the worker ended by itself; see {self.log}")
        raise RehearsalStopped(f"nothing came of it within {seconds:.0f} s; see {self.log}")


class Crew:
    """A lasting worker, started when it is first needed, and those that die."""

    def __init__(self, provider: str, folder: Path) -> None:
        self._provider, self._folder = provider, folder
        self._lasting: WorkerProcess | None = None
        self._everyone: list[WorkerProcess] = []

    def lasting(self) -> WorkerProcess:
        if self._lasting is None:
            self._lasting = self._start("")
        return self._lasting

    def doomed(self, point: str) -> WorkerProcess:
        return self._start(f"{point}@{WRITE}")

    def _start(self, failpoint: str) -> WorkerProcess:
        log = self._folder / f"worker-{len(self._everyone) + 1}.log"
        worker = WorkerProcess(self._provider, log, failpoint)
        self._everyone.append(worker)
        worker.wait_until_ready()
        return worker

    def end(self) -> None:
        for worker in self._everyone:
            worker.end()
