"""Celery's listener of a worker; a broker that goes away while it comes back does not end it."""

from __future__ import annotations

from typing import Any

from celery.worker import consumer
from kombu.exceptions import OperationalError


class Consumer(consumer.Consumer):
    """Takes every loss of the broker for one.

    A connection that is lost again while it is made is raised as an error of kombu's own, which
    Celery does not know as one of the broker's: it would end the worker.
    """

    connection_errors: tuple[type[Exception], ...]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.connection_errors = (*self.connection_errors, OperationalError)
