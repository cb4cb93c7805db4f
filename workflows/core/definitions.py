"""What an author writes: a workflow, its steps, and what each step needs.

    refund = Workflow("refund", version=3, input=RefundRequest)

    @refund.step(retries=3)
    def load_order(run) -> Order: ...

    @refund.branch(to=("create_refund", END))
    def is_owed(run) -> str: ...

    @refund.write(provider="payments")
    def create_refund(run) -> Intent: ...

Steps run in the order written; `then=` names another step to go on at, or `END`, a branch returns
the name of the next, and a wait may name one to go on at when its deadline came. What one step
cannot be is refused where it is written (`step_checks`), what the steps cannot be together at
registration (`graph`), each with file and line. Step kinds are executed by whoever registered them
(`workflows.services.kinds`); the definition only names them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from workflows.core.byte_text import Base64
from workflows.core.errors import InvalidDefinition, UsageError
from workflows.core.graph import Plan, Track, as_data, plan_of, reached, target_of
from workflows.core.migration import Chain, Change, Migration, OutputRule
from workflows.core.registry import Registry
from workflows.core.step_checks import check_retain, check_storable
from workflows.core.step_kinds import StepKinds
from workflows.core.steps import END, Child, ChildEnd, Step, calling_place
from workflows.core.waits import ReceivedEvent

__all__ = [
    "END",
    "Base64",
    "Child",
    "ChildEnd",
    "Migration",
    "ReceivedEvent",
    "Registry",
    "Step",
    "Track",
    "Workflow",
    "workflows_in",
]

WORKFLOW_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")
MAX_NAME = 200  # its column's length


@dataclass
class Workflow(StepKinds):
    """A named, versioned list of steps in code.

    Args:
        name: letters, digits and underscores, in parts separated by dots.
        version: a whole number from 1; a run keeps the version it started with.
        input: the type of the input: a pydantic model, dataclass, TypedDict or plain dict.
        retain: how long after a run's end its outputs are kept; None keeps them as long as the
            site does. A step's own `retain` goes before it.

    Raises:
        InvalidDefinition: names the file and line of what cannot work.
    """

    name: str
    version: int = 1
    input: Any = dict[str, Any]
    retain: timedelta | None = None
    steps: dict[str, Step] = field(default_factory=dict, init=False)
    migrations: dict[int, Migration] = field(default_factory=dict, init=False)
    # By number, the versions that the process has, this one among them: the registry says.
    versions: Mapping[int, Workflow] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    place: str = field(default="", init=False)
    _plan: Plan | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.place = calling_place(above=2)
        if not WORKFLOW_NAME.fullmatch(self.name) or len(self.name) > MAX_NAME:
            raise InvalidDefinition(
                f"{self.place}: workflow name {self.name!r}: use lower-case letters, digits and _, "
                f"{MAX_NAME} at most"
            )
        if self.version < 1:
            raise InvalidDefinition(f"{self.place}: version {self.version}: start at 1")
        check_retain(self.place, self.retain)
        check_storable(self.input, self.place, "an input")

    def migrates(
        self,
        *,
        from_version: int,
        steps: Mapping[str, str] | None = None,
        outputs: Mapping[str, OutputRule] | None = None,
        input: Change | None = None,
    ) -> None:
        """Let runs of an earlier version go on under this one.

            flow.migrates(
                from_version=2,
                steps={"load": "load_order"},
                outputs={"load": lambda old: {"number": old}},
            )

        Args:
            from_version: the earlier version, of the same name.
            steps: the new name of each step that has another one. A run at a step that this
                version does not have cannot go on under it.
            outputs: by the OLD step's name: the name of the step that its output belongs to now;
                or a function that makes the new output, in plain JSON, of the old one, for the
                step that `steps` says; or None, for nowhere. Without a word here an output goes
                where `steps` says, as it is.
            input: a function that makes the new input, in plain JSON, of the old one.
        """
        migration = Migration(
            from_version,
            dict(steps or {}),
            dict(outputs or {}),
            input,
            place=calling_place(above=1),
            into=self.steps,
        )
        migration.check_version(self.version, self.migrations)
        self.migrations[from_version] = migration
        self._plan = None

    def _add(self, step: Step) -> None:
        super()._add(step)
        self._plan = None

    # --- for the engine ---------------------------------------------------------------------

    def check(self) -> None:
        """Work out the order of the steps.

        Raises:
            InvalidDefinition: names the file and line of what cannot work.
        """
        self._plan = plan_of(self.name, self.place, self.steps)
        for migration in self.migrations.values():
            migration.check()

    def migration_from(self, version: int) -> Migration | Chain | None:
        """Return how runs of `version` go on under this one: by a migration of its own, or by
        those that lead here through versions that the process has too; None: by none."""
        own = self.migrations.get(version)
        if own is not None:
            return own
        for middle in sorted(self.migrations, reverse=True):
            if middle > version and middle in self.versions:
                first = self.versions[middle].migration_from(version)
                if first is not None:
                    return Chain(first, self.migrations[middle])
        return None

    @property
    def plan(self) -> Plan:
        """The order of the steps, worked out once; raises as `check` does."""
        if self._plan is None:
            self.check()
        assert self._plan is not None
        return self._plan

    @property
    def first(self) -> Step:
        return self.steps[self.plan.first]

    def after(self, step: str) -> Step | None:
        """Return the step that follows `step`, or None at the end of the run or of its branch.

        Raises:
            UsageError: it is a branch, which says by itself where it goes on, or no step.
        """
        following = self.plan.after.get(step)
        if following is None:
            raise UsageError(
                f"workflow {self.name}: {step!r} is a branch or no step; nothing follows by itself"
            )
        return self.steps[following] if following else None

    def target(self, step: str, chosen: object) -> Step | None:
        """Return the step that the branch `step` has `chosen`, or None: the end.

        Raises:
            UsageError: it chose something else; names what it may choose.
        """
        name = target_of(self.steps[step], chosen)
        return None if name == END else self.steps[name]

    def may_revisit(self, step: str) -> bool:
        """Return whether one run can come to `step` more than once."""
        return step in self.plan.loops

    def track_of(self, step: str) -> Track | None:
        """Return the branch of a parallel group that `step` is in; None for the main line."""
        return self.plan.tracks.get(step)

    def later(self, step: str) -> list[Step]:
        """Return the other steps that may come after `step`, in written order."""
        ahead = reached(self.plan.leads[step], self.plan.leads)
        return [other for name, other in self.steps.items() if name in ahead and name != step]

    @property
    def graph(self) -> list[dict[str, Any]]:
        """The steps as data, in written order, each with the names of those that can follow; a
        parallel group also with the names of each of its branches."""
        return as_data(self.steps, self.plan)


def workflows_in(namespace: Mapping[str, Any]) -> list[Workflow]:
    """Return the workflows among the names of a module, each once."""
    found: list[Workflow] = []
    for value in namespace.values():
        if isinstance(value, Workflow) and not any(value is known for known in found):
            found.append(value)
    return found
