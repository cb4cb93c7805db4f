"""What the database itself takes back, because of another transaction: that may be tried again.

A deadlock has a victim, and of two transactions that could not have happened one after the other
one is refused. The server has then undone all of it, and says so. Of a connection that is lost at
the commit nobody can say that: it is an outage, and nothing is tried again (`failures`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import structlog
from django.db import OperationalError
from psycopg.errors import DeadlockDetected, SerializationFailure

from workflows.core.words import describe

log = structlog.get_logger(__name__)

# Who was the victim has let the others go on: seldom is anybody that a second time.
TRIES = 4

Given = TypeVar("Given")


def was_taken_back(error: OperationalError) -> bool:
    """Whether nothing of the transaction that raised `error` is committed, because of another."""
    return isinstance(error.__cause__, DeadlockDetected | SerializationFailure)


def again_if_taken_back(work: Callable[[], Given]) -> Given:
    """Do `work`, which is one whole transaction and does nothing outside of it."""
    for _ in range(TRIES - 1):
        try:
            return work()
        except OperationalError as error:
            if not was_taken_back(error):
                raise
            log.warning("transaction.taken_back", error=describe(error))
    return work()
