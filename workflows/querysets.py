"""The only two ways a run's state changes outside the hot statements: `move` and its guard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from django.db import models
from django.db.models.functions import Now

from workflows.core.states import RUN_TRANSITIONS, RunState, ensure_legal

if TYPE_CHECKING:
    from workflows.models.run import Run


class RunQuerySet(models.QuerySet["Run"]):
    def unchanged(self, run: Run) -> Self:
        """The row, if it is still in the state and under the fence that the caller decided on."""
        return self.filter(pk=run.pk, state=run.state, fence=run.fence)

    def move(self, run: Run, target: RunState, **changes: Any) -> bool:
        """Move `run` to `target`; False when it was moved by somebody else meanwhile.

        Clears the lease and sets `finished_at` as the state demands, so that a caller cannot
        forget it. The given object is not changed.
        """
        ensure_legal(RUN_TRANSITIONS, RunState(run.state), target)
        if target is not RunState.RUNNING:
            changes.update(lease_owner=None, lease_expires_at=None)
        if target.is_final:
            changes.update(finished_at=Now())
            # Something of it may have to be purged some day: the purge looks, and says when.
            changes.setdefault("purge_at", Now())
        if run.state == RunState.HELD:
            changes.update(end_seen_at=None)  # what comes of it is another event for its parent
        if target is RunState.READY:
            changes.setdefault("ready_at", Now())
            changes.update(hinted_at=None, wake_at=None)
        return self.unchanged(run).update(state=target, **changes) == 1
