"""Celery tasks of recovery: each only wakes a service, may run twice, late or never."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task
from django.db import close_old_connections

from reconciliation.selectors.letters import write
from reconciliation.services.bulk import carry_out
from reconciliation.services.delivering import deliver_due
from reconciliation.services.reconcile import reconcile as reconcile_operation


@shared_task(name="reconciliation.tasks.reconcile")
def reconcile(operation: str) -> None:
    """Look at an operation that is due."""
    close_old_connections()
    reconcile_operation(UUID(operation))


@shared_task(name="reconciliation.tasks.carry_out_bulk")
def carry_out_bulk(action: str) -> None:
    """Do the next items of a bulk action."""
    close_old_connections()
    carry_out(UUID(action))


@shared_task(name="reconciliation.tasks.deliver")
def deliver(message: str) -> None:
    """Deliver a message that is due, and then what else is."""
    close_old_connections()
    deliver_due(UUID(message), write)
