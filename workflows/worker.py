"""What a worker process does beside its tasks: keeps its leases, sweeps, and ends in order."""

from __future__ import annotations

import threading
from typing import Any

import structlog
from celery.signals import (
    celeryd_after_setup,
    worker_init,
    worker_shutdown,
    worker_shutting_down,
)
from django.conf import settings
from django.db import close_old_connections, connection

from workflows.services.ownership import of_this_process, this_process
from workflows.services.seldom import collect_seldom, purge_events_seldom, purge_seldom
from workflows.services.sweep import Sweeper, register_duty

log = structlog.get_logger(__name__)

# Leases are renewed by a thread of the process that runs the steps, so steps run in threads.
POOLS = ("threads", "solo")

_sweeper: Sweeper | None = None
_ending = threading.Event()


@worker_init.connect(weak=False)
def refuse_other_pools(sender: Any, **_: Any) -> None:
    pool = getattr(sender.pool_cls, "__module__", str(sender.pool_cls))
    if not any(known in pool or known.rstrip("s") in pool for known in POOLS):
        # Of what a signal's receiver raises, Celery lets nothing else end the worker.
        raise SystemExit(
            f"Romulus workers run their steps in threads: start with -P threads, not {pool}. "
            "For more processors start more workers."
        )


@celeryd_after_setup.connect(weak=False)
def begin(instance: Any, **_: Any) -> None:
    """A worker that starts while the broker is away does all that one does from which it has gone:
    it is known, sweeps, and listens as soon as there is somebody to listen to."""
    # Not in every process that has the code: these have threads and connections of their own.
    register_duty(purge_seldom)
    register_duty(purge_events_seldom)
    register_duty(collect_seldom)
    threads = instance.concurrency
    threading.Thread(target=enlist, args=(threads,), name="enlist", daemon=True).start()


def enlist(threads: int) -> None:
    """Make this process known and let it sweep, as soon as the database answers."""
    global _sweeper
    while not _ending.is_set():
        try:
            keeper = this_process()
        except Exception as error:  # noqa: BLE001 (a worker that gave up would be silent for ever)
            log.warning("worker.not_enlisted", error=type(error).__name__)
            close_old_connections()
            _ending.wait(settings.ROMULUS_SWEEP_SECONDS)
        else:
            keeper.threads = threads
            _sweeper = Sweeper(keeper)
            _sweeper.start()
            break
    connection.close()


@worker_shutting_down.connect(weak=False)
def close(**_: Any) -> None:
    _ending.set()
    keeper = of_this_process()
    if keeper is not None:
        keeper.close()


@worker_shutdown.connect(weak=False)
def end(**_: Any) -> None:
    if _sweeper is not None:
        _sweeper.stop()
    keeper = of_this_process()
    if keeper is not None:
        keeper.stop()
