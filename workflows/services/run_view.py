"""What a step's code is given: the run's input and the outputs of earlier steps, typed.

Reading is lazy: only those outputs that a step asks for are fetched, so that going on after a
restart costs the same however long the run is.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from workflows.core.definitions import Step
from workflows.core.errors import UsageError
from workflows.core.values import from_json
from workflows.models import Attempt, Run
from workflows.services.claims import Claim
from workflows.services.outputs import read_output


class RunView:
    """The run as its steps see it."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._outputs: dict[str, Any] = {}

    @property
    def id(self) -> UUID:
        return self._claim.run

    @property
    def attempt(self) -> int:
        """How often this step has been tried, this time included."""
        return self._claim.number

    @property
    def visit(self) -> int:
        """How often the run has come to this step, this time included."""
        return self._claim.visit

    @property
    def input(self) -> Any:
        """The input, as the type that the workflow declares."""
        return from_json(self._claim.input, self._claim.workflow.input, what="input")

    def output(self, step: str) -> Any:
        """Return the latest output of `step`, as the type that the step declares.

        Raises:
            UsageError: the workflow has no such step, it has no output yet, or it runs beside
                this one in another branch.
            OutputPurged, OutputDamaged: it was there and cannot be read any more.
        """
        if step not in self._outputs:
            self._outputs[step] = self._read(step)
        return self._outputs[step]

    def _read(self, step: str) -> Any:
        definition = self._claim.workflow.steps.get(step)
        if definition is None:
            raise UsageError(f"workflow {self._claim.workflow.name} has no step {step!r}")
        run = self._run_of(definition)
        found = Attempt.objects.outputs().filter(run_id=run, step=step) if run else None
        row = found.order_by("-visit").first() if found is not None else None
        if row is None:
            raise UsageError(f"step {step!r} has no output yet")
        return from_json(read_output(row), definition.returns, what=f"output of step {step}")

    def _run_of(self, step: Step) -> UUID | None:
        """The run that has passed `step`: this one, or where a parallel group splits another."""
        workflow, claim = self._claim.workflow, self._claim
        here, there = workflow.track_of(claim.step.name), workflow.track_of(step.name)
        if here == there:
            return claim.run
        if there is None:
            return claim.parent
        if here is not None:
            raise UsageError(f"step {step.name!r} runs beside this one, in another branch")
        branch = Run.objects.filter(
            parent=claim.run, parent_step=there.group, parent_index=there.index
        )
        return branch.order_by("-parent_visit").values_list("pk", flat=True).first()
