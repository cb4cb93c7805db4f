"""Why runs are where they are (promise P12): a fixed number of queries, however many runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import accumulate
from uuid import UUID

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db.models import (
    Count,
    DateTimeField,
    Exists,
    F,
    Func,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Value,
)
from django.db.models.functions import Now

from workflows.core.explain import explain
from workflows.core.run_facts import Explanation, RunFacts, Stop, WholePause, WorkerSeen
from workflows.core.states import FINAL_RUN_STATES, RunState
from workflows.core.wait_facts import WaitFacts
from workflows.models import Pause, Run, Wait, Worker
from workflows.selectors.run_joins import Join, Place, held_children, joins_of, waits_at
from workflows.selectors.run_parts import RunParts
from workflows.selectors.run_steps import place_of
from workflows.selectors.wait_facts import give_first, looked_closer, waits_at_present, waits_of
from workflows.selectors.workers import live_workers, named
from workflows.services.clock import database_now
from workflows.services.settling import unsettled_of
from workflows.together import together

WORKERS_READ = 500


def explain_run(run: Run, parts: RunParts | None = None) -> Explanation:
    """Say why the run is where it is (promise P12); `parts` is what other apps know of it."""
    return explain(facts_about(run, parts), database_now())


def explain_runs(runs: Sequence[Run], now: datetime) -> dict[UUID, Explanation]:
    """Say it of many at `now`, the database's time."""
    return {pk: explain(facts, now) for pk, facts in facts_of(runs).items()}


@dataclass(frozen=True)
class Known:
    """What of one run was read already: its newest waits with what each got first, the newest
    first, and the names of its workers."""

    waits: Sequence[Wait]
    workers: Mapping[UUID, str]


def facts_about(run: Run, parts: RunParts | None = None, known: Known | None = None) -> RunFacts:
    """Gather what `explain` needs of one run: also whose it is, which of its runs are held, and
    what came close to what it waits for."""
    facts = facts_of([run], known)[run.pk]
    if waits_at(run) == (run.pk, run.step, run.visit):
        facts = replace(facts, held_children=held_children(run))
    if facts.wait is not None:
        facts = replace(facts, wait=looked_closer(facts.wait, run.tenant_id))
    if parts is None:
        return facts
    return replace(
        facts,
        owner=parts.owner,
        helps=parts.helps,
        pause=with_reason(facts.pause, parts.why_paused),
        cancel=with_reason(facts.cancel, parts.why_cancelled),
    )


def with_reason(stop: Stop | None, reason: str) -> Stop | None:
    return stop and replace(stop, reason=reason)


# --- gathering --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gathered:
    """What the facts of many runs are taken from."""

    workers: tuple[WorkerSeen, ...]
    holders: Mapping[UUID, str]
    ahead: dict[UUID, int]
    pauses: Sequence[Pause]
    unsettled: dict[UUID, str]
    joins: dict[Place, Join]
    waits: dict[UUID, WaitFacts]


def facts_of(runs: Sequence[Run], known: Known | None = None) -> dict[UUID, RunFacts]:
    """Gather what `explain` needs of many runs: five queries at most.

    Args:
        known: where there is one run, what was read of it.
    """
    open_runs = [run for run in runs if run.state not in FINAL_RUN_STATES]
    live = live_workers()[:WORKERS_READ]
    their = Worker.objects.filter(pk__in={run.lease_owner for run in runs if run.lease_owner})
    waits, matches = waits_at_present(open_runs)
    if known is not None:
        their, waits, matches = their.none(), waits.none(), matches.none()
    alive, holding, pauses, waiting, got = together(
        live if open_runs else live.none(), their, pauses_of(open_runs), waits, matches
    )
    give_first(waiting, got)
    if known is not None:
        waiting = list(known.waits[::-1])
    workers = seen_workers(alive)
    holders = {run.lease_owner for run in runs if run.lease_owner}
    gathered = Gathered(
        workers=workers,
        holders=known.workers if known else named(holders, holding),
        ahead=runs_ahead(open_runs, workers),
        pauses=pauses,
        unsettled=still_unsettled(open_runs),
        joins=joins_of(open_runs),
        waits=waits_of(open_runs, waiting),
    )
    return {run.pk: facts(run, gathered) for run in runs}


def facts(run: Run, gathered: Gathered) -> RunFacts:
    number, steps = place_of(run)
    failure = run.failure or {}
    place = waits_at(run)
    join = gathered.joins.get(place, Join()) if place is not None else None
    own = place is not None and place[0] == run.pk
    return RunFacts(
        state=RunState(run.state),
        step=run.step,
        number=number,
        steps=steps,
        visit=run.visit,
        workflow=run.workflow,
        version=run.version,
        ready_at=run.ready_at,
        wake_at=run.wake_at,
        claimed_at=run.claimed_at,
        lease_expires_at=run.lease_expires_at,
        worker=gathered.holders.get(run.lease_owner, "") if run.lease_owner else "",
        reason=failure.get("reason", ""),
        message=failure.get("message", ""),
        tries=run.tries,
        losses=run.losses,
        workers=gathered.workers,
        ahead=gathered.ahead.get(run.pk, 0),
        cancel=Stop(run.cancel_asked_by, run.cancel_asked_at) if run.cancel_asked_at else None,
        pause=Stop(run.paused_by, run.paused_at) if run.paused_at else None,
        pauses=whole_pauses(run, gathered.pauses),
        unsettled=gathered.unsettled.get(run.pk, ""),
        children=join.ends if join and own else None,
        beside=join.ends if join and not own else None,
        at_once=join.at_once if join and not own else None,
        wait=gathered.waits.get(run.pk),
        sweep=timedelta(seconds=settings.ROMULUS_SWEEP_SECONDS),
        lease=timedelta(seconds=settings.ROMULUS_LEASE_SECONDS),
    )


def seen_workers(workers: Iterable[Worker]) -> tuple[WorkerSeen, ...]:
    return tuple(
        WorkerSeen(
            name=str(worker),
            workflows=pairs_of(worker),
            started_at=worker.started_at,
            swept_at=worker.swept_at,
            broker_away_since=worker.broker_away_since,
        )
        for worker in workers
    )


def pairs_of(worker: Worker) -> frozenset[tuple[str, int]]:
    return frozenset((name, version) for name, version in worker.workflows)


def runs_ahead(runs: Sequence[Run], workers: Iterable[WorkerSeen]) -> dict[UUID, int]:
    """How many runs that may be taken became ready before each of `runs` that is ready.

    One query; none where nothing is ready, or nobody has the code for it.
    """
    pairs = frozenset[tuple[str, int]]().union(*(worker.workflows for worker in workers))
    ready = [
        run for run in runs if run.state == RunState.READY and (run.workflow, run.version) in pairs
    ]
    if not ready:
        return {}
    takeable = Q()
    for workflow, version in sorted(pairs):
        takeable |= Q(workflow=workflow, version=version)
    queued = Run.objects.filter(
        takeable,
        ~Exists(Pause.objects.filter(covers(OuterRef("workflow"), OuterRef("tenant")))),
        state=RunState.READY,
        paused_at=None,
        ready_at__lte=Now(),
    )
    moments = sorted({run.ready_at for run in ready})
    before = counts_before(queued, moments)
    return {run.pk: before[run.ready_at] for run in ready}


def counts_before(queued: QuerySet[Run], moments: list[datetime]) -> dict[datetime, int]:
    """How many of `queued` were ready before each of `moments`, which ascend: one scan."""
    among = Value(moments, output_field=ArrayField(DateTimeField()))
    place = Func(F("ready_at"), among, function="width_bucket", output_field=IntegerField())
    earlier = queued.filter(ready_at__lt=moments[-1])
    counted = earlier.annotate(place=place).values("place").annotate(number=Count("pk"))
    numbers = dict(counted.values_list("place", "number"))
    sums = accumulate(numbers.get(place, 0) for place in range(len(moments)))
    return dict(zip(moments, sums, strict=True))


def covers(workflow: object, tenant: object) -> Q:
    """The pauses under which runs of `workflow` for `tenant` are not taken."""
    of_workflow = Q(workflow="") | Q(workflow=workflow)
    return of_workflow & (Q(tenant=None) | Q(tenant=tenant))


def pauses_of(runs: Sequence[Run]) -> QuerySet[Pause]:
    """The pauses that cover one of `runs` or more."""
    if not runs:
        return Pause.objects.none()
    covering = Q(workflow__in={"", *(run.workflow for run in runs)})
    covering &= Q(tenant=None) | Q(tenant__in={run.tenant_id for run in runs})
    return Pause.objects.filter(covering).select_related("tenant")


def pauses_over(run: Run, pauses: Iterable[Pause]) -> list[Pause]:
    """Those of `pauses` that cover `run`, the most specific first."""
    over = [
        pause
        for pause in pauses
        if pause.workflow in ("", run.workflow) and pause.tenant_id in (None, run.tenant_id)
    ]
    return sorted(over, key=lambda pause: (pause.tenant_id is None, not pause.workflow))


def whole_pauses(run: Run, pauses: Iterable[Pause]) -> tuple[WholePause, ...]:
    return tuple(
        WholePause(what_of(pause), Stop(pause.by, pause.at, pause.reason))
        for pause in pauses_over(run, pauses)
    )


def what_of(pause: Pause) -> str:
    """What is paused, in a sentence: "workflow refund for tenant Northwind"."""
    tenant = f"tenant {pause.tenant.name}" if pause.tenant else ""
    if not pause.workflow:
        return tenant
    return f"workflow {pause.workflow}" + (f" for {tenant}" if tenant else "")


def still_unsettled(runs: Sequence[Run]) -> dict[UUID, str]:
    """What is to be settled before those of `runs` end whose end was asked for."""
    asked = [run.pk for run in runs if run.cancel_asked_at is not None]
    return dict(unsettled_of(asked)) if asked else {}
