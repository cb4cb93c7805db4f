"""What a step's code is given: the run's input and the outputs of earlier steps, typed.

Reading is lazy: only those outputs that a step asks for are fetched, so that going on after a
restart costs the same however long the run is.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from workflows.core.errors import UsageError
from workflows.core.values import from_json
from workflows.models import StepOutput
from workflows.services.claims import Claim


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
    def input(self) -> Any:
        """The input, as the type that the workflow declares."""
        return from_json(self._claim.input, self._claim.workflow.input, what="input")

    def output(self, step: str) -> Any:
        """Return the latest output of `step`, as the type that the step declares.

        Raises:
            UsageError: the workflow has no such step, or it has no output yet.
        """
        if step not in self._outputs:
            self._outputs[step] = self._read(step)
        return self._outputs[step]

    def _read(self, step: str) -> Any:
        definition = self._claim.workflow.steps.get(step)
        if definition is None:
            raise UsageError(f"workflow {self._claim.workflow.name} has no step {step!r}")
        row = (
            StepOutput.objects.filter(run_id=self._claim.run, step=step).order_by("-visit").first()
        )
        if row is None:
            raise UsageError(f"step {step!r} has no output yet")
        # What a write gives is its receipt, not the intent that its function is annotated with.
        annotation = Any if definition.kind == "write" else definition.returns
        return from_json(row.value, annotation, what=f"output of step {step}")
