"""Walks: a number of runs taken to their end by threads that each have a connection of their own.

So does a worker: Celery's pool of threads. A walk has five parts, between which the bench reads its
counters: prepare and warm up, walk, close the connections (which makes PostgreSQL count what they
did), check that everything was done.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self
from uuid import UUID

from romulus_site.bench.talk import hear, say

# PostgreSQL plans a prepared statement anew the first five times, then settles on a plan.
WARM_UPS = 8
# Counts what this connection did now, and not within seconds.
FLUSH = "SELECT pg_stat_force_next_flush()"


@dataclass(frozen=True)
class Order:
    """What to walk: `runs` of `steps` steps each, `in_flight` of them at once."""

    in_flight: int
    runs: int
    steps: int


class Job(Protocol):
    """What the threads of a walk do; `warm`, `work` and `close` are called once in each."""

    def warm(self) -> None: ...
    def work(self) -> None: ...
    def close(self) -> None: ...
    def undone(self) -> int:
        """Return how much of the order was not done."""


class Crew:
    """Threads that do the same at the same time, and stay."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._pool = ThreadPoolExecutor(size)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pool.shutdown()

    def each(self, act: Callable[[], None]) -> None:
        """Let every thread `act` once, and return when all have."""
        together = threading.Barrier(self._size)

        def one() -> None:
            together.wait()
            act()

        for done in [self._pool.submit(one) for _ in range(self._size)]:
            done.result()


def serve(prepare: Callable[[Order], Job]) -> None:
    """Walk each order that the bench gives, until it gives none."""
    while (order := hear()) is not None:
        job = prepare(Order(**order))
        with Crew(order["in_flight"]) as crew:
            crew.each(job.warm)
            in_turn({})
            in_turn(walked(crew, job))
            crew.each(job.close)
            in_turn({})
        say({"undone": job.undone()})


def in_turn(message: dict[str, float]) -> None:
    """Say it, and wait for the word to go on."""
    say(message)
    hear()


def walked(crew: Crew, job: Job) -> dict[str, float]:
    began, cpu = time.perf_counter(), time.process_time()
    crew.each(job.work)
    return {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu}


def taken(runs: deque[UUID]) -> Iterator[UUID]:
    """Yield one after the other; each goes to one thread only."""
    while True:
        try:
            run = runs.popleft()
        except IndexError:
            return
        yield run
