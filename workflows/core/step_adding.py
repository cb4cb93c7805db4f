"""The steps of a workflow, and how each kind's decorator adds one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from workflows.core.errors import InvalidDefinition
from workflows.core.step_checks import check_step, place_of, title_of
from workflows.core.steps import Step, StepFunction, StepOptions, Target, name_of, targets_in

Decorator = Callable[[StepFunction], StepFunction]


class Steps:
    """The steps by name, in the order written."""

    name: str
    steps: dict[str, Step]

    def _adder(
        self,
        kind: str,
        output_of: Callable[[StepFunction, str], Any],
        **options: Unpack[StepOptions],
    ) -> Decorator:
        """Return a decorator that adds a step of `kind`.

        Args:
            output_of: returns the type of the output, given the function and its place, or
                refuses the function.
        """

        def add(function: StepFunction) -> StepFunction:
            place = place_of(function)
            self._add(
                Step(
                    name=function.__name__,
                    kind=kind,
                    function=function,
                    returns=output_of(function, place),
                    place=place,
                    title=title_of(function),
                    **options,
                )
            )
            return function

        return add

    def _add(self, step: Step) -> None:
        check_step(step)
        if step.name in self.steps:
            raise InvalidDefinition(
                f"{step.place}: step {step.name!r} is already defined at "
                f"{self.steps[step.name].place}"
            )
        self.steps[step.name] = step

    def _check_own(self, branch: Target | Sequence[Target], place: str) -> None:
        """Refuse a function in `branch` that is no step of this workflow."""
        for target in targets_in(branch):
            known = self.steps.get(name_of(target))
            if callable(target) and (known is None or known.function != target):
                raise InvalidDefinition(
                    f"{place}: {name_of(target)!r} is no step of workflow {self.name!r} yet: "
                    "decorate it first, or give its name"
                )
