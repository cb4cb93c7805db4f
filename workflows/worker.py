"""What a worker process does beside its tasks: keeps its leases, sweeps, and ends in order."""

from __future__ import annotations

from typing import Any

from celery.exceptions import ImproperlyConfigured
from celery.signals import worker_init, worker_ready, worker_shutdown, worker_shutting_down

from workflows.services.ownership import this_process
from workflows.services.sweep import Sweeper

_sweeper: Sweeper | None = None

# Leases are renewed by a thread of the process that runs the steps, so steps run in threads.
POOLS = ("threads", "solo")


@worker_init.connect(weak=False)
def refuse_other_pools(sender: Any, **_: Any) -> None:
    pool = getattr(sender.pool_cls, "__module__", str(sender.pool_cls))
    if not any(known in pool or known.rstrip("s") in pool for known in POOLS):
        raise ImproperlyConfigured(
            f"Romulus workers run their steps in threads: start with -P threads, not {pool}. "
            "For more processors start more workers."
        )


@worker_ready.connect(weak=False)
def begin(**_: Any) -> None:
    global _sweeper
    this_process()
    _sweeper = Sweeper()
    _sweeper.start()


@worker_shutting_down.connect(weak=False)
def close(**_: Any) -> None:
    this_process().close()


@worker_shutdown.connect(weak=False)
def end(**_: Any) -> None:
    if _sweeper is not None:
        _sweeper.stop()
    this_process().stop()
