"""Real worker processes for tests: started, frozen, killed with SIGKILL, and always ended.

Each is forked by a process that has loaded what workers need (`tests.nursery`). On a leash: none
outlives the process of the tests, however that ends.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from romulus_site import leash
from tests.waiting import wait_for
from workflows.models import Worker

ROOT = Path(__file__).resolve().parents[1]
# Short, so that a dead worker is found soon; long enough for a loaded machine to renew in time.
LEASE_SECONDS = 3.0
QUEUES = "advance,reconcile"
START_SECONDS = 180.0  # many interpreters that start together, on a machine with other work


class Nursery:
    """The process that forks the workers of this one's tests."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._process = subprocess.Popen(
            leash.command([sys.executable, "-m", "tests.nursery"], signal=signal.SIGKILL),
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        atexit.register(self._process.kill)

    def ask(self, **wanted: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._one_at_a_time:
            self._process.stdin.write(f"{json.dumps(wanted)}\n")
            self._process.stdin.flush()
            said = self._process.stdout.readline()
        assert said, "the nursery has ended; its last words are above"
        return json.loads(said)


@functools.cache
def nursery() -> Nursery:
    return Nursery()


class Forked:
    """A child of the nursery, with what tests use of `Popen`."""

    def __init__(self, arguments: list[str], environment: dict[str, str], log: Path) -> None:
        self.returncode: int | None = None
        self.pid: int = nursery().ask(arguments=arguments, environment=environment, log=str(log))

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = nursery().ask(ended=self.pid)
        return self.returncode

    def wait(self, timeout: float) -> int | None:
        wait_for(lambda: self.poll() is not None, f"process {self.pid} has ended", limit=timeout)
        return self.returncode

    def kill(self) -> None:
        # Nobody else has its number: who has ended keeps it until `poll` has seen the end.
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


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
        arguments = [
            *("--app=romulus_site", "worker"),
            *("--pool=threads", f"--concurrency={threads}", f"--queues={queues}"),
            *(f"--hostname={name}@%h", "--without-gossip", "--without-mingle"),
            *("--without-heartbeat", f"--loglevel={log_level}"),
        ]
        self.process = Forked(arguments, environment_of(database_url) | environment, self.log)
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
