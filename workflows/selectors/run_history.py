"""The rows that a run page is drawn from: three queries, and never more than the page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Case, F, Func, IntegerField, JSONField, Value, When
from django.db.models.functions import Coalesce

from workflows.models import Attempt, Run, StepOutput
from workflows.registry import registry
from workflows.selectors.workers import worker_names

# A run that loops or is tried for days has more; the newest tell what matters, and the log pages.
ATTEMPTS_SHOWN = 200
OUTPUTS_SHOWN = 100
# In bytes as stored. Larger outputs are said to be there; reading them all would be megabytes.
OUTPUT_READ = 8 * 1024


@dataclass(frozen=True)
class StepSeen:
    """A step as the page needs it, also of a version that this process does not have."""

    name: str
    title: str
    kind: str = "step"


@dataclass(frozen=True)
class History:
    """A run and what became of it. Attempts by ascending fence, outputs as they were committed."""

    run: Run
    steps: Sequence[StepSeen]
    attempts: Sequence[Attempt]
    outputs: Sequence[StepOutput]
    workers: Mapping[UUID, str]

    def worker(self, attempt: Attempt) -> str:
        return self.workers.get(attempt.worker, "")

    @cached_property
    def committed(self) -> frozenset[UUID]:
        """The attempts that left an output."""
        return frozenset(output.attempt_id for output in self.outputs)

    @cached_property
    def done(self) -> frozenset[str]:
        """The steps that have an output."""
        return frozenset(output.step for output in self.outputs)

    def of_step(self, name: str) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.step == name]

    @property
    def number(self) -> int:
        """Of the present step, from 1; 0 when its workflow has it no more."""
        names = [step.name for step in self.steps]
        return names.index(self.run.step) + 1 if self.run.step in names else 0


def history_of(run: Run, *, payloads: bool, before: datetime | None = None) -> History:
    """Return the newest attempts and outputs, or those that began before `before`."""
    attempts = Attempt.objects.filter(run=run)
    if before is not None:
        attempts = attempts.filter(claimed_at__lt=before)
    newest = list(attempts.order_by("-fence")[:ATTEMPTS_SHOWN])
    return History(
        run=run,
        steps=steps_of(run),
        attempts=newest[::-1],
        outputs=outputs_of(run, payloads=payloads),
        workers=worker_names({run.lease_owner, *(attempt.worker for attempt in newest)}),
    )


def steps_of(run: Run) -> list[StepSeen]:
    if not registry.has(run.workflow, run.version):
        return [StepSeen(run.step, run.step)]
    steps = registry.get(run.workflow, run.version).steps.values()
    return [StepSeen(step.name, step.title, step.kind) for step in steps]


def outputs_of(run: Run, *, payloads: bool) -> Sequence[StepOutput]:
    """The outputs, without their content where the reader may not see it or it is large."""
    rows = StepOutput.objects.filter(run=run).select_related("attempt").defer("value")
    stored = Func(F("value"), function="pg_column_size", output_field=IntegerField())
    size = Coalesce(stored, 0)
    content: Any = Value(None, output_field=JSONField())
    if payloads:
        content = Case(When(size__lte=OUTPUT_READ, then=F("value")), output_field=JSONField())
    newest = rows.annotate(size=size).annotate(content=content).order_by("-id")
    return list(newest[:OUTPUTS_SHOWN])[::-1]
