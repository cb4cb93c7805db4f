"""How runs of an earlier version of a workflow go on under a later one.

Without a migration a run keeps the version that it started with, and waits for a worker that has
it. With one, its position, its outputs and its input are read as the later version's. The values
are given by whoever moves a run (`workflows.services`); here is only where each belongs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from workflows.core.errors import InvalidDefinition
from workflows.core.step_checks import is_count
from workflows.core.steps import Step
from workflows.core.values import Json

Change = Callable[[Json], Json]
"""Makes a new value, in plain JSON, of an old one as it was stored."""

OutputRule = str | Change | None


@dataclass(frozen=True, slots=True)
class Migration:
    """What becomes of a run of `from_version`.

    Attributes:
        steps: the new name of each step that has another one; the others keep theirs.
        outputs: by the old step's name, where its output goes when it does not go where `steps`
            says: to the step of that name; to the step that `steps` says, changed by a function;
            or nowhere, for None.
        input: makes the new input of the old one; None leaves it.
        place: "file:line" of its declaration, for messages.
        into: the steps of the version that it belongs to.
    """

    from_version: int
    steps: Mapping[str, str]
    outputs: Mapping[str, OutputRule]
    input: Change | None
    place: str
    into: Mapping[str, Step] = field(repr=False, compare=False)

    def position(self, old_step: str) -> str | None:
        """Return where a run at `old_step` stands now, or None: this version has no such step,
        and the run cannot go on under it."""
        new = self.steps.get(old_step, old_step)
        return new if new in self.into else None

    def output(self, old_step: str, value: Json) -> tuple[str, Json] | None:
        """Return the step that the output of `old_step` belongs to now, and its new value; None
        when it is not carried over. Raises whatever the author's function raises."""
        new = self.heir(old_step)
        if new is None or new not in self.into:
            return None
        change = self.change(old_step)
        return new, change(value) if change else value

    def change(self, old_step: str) -> Change | None:
        """Return the function that changes the output of `old_step`, if one does."""
        rule = self.outputs.get(old_step)
        return rule if callable(rule) else None

    def heir(self, old_step: str) -> str | None:
        """Return the name of the step that gets the output of `old_step`, or None: nobody does."""
        if old_step in self.outputs:
            rule = self.outputs[old_step]
            if rule is None or isinstance(rule, str):
                return rule
        return self.steps.get(old_step, old_step)

    def check_version(self, version: int, others: Mapping[int, Migration]) -> None:
        """Raise `InvalidDefinition` when it leads to `version` from no earlier one, or one of the
        `others` is from the same."""
        if not is_count(self.from_version) or self.from_version >= version:
            raise InvalidDefinition(
                f"{self.place}: from_version={self.from_version!r}: a version before {version}, "
                "which is this one"
            )
        if self.from_version in others:
            raise InvalidDefinition(
                f"{self.place}: the migration from version {self.from_version} is already "
                f"declared at {others[self.from_version].place}"
            )

    def check(self) -> None:
        """Raise `InvalidDefinition` for a step that this version does not have, and for one that
        would get two outputs."""
        for old, new in self.steps.items():
            self._check_known(f"steps= turns {old!r} into", new)
        givers: dict[str, str] = {}
        for old in {**self.steps, **self.outputs}:
            new_step = self.heir(old)
            if new_step is None:
                continue
            self._check_known(f"outputs= gives the output of {old!r} to", new_step)
            if new_step in givers:
                raise InvalidDefinition(
                    f"{self.place}: {new_step!r} would get the outputs of {givers[new_step]!r} and "
                    f"of {old!r}: say in outputs= where each goes, None for nowhere"
                )
            givers[new_step] = old

    def _check_known(self, said: str, name: str) -> None:
        if name not in self.into:
            raise InvalidDefinition(
                f"{self.place}: migration from version {self.from_version}: {said} {name!r}, "
                "which this version does not have"
            )


@dataclass(frozen=True, slots=True)
class Chain:
    """Two migrations one after the other, read as one: no run is ever of the version between."""

    first: Migration | Chain
    then: Migration

    @property
    def from_version(self) -> int:
        return self.first.from_version

    @property
    def into(self) -> Mapping[str, Step]:
        return self.then.into

    @property
    def input(self) -> Change | None:
        return both(self.first.input, self.then.input)

    def position(self, old_step: str) -> str | None:
        """As `Migration.position`; None too for a step that the version between does not have."""
        between = self.first.position(old_step)
        return None if between is None else self.then.position(between)

    def change(self, old_step: str) -> Change | None:
        between = self.heir_between(old_step)
        later = self.then.change(between) if between is not None else None
        return both(self.first.change(old_step), later)

    def heir(self, old_step: str) -> str | None:
        between = self.heir_between(old_step)
        return None if between is None else self.then.heir(between)

    def heir_between(self, old_step: str) -> str | None:
        between = self.first.heir(old_step)
        return between if between in self.first.into else None


def both(first: Change | None, then: Change | None) -> Change | None:
    """One function that does what the two do, one after the other."""
    if first is None or then is None:
        return first or then
    return lambda value: then(first(value))
