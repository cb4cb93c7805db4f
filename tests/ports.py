"""Ports of the loopback for servers of a test whose port is known before they listen, or kept while
they are away.

The system gives ports of its own range to whoever connects or listens anywhere. One from there that
is free now may be somebody's connection when the server starts: these come from below that range.
"""

from __future__ import annotations

import socket
from pathlib import Path
from random import SystemRandom

LOOPBACK = "127.0.0.1"
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOWEST = 12_000
# Where the system does not say: below the ranges of all that there are.
SYSTEMS_FIRST = 32_768
# Processes that run tests beside each other have the same seed, and must not come to the same port.
chance = SystemRandom()


def free_port() -> int:
    """A port that nobody listens at, and that the system gives to nobody."""
    while True:
        port = chance.randrange(LOWEST, systems_first())
        if is_free(port):
            return port


def systems_first() -> int:
    first = int(RANGE.read_text().split()[0]) if RANGE.exists() else SYSTEMS_FIRST
    return first if first > LOWEST else SYSTEMS_FIRST


def is_free(port: int) -> bool:
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError:
        return False
    return True
