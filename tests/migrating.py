"""Runs of several versions, each where a test needs it, and small workflows for them."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.db.models.functions import Now

from reconciliation.models import AuditEntry, Hold, Operation
from tests.claiming import acts
from tests.factories import advanced, tenant
from tests.versions import NAME
from workflows.core.definitions import Child, Workflow
from workflows.models import Attempt, Run
from workflows.services.run_view import RunView
from workflows.services.runs import start

FLOW = "tests.small"


def first_run(order: str = "ORD-7001") -> Run:
    """A run of the first version that nobody has taken yet."""
    return start(NAME, {"order": order}, tenant=tenant(), version=1)


def asleep(order: str = "ORD-7001") -> Run:
    """A run of the first version that has written and sleeps at `settled`."""
    run = advanced(first_run(order))
    assert (run.state, run.step) == ("waiting", "settled"), run.failure
    return run


def ready_at(step: str, passed: list[str]) -> Run:
    """A run of version 1 at `step`, with an output for each step that it has passed."""
    run = start(FLOW, {}, tenant=tenant(), version=1)
    visits: dict[str, int] = {}
    for fence, name in enumerate(passed, start=1):
        visits[name] = visits.get(name, 0) + 1
        Attempt.objects.create(
            run=run,
            step=name,
            visit=visits[name],
            number=1,
            worker=uuid4(),
            fence=fence,
            claimed_at=Now(),
            ended_at=Now(),
            state="committed",
            output=f"{name} {visits[name]}",
            output_form="plain",
        )
    Run.objects.filter(pk=run.pk).update(step=step, fence=len(passed))
    run.refresh_from_db()
    return run


def everything() -> list[Any]:
    """Every row that a migration could touch."""
    return [
        list(model.objects.order_by("pk").values())  # type: ignore[attr-defined]
        for model in (Run, Attempt, Operation, Hold, AuditEntry)
    ]


# --- small workflows --------------------------------------------------------------------------


def small(
    version: int,
    *,
    named: str = "act",
    last: str = "after",
    from_version: int = 1,
    sensitive: bool = False,
    on_failure: Any = "fail",
    **declared: Any,
) -> Workflow:
    """A step that does what the test says, and one that gives its output.

    Renamed to `done`, the first one stands beside a step of its own name that comes before it.
    """
    flow = Workflow(FLOW, version=version)
    steps = dict(declared.get("steps", {}))

    def act(run: RunView) -> Any:
        return acts["act"](run)

    def after(run: RunView) -> Any:
        return run.output(named)

    act.__name__, after.__name__ = steps.get("act", named), last
    named = act.__name__
    flow.step(sensitive=sensitive, on_failure=on_failure)(act)
    flow.step()(after)
    if version > 1:
        flow.migrates(from_version=from_version, **declared)
    return flow


def changed_in_place(version: int) -> Workflow:
    """The same version without its last step."""
    flow = Workflow(FLOW, version=version)

    @flow.step()
    def act(run: RunView) -> Any: ...

    return flow


def family(version: int, **declared: Any) -> Workflow:
    """A group of `left` and `right`, then `spawn`, which starts a run, then `after`."""
    flow = Workflow("tests.family", version=version)

    @flow.step()
    def left(run: RunView) -> int:
        return 1

    @flow.step()
    def right(run: RunView) -> int:
        return 2

    flow.parallel(left, right)

    @flow.children()
    def spawn(run: RunView) -> list[Child]:
        return [Child(FLOW, {})]

    @flow.step()
    def after(run: RunView) -> list[int]:
        return [run.output("left"), run.output("right")]

    if version > 1:
        flow.migrates(from_version=1, **declared)
    return flow
