"""The brokers as kombu speaks to them, with what a worker lacks there to go on after an outage."""

from __future__ import annotations

import kombu.transport

OURS = {"pgmq": "pgmq", "redis": "redis", "rediss": "redis"}


def register() -> None:
    """Let the addresses of these brokers lead to ours; each is imported at its first use."""
    for scheme, module in OURS.items():
        kombu.transport.TRANSPORT_ALIASES[scheme] = f"{__name__}.{module}:Transport"
