"""A run as programs read it: where it is, and nothing that it was given or has made."""

from __future__ import annotations

from typing import Any

from workflows.models import Run


def run_line(run: Run) -> dict[str, Any]:
    return {
        "id": run.pk,
        "workflow": run.workflow,
        "version": run.version,
        "tenant": run.tenant.slug,
        "state": run.state,
        "step": run.step,
        "start_key": run.start_key,
        "parent": run.parent_id,
        "paused_by": run.paused_by,
        "cancel_asked_by": run.cancel_asked_by,
        "started_at": run.created_at.isoformat(),
        "ended_at": run.finished_at.isoformat() if run.finished_at else None,
    }
