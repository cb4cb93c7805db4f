"""What runs gave: the output of the last step that each has passed."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from workflows.core.values import Json
from workflows.models import Attempt, Run
from workflows.services.outputs import read_output


def result_of(run: Run) -> Json:
    """The result of a completed run; raises as `read_output` does, None when it left nothing."""
    return results_of([run.pk]).get(run.pk)


def results_of(runs: Sequence[UUID]) -> dict[UUID, Json]:
    """The results of many completed runs: one query, and one read for each large one."""
    last = Attempt.objects.outputs().filter(run__in=runs).order_by("run_id", "-fence")
    return {row.run_id: read_output(row) for row in last.distinct("run_id")}
