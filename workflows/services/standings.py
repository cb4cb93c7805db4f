"""Where runs stand, with what hangs on it, for whether they may move to a later version.

A bounded number of queries, whatever the number of runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import F, Max, QuerySet

from workflows.core.definitions import Track, Workflow
from workflows.core.standing import Standing
from workflows.core.states import RunState
from workflows.models import Attempt, Run
from workflows.registry import registry
from workflows.services.settling import operations_of

Into = Mapping[str, Workflow]
"""The version to which the runs of each workflow would move, by its name."""


def with_parents(runs: QuerySet[Run]) -> QuerySet[Run]:
    """`runs` as `standings_of` takes them."""
    return runs.select_related("parent")


def standings_of(runs: Sequence[Run], into: Into, now: datetime) -> dict[UUID, Standing]:
    """Gather what counts for each of `runs`, all unfinished and read together with their parents.

    Args:
        now: the database's time, which the leases are compared with.
    """
    ids = [run.pk for run in runs]
    passed = passed_by(ids)
    waiting = parents_at_work(ids)
    beside = passed_beside(runs, into)
    operations = operations_of(ids)
    return {
        run.pk: Standing(
            workflow=run.workflow,
            version=run.version,
            state=RunState(run.state),
            step=run.step,
            visit=run.visit,
            fence=run.fence,
            reason=(run.failure or {}).get("reason", ""),
            leased=run.lease_expires_at is not None and run.lease_expires_at > now,
            cancelling=run.cancel_asked_at is not None,
            group=group_of(run, into),
            has_children=run.pk in waiting,
            operations=tuple(operations.get(run.pk, ())),
            passed=passed.get(run.pk, {}),
            beside=beside.get(run.pk, frozenset()),
            known=known_steps(run),
        )
        for run in runs
    }


def known_steps(run: Run) -> frozenset[str] | None:
    if not registry.has(run.workflow, run.version):
        return None
    return frozenset(registry.get(run.workflow, run.version).steps)


def passed_by(runs: Collection[UUID]) -> dict[UUID, dict[str, int]]:
    """The latest visit of each step that has an output, by run."""
    rows = Attempt.objects.outputs().filter(run__in=runs).values_list("run_id", "step")
    found: dict[UUID, dict[str, int]] = {}
    for run, step, visit in rows.annotate(latest=Max("visit")).order_by():
        found.setdefault(run, {})[step] = visit
    return found


def parents_at_work(runs: Collection[UUID]) -> set[UUID]:
    """Those of `runs` that have started runs at the step and visit where they stand."""
    here = Run.objects.filter(
        parent__in=runs, parent_step=F("parent__step"), parent_visit=F("parent__visit")
    )
    return set(here.values_list("parent_id", flat=True).distinct())


# --- parallel groups --------------------------------------------------------------------------


def group_of(run: Run, into: Into) -> str:
    """The parallel group whose branch `run` is: such a run is of its parent's own workflow.

    Where nobody here knows the step that has started it, it is taken for one.
    """
    parent = run.parent
    if parent is None or parent.workflow != run.workflow:
        return ""
    may_be_group = kind_of(parent, run.parent_step, into) in ("parallel", "")
    return run.parent_step if may_be_group else ""


def kind_of(run: Run, step: str, into: Into) -> str:
    """The kind of a step of the run's version, or else of what it becomes; empty: not known."""
    if registry.has(run.workflow, run.version):
        known = registry.get(run.workflow, run.version).steps.get(step)
        return known.kind if known else ""
    later = into[run.workflow]
    migration = later.migration_from(run.version)
    heir = migration.position(step) if migration else None
    return later.steps[heir].kind if heir else ""


def passed_beside(runs: Sequence[Run], into: Into) -> dict[UUID, frozenset[tuple[Track, str]]]:
    """The steps with an output in the branches of groups that each of `runs` has passed."""
    by_id = {run.pk: run for run in runs}
    same_workflow = Run.objects.filter(parent__in=by_id, workflow=F("parent__workflow"))
    branches: dict[UUID, tuple[UUID, Track]] = {}
    for child in same_workflow.only("parent_id", "parent_step", "parent_index"):
        assert child.parent_id is not None
        assert child.parent_index is not None
        if kind_of(by_id[child.parent_id], child.parent_step, into) in ("parallel", ""):
            branches[child.pk] = (child.parent_id, Track(child.parent_step, child.parent_index))
    found: dict[UUID, set[tuple[Track, str]]] = {}
    for branch, steps in passed_by(branches).items():
        parent, track = branches[branch]
        found.setdefault(parent, set()).update((track, step) for step in steps)
    return {run: frozenset(steps) for run, steps in found.items()}
