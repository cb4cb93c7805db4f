"""Writes whose approval lapsed before they were sent: approved again, they go on by themselves."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

import structlog
from django.db.models.functions import Now

from reconciliation.core.facts import HoldReason
from reconciliation.core.states import HoldState, OperationState
from reconciliation.models import Hold, Operation
from reconciliation.services.audit import add_entry
from reconciliation.services.holds import ensure_moved
from workflows.core.states import RunState
from workflows.models import Run
from workflows.services import hints

log = structlog.get_logger(__name__)


class Renewals:
    """For `workflows.services.renewals`."""

    def wanted(self, roots: Collection[UUID]) -> set[UUID]:
        """Those of the proposals whose write is held because its authorisation lapsed."""
        held = Hold.objects.filter(
            state=HoldState.OPEN,
            reason=HoldReason.AUTHORISATION_LAPSED,
            operation__proposal__root__in=roots,
        )
        return set(held.values_list("operation__proposal__root", flat=True))

    def resume(self, root: UUID, by: str) -> None:
        """Close the hold and let a worker go on: it checks everything once more."""
        held = Hold.objects.filter(
            state=HoldState.OPEN,
            reason=HoldReason.AUTHORISATION_LAPSED,
            operation__proposal__root=root,
        )
        found = held.values_list("operation__run_id", flat=True).first()
        if found is None:
            return
        run = Run.objects.select_for_update(no_key=True).get(pk=found)
        locked = held.filter(operation__run=run).select_for_update(
            of=("self", "operation"), no_key=True
        )
        hold = locked.select_related("operation").first()
        if hold is None or hold.operation is None:
            return  # it was decided meanwhile
        Hold.objects.filter(pk=hold.pk).update(state=HoldState.CLOSED, closed_at=Now())
        sent = hold.operation.transmissions.exists()
        target = OperationState.UNKNOWN if sent else OperationState.INTENDED
        ensure_moved(Operation.objects.move(hold.operation, target))
        detail = {"hold": str(hold.pk), "approved_by": by}
        add_entry("system", "approved again", f"operation:{hold.operation_id}", detail)
        if run.state == RunState.HELD:
            Run.objects.move(run, RunState.READY, failure=None, failures=0, losses=0)
            hints.run_is_ready(run.pk)
