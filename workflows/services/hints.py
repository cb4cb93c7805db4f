"""Messages that say "look at this": published after commit, and nothing depends on them.

A hint that is lost, doubled or late changes nothing (promise P10): the sweep finds what is due in
the database. So a broker that is away is logged and otherwise ignored here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import structlog
from celery import current_app
from django.db import transaction

log = structlog.get_logger(__name__)

HINTS_AT_ONCE = 20
# Until a broker that was away is tried again: no longer than until the next sweep.
REST_SECONDS = 1.0
# For a broker that confirms what it was sent.
CONFIRM_SECONDS = 5.0


def run_is_ready(run: UUID) -> None:
    """Hint, after the present transaction commits, that `run` may be claimed."""
    transaction.on_commit(lambda: send("workflows.tasks.advance", run))


def runs_are_ready(runs: Sequence[UUID]) -> None:
    """Hint, after the present transaction commits, that `runs` may be claimed.

    A few messages are enough: whoever takes one goes on with what else is due, and the sweep finds
    the rest. So a call that starts thousands is not held up by its messages.
    """
    for run in runs[:HINTS_AT_ONCE]:
        run_is_ready(run)


def work_is_due(run: UUID) -> None:
    """Hint that more than `run` is due: whoever takes the message looks for itself."""
    send("workflows.tasks.advance", run)


def send(task: str, subject: UUID) -> bool:
    """Publish a hint now; False when the broker is away, which a later sweep makes good.

    What has been committed stands, whatever the broker's client raises. A broker that was away a
    moment ago is not tried again at once: whoever has many hints would wait for each of them.
    """
    global _away_since, _tried_at
    if _away_since is not None and time.monotonic() < _tried_at + REST_SECONDS:
        return False
    try:
        # A connection that fails is replaced; a producer's would be used again as it is.
        connection: Any
        with current_app.pool.acquire(block=True) as connection:
            current_app.send_task(
                task, args=[str(subject)], connection=connection, confirm_timeout=CONFIRM_SECONDS
            )
    except Exception as error:  # noqa: BLE001 (a hint is never worth more than what it is about)
        _tried_at = time.monotonic()
        _away_since = _away_since or _tried_at
        log.warning("hint.lost", task=task, subject=str(subject), error=type(error).__name__)
        return False
    _away_since = None
    return True


def broker_away() -> float | None:
    """For how many seconds this process's messages have not reached the broker; None: they do."""
    return None if _away_since is None else time.monotonic() - _away_since


_away_since: float | None = None
_tried_at = 0.0
