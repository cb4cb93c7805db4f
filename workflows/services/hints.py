"""Messages that say "look at this": published after commit, and nothing depends on them.

A hint that is lost, doubled or late changes nothing (promise P10): the sweep finds what is due in
the database. So a broker that is away is logged and otherwise ignored here.
"""

from __future__ import annotations

from uuid import UUID

import structlog
from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

log = structlog.get_logger(__name__)


def run_is_ready(run: UUID) -> None:
    """Hint, after the present transaction commits, that `run` may be claimed."""
    transaction.on_commit(lambda: send("workflows.tasks.advance", run))


def send(task: str, subject: UUID) -> bool:
    """Publish a hint now; False when the broker is away, which the next sweep makes good."""
    try:
        current_app.send_task(task, args=[str(subject)])
    except (OperationalError, ConnectionError) as error:
        log.warning("hint.lost", task=task, subject=str(subject), error=type(error).__name__)
        return False
    return True
