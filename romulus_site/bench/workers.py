"""Real worker processes with the real broker, and the ear of the bench for their steps."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import kombu
from django.conf import settings

from romulus_site import leash, parts
from romulus_site.bench.database import Server
from romulus_site.bench.talk import last_lines
from romulus_site.polling import wait_until

READY_SECONDS = 60.0
END_SECONDS = 10.0
EMBEDDED_BROKER = "pgmq://"
IS_READY = "SELECT FROM workflows_worker WHERE pid = %s"


class Silence(Exception):
    """What was waited for did not come; the message says what."""


class Ear:
    """Hears each step that says it is at work, in whichever process, at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))

    def hear(self, run: str, seconds: float) -> dict[str, Any]:
        """Return the next message of `run`: the `pid` of its worker, and its clock `at` the step.

        Raises:
            Silence: none came in `seconds`.
        """
        self._socket.settimeout(seconds)
        try:
            while True:
                message: dict[str, Any] = json.loads(self._socket.recv(4096))
                if message["run"] == run:
                    return message
        except TimeoutError:
            raise Silence(f"no step of run {run} began within {seconds:.0f} s") from None

    def close(self) -> None:
        self._socket.close()


class WorkerProcess:
    """One Celery worker of the product."""

    def __init__(
        self, server: Server, database: str, environment: dict[str, str], concurrency: int
    ) -> None:
        self._server, self._database = server, database
        part = parts.worker(next_number(), concurrency)
        self._log = server.folder / f"{part.name}.log"
        queue = environment.get("ROMULUS_BENCH_QUEUE")
        command = [*part.command, *([f"--queues={queue}"] if queue else [])]
        with self._log.open("ab") as output:
            self.process = subprocess.Popen(  # noqa: S603 (our own command line)
                leash.command(command, signal=signal.SIGKILL),
                cwd=settings.BASE_DIR,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_until_ready(self) -> None:
        with self._server.connect(self._database) as connection:

            def is_decided() -> bool:
                known = connection.execute(IS_READY, [self.pid]).fetchone()
                return known is not None or self.process.poll() is not None

            if not wait_until(is_decided, READY_SECONDS) or self.process.poll() is not None:
                raise Silence(f"a worker did not start:\n{last_lines(self._log)}")

    def kill(self) -> None:
        """SIGKILL, as a crash is: nothing of it is done after."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait(END_SECONDS)


def next_number() -> int:
    """Return a number that no other worker of this process has."""
    global _number
    _number += 1
    return _number


_number = 0


class Staff:
    """The workers of one measurement."""

    def __init__(self, server: Server, database: str, environment: dict[str, str]) -> None:
        self._server, self._database, self._environment = server, database, environment
        self._workers: dict[int, WorkerProcess] = {}

    def hire(self, number: int, concurrency: int) -> None:
        """Start `number` workers together, and return when all are ready."""
        hired = [
            WorkerProcess(self._server, self._database, self._environment, concurrency)
            for _ in range(number)
        ]
        self._workers |= {worker.pid: worker for worker in hired}
        for worker in hired:
            worker.wait_until_ready()

    def kill(self, pid: int) -> None:
        self._workers.pop(pid).kill()

    def end(self) -> None:
        """End all at once: nothing of what they are at is kept."""
        for worker in self._workers.values():
            worker.kill()


@contextmanager
def staff_of(server: Server, database: str, environment: dict[str, str]) -> Iterator[Staff]:
    staff = Staff(server, database, environment)
    try:
        yield staff
    finally:
        staff.end()


@contextmanager
def scene(server: Server, database: str) -> Iterator[tuple[Ear, dict[str, str]]]:
    """Give an ear, and the environment of processes that speak to it and share the real broker."""
    variables = {"socket": str(server.folder / "ear")}
    with ExitStack() as stack:
        if broker() != EMBEDDED_BROKER:
            variables["queue"] = stack.enter_context(queue_of_its_own())
        ear = Ear(server.folder / "ear")
        stack.callback(ear.close)
        yield ear, server.environment_of(database, **variables)


def broker() -> str:
    return os.environ.get("BROKER_URL") or EMBEDDED_BROKER


def broker_name() -> str:
    """Return the kind of broker, without its address."""
    return broker().partition(":")[0]


@contextmanager
def queue_of_its_own() -> Iterator[str]:
    """Give the name of a queue that other workers of the broker do not read; removed after."""
    name = f"romulus-bench-{uuid.uuid4().hex[:8]}"
    try:
        yield name
    finally:
        remove(name)


def remove(name: str) -> None:
    """Remove the queue of that name and its exchange from the broker."""
    exchange = kombu.Exchange(name)
    queue = kombu.Queue(name, exchange, name)
    with kombu.Connection(broker()) as connection:
        # Declared first: over Redis a connection removes no binding that it does not know.
        for entity, act in ((queue, "declare"), (queue, "delete"), (exchange, "delete")):
            with suppress(*connection.channel_errors):
                getattr(entity.bind(connection.channel()), act)()
