"""A worker of one run, in a process of its own that is frozen where others are killed."""

from __future__ import annotations

import os
import signal
import sys
from types import SimpleNamespace
from uuid import UUID

import django


def freeze(pid: int, _signal: int) -> None:
    os.kill(pid, signal.SIGSTOP)


def main() -> None:
    django.setup()
    from workflows import failpoints
    from workflows.services.executor import advance
    from workflows.services.ownership import Keeper

    failpoints.os = SimpleNamespace(getpid=os.getpid, kill=freeze)  # type: ignore[attr-defined]
    advance(UUID(sys.argv[1]), Keeper())


if __name__ == "__main__":
    main()
