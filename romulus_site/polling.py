"""Waiting for what no event announces: another program's state."""

from __future__ import annotations

import time
from collections.abc import Callable

INTERVAL_SECONDS = 0.05


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait until `condition` holds and return True; return False when `seconds` have passed."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(INTERVAL_SECONDS)
    return True
