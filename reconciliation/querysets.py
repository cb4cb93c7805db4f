"""How an operation's state changes: one guarded update, whose row count is the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.functions import Now

from reconciliation.core.states import OPERATION_TRANSITIONS, OperationState, ensure_legal

if TYPE_CHECKING:
    from reconciliation.models.operation import Operation


class OperationQuerySet(models.QuerySet["Operation"]):
    def move(self, operation: Operation, target: OperationState, **changes: Any) -> bool:
        """Move `operation` to `target`; False when somebody moved it meanwhile.

        On success the given object carries the new state, so that one service can move it twice.
        """
        current = OperationState(operation.state)
        if current is target:
            return self.filter(pk=operation.pk, state=current).update(state=target, **changes) == 1
        ensure_legal(OPERATION_TRANSITIONS, current, target)
        if target.is_settled:
            changes.update(settled_at=Now(), due_at=None)
        moved = self.filter(pk=operation.pk, state=current).update(state=target, **changes) == 1
        if moved:
            operation.state = target
        return moved
