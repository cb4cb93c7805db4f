"""How the bench talks with a process that it measures: in turn, a line of JSON each."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from django.conf import settings

from romulus_site import leash

END_SECONDS = 10.0
LAST_LINES = 8


class ChildFailed(Exception):
    """A process that is measured ended; the message has its last words."""


class Child:
    """A process of `romulus_site.bench.children`."""

    def __init__(self, name: str, environment: Mapping[str, str], log: Path) -> None:
        command = [sys.executable, "-m", "romulus_site.bench.children", name]
        self._name, self._log = name, log
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 (our own command line)
                leash.command(command, signal=signal.SIGKILL),
                cwd=settings.BASE_DIR,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def tell(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise self._failed() from error

    def hear(self) -> dict[str, Any]:
        """Return the next message; raise ChildFailed when there will be none."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._failed()
        heard: dict[str, Any] = json.loads(line)
        return heard

    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        self.tell(message)
        return self.hear()

    def close(self) -> None:
        """End the process: it ends by itself when it hears nothing more."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _failed(self) -> ChildFailed:
        return ChildFailed(f"The process {self._name} ended:\n{last_lines(self._log)}")


def last_lines(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-LAST_LINES:])


# --- in the child ---------------------------------------------------------------------------


def hear() -> dict[str, Any] | None:
    """Return the bench's next message, or None when it has ended."""
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def say(message: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
