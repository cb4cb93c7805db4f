"""What people see while something long goes on: one line for each part, with its seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WIDTH = 28


class Progress:
    """Lines of progress, written by `write`; a message between them begins a line of its own."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._in_line = False

    def say(self, text: str = "") -> None:
        self._write(("\n" if self._in_line else "") + text + "\n")
        self._in_line = False

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Show `name` now, and the seconds it took when it is done."""
        started = time.monotonic()
        self._write(("\n" if self._in_line else "") + f"{name:<{WIDTH}}")
        self._in_line = True
        yield
        took = f"{time.monotonic() - started:5.1f} s\n"
        self._write(took if self._in_line else f"{name:<{WIDTH}}{took}")
        self._in_line = False
