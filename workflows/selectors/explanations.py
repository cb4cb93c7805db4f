"""Why runs are where they are (promise P12): four queries, whatever the number of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Count, F, Window
from django.db.models.functions import Now, Rank

from workflows.core.explain import Explanation, RunFacts, explain
from workflows.core.states import RunState
from workflows.models import Attempt, Run, Worker
from workflows.registry import registry
from workflows.selectors.workers import live_workers, worker_names
from workflows.services.clock import database_now


def explain_run(run: Run, *, owner: str = "") -> Explanation:
    """Say why the run is where it is (promise P12)."""
    return explain(facts_about(run, owner=owner), database_now())


def explain_runs(runs: Sequence[Run], now: datetime) -> dict[UUID, Explanation]:
    """Say it of many at `now`, the database's time."""
    return {pk: explain(facts, now) for pk, facts in facts_of(runs, {}).items()}


def facts_about(run: Run, *, owner: str = "") -> RunFacts:
    """Gather what `explain` needs, whatever the run has been through."""
    return facts_of([run], {run.pk: owner})[run.pk]


def facts_of(runs: Sequence[Run], owners: Mapping[UUID, str]) -> dict[UUID, RunFacts]:
    alive = list(live_workers()[:200])
    holders = worker_names(run.lease_owner for run in runs)
    tries = tries_of(runs)
    ahead = runs_ahead(runs)
    return {
        run.pk: facts(
            run,
            alive=alive,
            worker=holders.get(run.lease_owner, "") if run.lease_owner else "",
            attempts=tries.get(run.pk, 0),
            ahead=ahead.get(run.pk, 0),
            owner=owners.get(run.pk, ""),
        )
        for run in runs
    }


def facts(
    run: Run, *, alive: Sequence[Worker], worker: str, attempts: int, ahead: int, owner: str
) -> RunFacts:
    names = step_names(run)
    failure = run.failure or {}
    return RunFacts(
        state=RunState(run.state),
        step=run.step,
        number=names.index(run.step) + 1 if run.step in names else 0,
        steps=len(names),
        workflow=run.workflow,
        version=run.version,
        ready_at=run.ready_at,
        lease_expires_at=run.lease_expires_at,
        worker=worker,
        failure=failure.get("message", ""),
        attempts=attempts,
        workers_with_version=sum([run.workflow, run.version] in each.workflows for each in alive),
        workers_alive=len(alive),
        ahead=ahead,
        waits_for=failure.get("message", ""),
        paused=failure.get("reason") == "dispatch",
        owner=owner,
    )


def step_names(run: Run) -> list[str]:
    """The steps of the run's version, or only its own when this process does not have it."""
    if registry.has(run.workflow, run.version):
        return list(registry.get(run.workflow, run.version).steps)
    return [run.step]


def tries_of(runs: Sequence[Run]) -> dict[UUID, int]:
    """How often each run's present step has been tried."""
    here = Attempt.objects.filter(
        run__in=[run.pk for run in runs], step=F("run__step"), visit=F("run__visit")
    )
    counted = here.values("run_id").annotate(tries=Count("pk")).values_list("run_id", "tries")
    return dict(counted)


def runs_ahead(runs: Sequence[Run]) -> dict[UUID, int]:
    """How many runs became ready before each of `runs` that is ready; no query for none."""
    ready = [run.pk for run in runs if run.state == RunState.READY]
    if not ready:
        return {}
    queued = Run.objects.filter(state=RunState.READY, ready_at__lte=Now())
    ranked = queued.annotate(rank=Window(Rank(), order_by="ready_at")).filter(pk__in=ready)
    return {pk: rank - 1 for pk, rank in ranked.values_list("pk", "rank")}
