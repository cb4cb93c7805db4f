"""Real worker processes for tests: started, frozen, killed with SIGKILL, and always ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import wait_for
from workflows.models import Worker

ROOT = Path(__file__).resolve().parents[1]
# Short, so that a dead worker is found soon; long enough for a loaded machine to renew in time.
LEASE_SECONDS = 3.0


class WorkerProcess:
    """One worker process on the test's own database and broker."""

    def __init__(self, database_url: str, folder: Path, name: str, **environment: str) -> None:
        self.log = folder / f"{name}.log"
        command = [
            *(sys.executable, "-m", "celery", "--app=romulus_site", "worker"),
            *("--pool=threads", "--concurrency=2", "--queues=advance,reconcile"),
            *(f"--hostname={name}@%h", "--without-gossip", "--without-mingle"),
            "--without-heartbeat",
        ]
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment_of(database_url) | environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.pid = self.process.pid

    def wait_until_ready(self) -> WorkerProcess:
        wait_for(self._is_known, f"worker {self.pid} is ready; see {self.log}")
        return self

    def _is_known(self) -> bool:
        assert self.process.poll() is None, f"the worker ended:\n{self.log.read_text()[-3000:]}"
        return Worker.objects.filter(pid=self.pid).exists()

    def wait_until_dead(self) -> None:
        """Wait until a failpoint has killed it."""
        wait_for(lambda: self.process.poll() is not None, f"worker {self.pid} is dead")
        assert self.process.returncode == -signal.SIGKILL, self.log.read_text()[-3000:]

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=30)


def environment_of(database_url: str) -> dict[str, str]:
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "romulus_site.settings",
        "DATABASE_URL": database_url,
        "BROKER_URL": "pgmq://",
        "ROMULUS_LEASE_SECONDS": str(LEASE_SECONDS),
        "ROMULUS_SWEEP_SECONDS": "0.2",
        "ROMULUS_WORKFLOWS": WORKFLOWS,
        "PYTHONPATH": str(ROOT),
    }


WORKFLOWS = (
    "workflows.examples.ticket_triage,workflows.examples.replacement_worker,"
    "workflows.examples.refund,tests.acceptance.counting"
)


class Crew:
    """The workers of one test."""

    def __init__(self, database_url: str, folder: Path) -> None:
        self._database_url = database_url
        self._folder = folder
        self._workers: list[WorkerProcess] = []

    def start(self, *, failpoint: str = "") -> WorkerProcess:
        """Start a worker that dies at `failpoint`, if one is named; return it when it is ready."""
        name = f"worker-{len(self._workers) + 1}"
        worker = WorkerProcess(self._database_url, self._folder, name, ROMULUS_FAILPOINTS=failpoint)
        self._workers.append(worker)
        return worker.wait_until_ready()

    def end(self) -> None:
        for worker in self._workers:
            worker.kill()


@contextmanager
def crew(database_url: str, folder: Path) -> Iterator[Crew]:
    workers = Crew(database_url, folder)
    try:
        yield workers
    finally:
        workers.end()
