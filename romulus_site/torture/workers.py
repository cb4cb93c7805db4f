"""Real worker processes: hired, let die, frozen, ended; each with a log of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from django.conf import settings

from romulus_site import leash, parts
from romulus_site.polling import wait_until
from romulus_site.torture.clock import Clock
from romulus_site.torture.settings import QUEUES
from workflows.models import Worker

THREADS = 4
END_SECONDS = 30.0


class WorkerProcess:
    """One Celery worker of the product.

    Attributes:
        failpoint: where it dies by itself; none for a healthy one.
        alive_at: when it was last seen alive.
        struck_at: when it was killed; of one that died by itself, when it was last seen alive.
    """

    def __init__(self, number: int, folder: Path, failpoint: str, now: datetime) -> None:
        self.name = f"worker-{number}"
        self.failpoint = failpoint
        self.alive_at = now
        self.struck_at: datetime | None = None
        self.frozen = False
        self.told_to_end = False
        self.log = folder / "logs" / f"{self.name}.log"
        command = [
            *parts.worker(number, THREADS).command,
            f"--queues={','.join(QUEUES)}",
        ]
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(  # noqa: S603 (our own command line)
                leash.command(command, signal=signal.SIGKILL),
                cwd=settings.BASE_DIR,
                env=os.environ | {"ROMULUS_FAILPOINTS": failpoint},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def is_ready(self) -> bool:
        """Whether it has come as far as to write itself down, or has ended."""
        return not self.is_alive or Worker.objects.filter(pid=self.pid).exists()


class Staff:
    """The workers of a torture: those that are there, and those that were."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder, self._clock = folder, clock
        self.everyone: list[WorkerProcess] = []
        self.mishaps: list[str] = []

    def hire(self, failpoint: str = "") -> WorkerProcess:
        number = len(self.everyone) + 1
        worker = WorkerProcess(number, self._folder, failpoint, self._clock.now())
        self.everyone.append(worker)
        return worker

    def alive(self) -> list[WorkerProcess]:
        """Those that are at work, or frozen in it; not those that were told to end."""
        return [each for each in self.everyone if each.is_alive and not each.told_to_end]

    def healthy(self) -> list[WorkerProcess]:
        return [each for each in self.alive() if not each.failpoint]

    def doomed(self) -> list[WorkerProcess]:
        return [each for each in self.alive() if each.failpoint]

    def bury(self) -> Iterator[WorkerProcess]:
        """Yield those that have died since the last call, and note what nobody has done."""
        for worker in self.everyone:
            # Asked first: whoever looks seldom must not take a death for a later one.
            now = self._clock.now()
            if worker.is_alive:
                worker.alive_at = now
                continue
            if worker.struck_at is not None:
                continue
            worker.struck_at = worker.alive_at
            code = worker.process.returncode
            at_failpoint = bool(worker.failpoint) and code == -signal.SIGKILL
            # One that had not come to its handlers yet ends by the signal itself.
            in_order = worker.told_to_end and code in (0, -signal.SIGTERM)
            if not (at_failpoint or in_order):
                self.mishaps.append(
                    f"{worker.name} ended by itself with code {code}; see {worker.log}"
                )
            yield worker

    def kill(self, worker: WorkerProcess) -> None:
        """SIGKILL, as a crash is: nothing of it is done after."""
        worker.signal(signal.SIGKILL)
        worker.process.wait()
        worker.struck_at = worker.struck_at or self._clock.now()

    def freeze(self, worker: WorkerProcess) -> None:
        worker.frozen = True
        worker.signal(signal.SIGSTOP)

    def thaw(self, worker: WorkerProcess) -> None:
        if worker.is_alive and worker.frozen:
            worker.signal(signal.SIGCONT)
        worker.frozen = False

    def tell_to_end(self, worker: WorkerProcess) -> None:
        """SIGTERM: it finishes the steps that it is at, and ends."""
        worker.told_to_end = True
        worker.process.terminate()

    def end(self) -> None:
        """End all in order; note those that did not end by themselves."""
        for worker in self.everyone:
            if worker.is_alive:
                self.thaw(worker)
                self.tell_to_end(worker)
        wait_until(lambda: not any(each.is_alive for each in self.everyone), END_SECONDS)
        for worker in self.everyone:
            if worker.is_alive:
                self.mishaps.append(
                    f"{worker.name} did not end within {END_SECONDS:.0f} s of being told to"
                )
                self.kill(worker)
        list(self.bury())

    def kill_all(self) -> None:
        for worker in self.everyone:
            if worker.is_alive:
                self.kill(worker)
