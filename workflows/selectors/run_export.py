"""The runs of a list as rows of a file, newest first."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import QuerySet

from workflows.core.tables import Row
from workflows.models import Run
from workflows.selectors.batches import in_batches

COLUMNS = (
    *("run", "workflow", "version", "tenant", "state", "step", "visit", "start_key", "labels"),
    *("parent", "started_at", "finished_at", "reason", "message"),
)


def run_rows(runs: QuerySet[Run], limit: int) -> Iterator[Row]:
    """`runs`, those that the reader may see, `limit` of them at most. What they were started with
    is not among it."""
    shown = runs.select_related("tenant").defer("input")
    for batch in in_batches(shown, "-pk", limit=limit):
        for run in batch:
            yield row_of(run)


def row_of(run: Run) -> Row:
    failure = run.failure or {}
    return (
        *(run.pk, run.workflow, run.version, run.tenant.slug, run.state, run.step, run.visit),
        *(run.start_key, run.labels, run.parent_id, run.created_at, run.finished_at),
        *(failure.get("reason"), failure.get("message")),
    )
