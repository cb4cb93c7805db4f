"""Many workers at the price of one: children of a parent that has loaded everything (`forked`)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from romulus_site import leash
from tests.acceptance.forked import ANSWERED
from tests.waiting import wait_for
from tests.workers import ROOT, START_SECONDS, Crew, environment_of
from workflows.models import Worker


@dataclass(frozen=True)
class Family:
    parent: subprocess.Popen[bytes]
    log: Path

    def end_parent(self) -> None:
        """Let the parent say that every reply on its connection was its own."""
        self.parent.terminate()
        wait_for(lambda: ANSWERED in self.log.read_text(), "the parent's replies were its own")

    def errors(self) -> list[str]:
        lines = self.log.read_text().splitlines()
        return [line for line in lines if '"level": "error"' in line or "Traceback" in line]


@contextmanager
def forked_workers(workers: Crew, number: int, **environment: str) -> Iterator[Family]:
    """So many worker processes, all ready; killed at the end."""
    log = workers.folder / "forked.log"
    with log.open("wb") as output:
        parent = subprocess.Popen(
            leash.command(
                [sys.executable, "-m", "tests.acceptance.forked", str(number)],
                signal=signal.SIGKILL,
            ),
            cwd=ROOT,
            env=environment_of(workers.database_url) | environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        ready = Worker.objects.filter(swept_at__isnull=False)
        wait_for(lambda: ready.count() == number, f"all are ready; see {log}", limit=START_SECONDS)
        yield Family(parent, log)
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait(timeout=120)
