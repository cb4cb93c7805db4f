"""Reading the execution record: who works, and why a run is not finished."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db.models import QuerySet
from django.db.models.functions import Now

from workflows.core.explain import Explanation, RunFacts, explain
from workflows.core.states import RunState
from workflows.models import Run, Worker
from workflows.registry import registry
from workflows.services.clock import database_now


def live_workers() -> QuerySet[Worker]:
    """The worker processes that were seen within one lease, the latest first."""
    lately = Now() - timedelta(seconds=settings.ROMULUS_LEASE_SECONDS)
    return Worker.objects.filter(seen_at__gt=lately).order_by("-seen_at")


def live_worker_pids() -> set[int]:
    return set(live_workers().values_list("pid", flat=True))


def facts_about(run: Run, *, owner: str = "") -> RunFacts:
    """Gather what `explain` needs: four queries, whatever the run has been through."""
    alive = list(live_workers()[:200])
    pair = [run.workflow, run.version]
    names = step_names(run)
    holder = Worker.objects.filter(pk=run.lease_owner).first() if run.lease_owner else None
    attempts = run.attempts.filter(step=run.step, visit=run.visit).count()
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
        worker=str(holder or ""),
        failure=failure.get("message", ""),
        attempts=attempts,
        workers_with_version=sum(pair in worker.workflows for worker in alive),
        workers_alive=len(alive),
        ahead=runs_ahead(run),
        waits_for=failure.get("message", ""),
        paused=failure.get("reason") == "dispatch",
        owner=owner,
    )


def step_names(run: Run) -> list[str]:
    """The steps of the run's version, or only its own when this process does not have it."""
    if registry.has(run.workflow, run.version):
        return list(registry.get(run.workflow, run.version).steps)
    return [run.step]


def runs_ahead(run: Run) -> int:
    """How many runs became ready before this one; 0 for one that is not ready."""
    if run.state != RunState.READY:
        return 0
    return Run.objects.filter(
        state=RunState.READY, ready_at__lt=run.ready_at, ready_at__lte=Now()
    ).count()


def explain_run(run: Run, *, owner: str = "") -> Explanation:
    """Say why the run is where it is (promise P12)."""
    return explain(facts_about(run, owner=owner), database_now())
