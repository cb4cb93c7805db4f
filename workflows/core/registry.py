"""The workflows that a process has, by name and version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workflows.core.errors import InvalidDefinition, UnknownWorkflow
from workflows.core.steps import Step

if TYPE_CHECKING:
    from workflows.core.definitions import Workflow

Claimable = tuple[list[str], list[int], list[str], list[float]]


class Registry:
    """The workflows that this process has.

    Filled when the process starts, and read for every claim: what the engine asks for often is
    worked out when a workflow is added. The lists are shared; callers leave them as they are.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], Workflow] = {}
        self._versions: dict[str, dict[int, Workflow]] = {}
        self._steps: list[tuple[Workflow, Step]] = []
        self._pairs: list[tuple[str, int]] = []
        self._claimable: Claimable = ([], [], [], [])

    def add(self, workflow: Workflow) -> None:
        """Make `workflow` known; a step that it is given later needs this again.

        Raises:
            InvalidDefinition: it cannot work, or this name and version is taken.
        """
        workflow.check()
        taken = self._known.get((workflow.name, workflow.version))
        if taken and taken is not workflow:
            raise InvalidDefinition(
                f"{workflow.place}: {workflow.name} version {workflow.version} "
                f"is already defined at {taken.place}"
            )
        self._known[workflow.name, workflow.version] = workflow
        workflow.versions = self._versions.setdefault(workflow.name, {})
        self._versions[workflow.name][workflow.version] = workflow
        self._steps = [
            (known, step) for known in self._known.values() for step in known.steps.values()
        ]
        self._pairs = sorted(self._known)
        self._claimable = (
            [known.name for known, _ in self._steps],
            [known.version for known, _ in self._steps],
            [step.name for _, step in self._steps],
            [step.timeout.total_seconds() for _, step in self._steps],
        )

    def get(self, name: str, version: int) -> Workflow:
        """Raises `UnknownWorkflow`, naming what is known."""
        try:
            return self._known[name, version]
        except KeyError:
            raise UnknownWorkflow(
                f"no workflow {name!r} version {version} here; known: {self.summary()}"
            ) from None

    def latest(self, name: str) -> Workflow:
        """Raises `UnknownWorkflow`, naming what is known."""
        versions = [version for known, version in self._known if known == name]
        if not versions:
            raise UnknownWorkflow(f"no workflow {name!r} here; known: {self.summary()}")
        return self._known[name, max(versions)]

    def has(self, name: str, version: int) -> bool:
        return (name, version) in self._known

    def steps(self) -> list[tuple[Workflow, Step]]:
        return self._steps

    def pairs(self) -> list[tuple[str, int]]:
        """Return what is known, by name and version."""
        return self._pairs

    def claimable(self) -> Claimable:
        """Return every known step as four lists side by side, as the claim takes them: name of
        the workflow, its version, name of the step, its timeout in seconds."""
        return self._claimable

    def summary(self) -> str:
        return ", ".join(f"{name} v{version}" for name, version in self._pairs) or "none"
