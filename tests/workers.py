"""Real worker processes for tests: started, frozen, killed with SIGKILL, and always ended.

On a leash: none outlives the process of the tests, however that ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from romulus_site import leash
from tests.waiting import wait_for
from workflows.models import Worker

ROOT = Path(__file__).resolve().parents[1]
# Short, so that a dead worker is found soon; long enough for a loaded machine to renew in time.
LEASE_SECONDS = 3.0
QUEUES = "advance,reconcile"
START_SECONDS = 180.0  # many interpreters that start together, on a machine with other work


class WorkerProcess:
    """One worker process on the test's own database and broker."""

    def __init__(
        self,
        database_url: str,
        folder: Path,
        name: str,
        *,
        threads: int = 2,
        queues: str = QUEUES,
        log_level: str = "WARNING",
        **environment: str,
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        command = [
            *(sys.executable, "-m", "celery", "--app=romulus_site", "worker"),
            *("--pool=threads", f"--concurrency={threads}", f"--queues={queues}"),
            *(f"--hostname={name}@%h", "--without-gossip", "--without-mingle"),
            *("--without-heartbeat", f"--loglevel={log_level}"),
        ]
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                leash.command(command, signal=signal.SIGKILL),
                cwd=ROOT,
                env=environment_of(database_url) | environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.pid = self.process.pid

    def wait_until_ready(self) -> WorkerProcess:
        what = f"worker {self.pid} is ready; see {self.log}"
        wait_for(self._is_known, what, limit=START_SECONDS)
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
        self.process.wait(timeout=120)

    @property
    def identity(self) -> Worker:
        """Its row: what it has told of itself."""
        return Worker.objects.filter(pid=self.pid).latest("started_at")

    def has_logged(self, event: str) -> bool:
        return event in self.log.read_text()


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
    "workflows.examples.refund,tests.acceptance.counting,tests.acceptance.refunding,"
    "tests.acceptance.settling"
)


class Crew:
    """The workers of one test.

    Attributes:
        environment: of those that are started from now on, beside what every worker has.
        queues: that they listen to.
        log_level: what they log; Celery tells of each message that it receives at INFO.
    """

    def __init__(self, database_url: str, folder: Path) -> None:
        self.database_url = database_url
        self.folder = folder
        self.environment: dict[str, str] = {}
        self.queues = QUEUES
        self.log_level = "WARNING"
        self._workers: list[WorkerProcess] = []

    def start(
        self,
        *,
        failpoint: str = "",
        workflows: str = WORKFLOWS,
        threads: int = 2,
        name: str = "",
        **environment: str,
    ) -> WorkerProcess:
        """Start a worker that dies at `failpoint`, if one is named; return it when it is ready."""
        given = {"ROMULUS_FAILPOINTS": failpoint, "ROMULUS_WORKFLOWS": workflows} | environment
        return self.launch(threads=threads, name=name, **given).wait_until_ready()

    def launch(self, *, threads: int = 2, name: str = "", **environment: str) -> WorkerProcess:
        """Start a worker, and return at once."""
        given = {"DATABASE_URL": self.database_url} | self.environment | environment
        url = given.pop("DATABASE_URL")
        name = name or f"worker-{len(self._workers) + 1}"
        worker = WorkerProcess(
            url,
            self.folder,
            name,
            threads=threads,
            queues=self.queues,
            log_level=self.log_level,
            **given,
        )
        self._workers.append(worker)
        return worker

    def start_all(
        self, number: int, *, threads: int = 2, **environment: str
    ) -> list[WorkerProcess]:
        """Start so many workers together; return them when all are ready."""
        launched = [self.launch(threads=threads, **environment) for _ in range(number)]
        return [worker.wait_until_ready() for worker in launched]

    def kill_all(self) -> None:
        for worker in self._workers:
            worker.kill()

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
