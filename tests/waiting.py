"""Waiting for a condition, with a limit: the only way a test waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

# Generous: a test never measures speed, and others may keep the machine busy.
LIMIT_SECONDS = 120.0
POLL_SECONDS = 0.02


def wait_for(condition: Callable[[], Value], what: str, *, limit: float = LIMIT_SECONDS) -> Value:
    """Return the condition's first true value; fail with `what` when none comes in time."""
    deadline = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {limit:g} s in vain until {what}")
        time.sleep(POLL_SECONDS)
