"""Celery tasks of the execution record: each only wakes a service, may run twice, late or never."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task
from django.db import close_old_connections

from workflows.services.executor import work_on
from workflows.services.ownership import this_process


@shared_task(name="workflows.tasks.advance")
def advance(run: str) -> None:
    """Take a run as far as it goes now, and then what else is due."""
    close_old_connections()
    work_on(UUID(run), this_process())
