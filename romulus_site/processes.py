"""Child processes: started on a leash, started again when they die, ended in order.

Each has a session of its own, so that a Ctrl-C in the terminal reaches the supervisor alone, and
so that what a child started itself can be ended with it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from romulus_site import leash
from romulus_site.polling import wait_until

# A worker finishes the step that it runs, the console the requests that it answers; what takes
# longer is cut off, which is as safe as any crash.
STOP_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 30.0
# A child that lived this long has recovered: its next death is its first.
RECOVERED_SECONDS = 60.0
# How often a child may die before it was ever ready.
FALSE_STARTS = 3
LAST_LINES = 8


class DidNotStart(Exception):
    """A part of the system did not become ready; the message says which and why."""


@dataclass(frozen=True)
class Part:
    """A program that is a part of the running system."""

    name: str
    command: Sequence[str]
    is_ready: Callable[[int], bool]
    """Whether the process with this ID does its work already."""


@dataclass(frozen=True)
class Surroundings:
    """Where programs run, and what their environment has beside this process's own."""

    folder: Path
    environment: Mapping[str, str]


class Child:
    """The process of one part, and of its successors."""

    def __init__(self, part: Part, log: Path, surroundings: Surroundings) -> None:
        self.part = part
        self.log = log
        self._surroundings = surroundings
        self.deaths = 0
        self._start_at = 0.0
        self._started_at = 0.0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_ready(self) -> bool:
        return self._process is not None and self.part.is_ready(self._process.pid)

    def tend(self) -> str | None:
        """Start the process when it does not run; return what to tell people when it has died."""
        message = self._bury(self._process) if self._process and self.has_ended() else None
        if self._process is None and time.monotonic() >= self._start_at:
            self._start()
        return message

    def _bury(self, process: subprocess.Popen[bytes]) -> str:
        how = describe_end(process.returncode)
        self.kill()
        lived = time.monotonic() - self._started_at
        self.deaths = 1 if lived > RECOVERED_SECONDS else self.deaths + 1
        pause = pause_after(self.deaths)
        self._start_at = time.monotonic() + pause
        return f"{self.part.name} {how}; starting it again" + (
            f" in {pause:.0f} s" if pause else ""
        )

    def _start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 (our own command line)
                leash.command(self.part.command, signal=signal.SIGKILL),
                cwd=self._surroundings.folder,
                env={**os.environ, **self._surroundings.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._started_at = time.monotonic()

    def terminate(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def kill(self) -> None:
        """End the process and all that it started, at once; also what it left behind."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def last_words(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-LAST_LINES:])


class Supervisor:
    """The children of this process, in stages: what is started first is ended last."""

    def __init__(self, logs: Path, surroundings: Surroundings, say: Callable[[str], None]) -> None:
        self.logs = logs
        self._surroundings = surroundings
        self._say = say
        self._stages: list[list[Child]] = []

    def start(self, parts: Iterable[Part]) -> list[Child]:
        """Start `parts` together, without waiting for any of them."""
        stage = [Child(part, self.logs / f"{part.name}.log", self._surroundings) for part in parts]
        self._stages.append(stage)
        self.tend()
        return stage

    def tend(self) -> None:
        """Start again what has died. Call it each second or so."""
        for stage in self._stages:
            for child in stage:
                if message := child.tend():
                    self._say(message)

    def wait_until_ready(self, child: Child, seconds: float) -> None:
        """Return when `child` does its work; raise DidNotStart when that takes too long."""

        def is_decided() -> bool:
            self.tend()
            return child.deaths >= FALSE_STARTS or child.is_ready

        if not wait_until(is_decided, seconds) or child.deaths >= FALSE_STARTS:
            raise DidNotStart(
                f"{child.part.name} did not start; the last lines of {child.log}:\n"
                + child.last_words()
            )

    def stop(self) -> None:
        """End all children, the last stage first; by force what takes too long."""
        while self._stages:
            end(self._stages.pop())


def end(children: Sequence[Child]) -> None:
    for child in children:
        child.terminate()
    wait_until(lambda: all(child.has_ended() for child in children), STOP_SECONDS)
    for child in children:
        child.kill()


def pause_after(deaths: int) -> float:
    """Return the seconds to wait before a start: none after one death, then more with each."""
    return 0.0 if deaths <= 1 else min(LONGEST_PAUSE_SECONDS, 2.0 ** (deaths - 2))


def describe_end(returncode: int) -> str:
    if returncode < 0:
        return f"was ended by {signal.Signals(-returncode).name}"
    return f"ended with exit code {returncode}"
