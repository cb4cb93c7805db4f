"""Two at once: acts beside the test, each on a database connection of its own.

Where the order matters, a test waits until the other backend is observed to be blocked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import connection

from tests.waiting import LIMIT_SECONDS, wait_for

Given = TypeVar("Given")


def with_own_connection(act: Callable[[], Given]) -> Given:
    try:
        return act()
    finally:
        connection.close()


@contextmanager
def beside() -> Iterator[Callable[[Callable[[], Any]], Future[Any]]]:
    """Let acts run beside the test, each on a connection of its own."""
    with ThreadPoolExecutor(max_workers=16) as pool:
        yield lambda act: pool.submit(with_own_connection, act)


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """Do all of `acts` at the same moment; give what each returned or raised."""
    barrier = threading.Barrier(len(acts))

    def together(act: Callable[[], Any]) -> Any:
        connection.ensure_connection()  # not while the others already act
        barrier.wait(timeout=LIMIT_SECONDS)
        try:
            return act()
        except Exception as error:  # noqa: BLE001 (what it raised is what it gives)
            return error

    with beside() as run:
        futures = [run(lambda act=act: together(act)) for act in acts]  # type: ignore[misc]
        return [future.result(timeout=LIMIT_SECONDS) for future in futures]


def blocked() -> int:
    """How many other connections of this database wait for a lock."""
    with connection.cursor() as cursor:
        # Inside a transaction the view is looked at once, and remembered.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return int(cursor.fetchone()[0])


def wait_until_blocked(*acts: Future[Any]) -> None:
    """Wait until each of `acts` waits for a lock; without any, until somebody does.

    An act that is over without having waited fails the test at once: it never will.
    """

    def all_wait() -> bool:
        unblocked = [act for act in acts if act.done()]
        assert not unblocked, f"it did not wait for a lock: {unblocked}"
        return blocked() >= max(1, len(acts))

    wait_for(all_wait, f"{max(1, len(acts))} others wait for a lock")


def in_rounds(number: int, *acts: Callable[[int], Any]) -> None:
    """Do all of `acts` at the same moment, `number` times, each on one connection of its own.

    Many rounds a second: nothing is set up between them. What an act raises ends them all.
    """
    barrier = threading.Barrier(len(acts))

    def all_rounds(act: Callable[[int], Any]) -> None:
        try:
            for place in range(number):
                barrier.wait(timeout=LIMIT_SECONDS)
                act(place)
        except BaseException:
            barrier.abort()
            raise

    with beside() as run:
        futures = [run(lambda act=act: all_rounds(act)) for act in acts]  # type: ignore[misc]
        for future in futures:
            future.result(timeout=LIMIT_SECONDS + number)
