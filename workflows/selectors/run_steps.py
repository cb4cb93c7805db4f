"""The steps that a run can pass: those of the main line, or of its branch of a parallel group."""

from __future__ import annotations

from dataclasses import dataclass

from workflows.core.definitions import Workflow
from workflows.models import Run
from workflows.registry import registry


@dataclass(frozen=True)
class StepSeen:
    """A step as a page needs it, also of a version that this process does not have."""

    name: str
    title: str
    kind: str = "step"


def workflow_of(run: Run) -> Workflow | None:
    """The version that the run keeps; None when this process does not have it."""
    known = registry.has(run.workflow, run.version)
    return registry.get(run.workflow, run.version) if known else None


def line_of(workflow: Workflow, step: str) -> list[str]:
    """The names of the steps in the line that `step` is in, in order."""
    track = workflow.track_of(step)
    if track is not None:
        return list(workflow.steps[track.group].branches[track.index])
    return [name for name in workflow.steps if workflow.track_of(name) is None]


def step_names(run: Run) -> list[str]:
    """The steps that the run can pass, or only its own when this process does not know them."""
    workflow = workflow_of(run)
    return line_of(workflow, run.step) if workflow else [run.step]


def place_of(run: Run) -> tuple[int, int]:
    """The number of the present step, from 1, and of how many; 0 when its workflow lacks it."""
    names = step_names(run)
    return (names.index(run.step) + 1 if run.step in names else 0, len(names))
