"""The clock that the time of one exchange is measured by.

A machine may be suspended between the moment at which a send is written down and its first byte,
for longer than the send may take; the usual clock of a process stands still meanwhile, and the send
would leave when others take it to be over.
"""

from __future__ import annotations

import time

# What there is on other systems than Linux may stand still.
CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def uptime() -> float:
    """Return the seconds since the machine was started, also those in which it was suspended."""
    return time.clock_gettime(CLOCK)
