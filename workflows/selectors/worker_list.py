"""Who works: every live worker process, those that went quiet, and what they hold. Five queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Count, F, Q, QuerySet, Window
from django.db.models.functions import RowNumber
from django.urls import reverse

from workflows.core.durations import age, changes_at
from workflows.core.run_facts import SWEEPS_UNTIL_BEHIND
from workflows.core.states import RunState
from workflows.models import Run, Worker
from workflows.pages import Link
from workflows.selectors.stamps import REDRAWN_EVERY
from workflows.selectors.words import counted, heading
from workflows.selectors.workers import live_workers
from workflows.worker_pages import WorkerRow, WorkersPage

SHOWN = 100  # live workers
QUIET_SHOWN = 20
RUNS_SHOWN = 3  # of each worker
VERSIONS_SHOWN = 4
# A worker that went quiet is shown for so long, and for as long as it holds a run.
LATELY = timedelta(hours=1)

Held = Mapping[UUID, Sequence[Run]]


def workers_page(runs: QuerySet[Run], now: datetime) -> tuple[WorkersPage, datetime]:
    """The page for a reader who may see `runs`, at `now`, the database's time; and until when it
    stays as it is while nothing of what it is made of changes (`list_stamps`)."""
    lease = timedelta(seconds=settings.ROMULUS_LEASE_SECONDS)
    alive = list(live_workers(now)[: SHOWN + 1])
    quiet = quiet_workers(now, lease)
    held = held_by([worker.pk for worker in (*alive, *quiet)], runs)
    counts = runs.filter(state__in=[RunState.READY, RunState.RUNNING]).aggregate(
        ready=Count("pk", filter=Q(state=RunState.READY)),
        running=Count("pk", filter=Q(state=RunState.RUNNING)),
        expired=Count("pk", filter=Q(state=RunState.RUNNING, lease_expires_at__lte=now)),
    )
    more = 0
    if len(alive) > SHOWN:
        more = live_workers(now).count() - SHOWN
    rows = tuple(row_of(worker, held, now, alive=True) for worker in alive[:SHOWN])
    verdict, helps, tone = said_of(rows, counts, more)
    page = WorkersPage(
        verdict=verdict,
        helps=helps,
        tone=tone,
        alive=rows,
        quiet=tuple(row_of(worker, held, now, alive=False) for worker in quiet),
        more=more,
        **counts,
    )
    return page, min([now + REDRAWN_EVERY, *turns(alive, quiet, now)])


def turns(alive: Iterable[Worker], quiet: Iterable[Worker], now: datetime) -> Iterator[datetime]:
    """When a worker is to be spoken of otherwise, though it has written down nothing new."""
    for worker in quiet:
        yield changes_at(worker.seen_at, now)
    for worker in alive:
        swept = worker.swept_at or worker.started_at
        if worker.broker_away_since is not None:
            yield changes_at(worker.broker_away_since, now)
        elif is_behind(swept, now):
            yield changes_at(swept, now)
        else:
            yield swept + behind_after()


def quiet_workers(now: datetime, lease: timedelta) -> list[Worker]:
    """Those that went quiet lately, and those whose runs nobody has taken over yet."""
    holders = Run.objects.filter(state=RunState.RUNNING).values("lease_owner")
    gone = Worker.objects.filter(Q(seen_at__lte=now - lease) | Q(gone_at__isnull=False))
    shown = gone.filter(Q(seen_at__gt=now - LATELY) | Q(pk__in=holders))
    return list(shown.order_by("-seen_at")[:QUIET_SHOWN])


def held_by(workers: Sequence[UUID], runs: QuerySet[Run]) -> dict[UUID, list[Run]]:
    """A few of the runs that each of `workers` holds, each with how many there are."""
    ranked = (
        runs.filter(state=RunState.RUNNING, lease_owner__in=workers)
        .annotate(
            place=Window(RowNumber(), partition_by=F("lease_owner"), order_by=F("id").asc()),
            held=Window(Count("pk"), partition_by=F("lease_owner")),
        )
        .defer("input")
    )
    found: dict[UUID, list[Run]] = defaultdict(list)
    for run in ranked.filter(place__lte=RUNS_SHOWN):
        if run.lease_owner is not None:
            found[run.lease_owner].append(run)
    return found


def row_of(worker: Worker, held: Held, now: datetime, *, alive: bool) -> WorkerRow:
    runs = held.get(worker.pk, ())
    state, sentence = state_of(worker, now) if alive else ("quiet", gone(worker, bool(runs), now))
    versions = sorted(f"{name} v{version}" for name, version in worker.workflows)
    number = runs[0].held if runs else 0  # type: ignore[attr-defined]  # annotated in held_by
    return WorkerRow(
        name=str(worker),
        state=state,
        sentence=sentence,
        started_at=worker.started_at,
        seen_at=worker.seen_at,
        swept_at=worker.swept_at,
        runs=tuple(Link(heading(run), reverse("run", args=[run.pk])) for run in runs),
        more_runs=number - len(runs),
        versions=tuple(versions[:VERSIONS_SHOWN]),
        more_versions=max(0, len(versions) - VERSIONS_SHOWN),
    )


def state_of(worker: Worker, now: datetime) -> tuple[str, str]:
    since = worker.broker_away_since
    if since is not None:
        return "no_broker", f"Its messages have not reached the broker for {age(now - since)}."
    swept = worker.swept_at or worker.started_at
    if is_behind(swept, now):
        return "no_sweep", f"It has not looked for due work for {age(now - swept)}."
    return "alive", "It takes work, and looks for what is due."


def is_behind(swept: datetime, now: datetime) -> bool:
    return now - swept > behind_after()


def behind_after() -> timedelta:
    sweeps = timedelta(seconds=settings.ROMULUS_SWEEP_SECONDS) * SWEEPS_UNTIL_BEHIND
    return max(sweeps, timedelta(seconds=settings.ROMULUS_LEASE_SECONDS))


def gone(worker: Worker, holds: bool, now: datetime) -> str:
    said = f"It was last seen {age(now - worker.seen_at)} ago."
    if worker.gone_at is not None:
        said = f"{said} Its session with the database ended."
    return f"{said} Another worker takes its runs over." if holds else f"{said} It holds nothing."


# The sweep finds what is due and tells of it by the same broker.
WITHOUT_BROKER = (
    "They go on with what they are at; what else is due waits until the broker is back."
)


def said_of(
    rows: Iterable[WorkerRow], counts: Mapping[str, int], more: int
) -> tuple[str, str, str]:
    """What is so, what helps, and how serious it is: the worst first."""
    states = [row.state for row in rows]
    alive = len(states) + more
    waiting = counts["ready"] + counts["expired"]
    if not alive:
        lie = f"{counted(waiting, 'run')} that you may see wait for one." if waiting else ""
        return f"No worker is alive. {lie}".strip(), "Starting a worker helps.", "hold"
    if states and all(state == "no_broker" for state in states):
        return (
            f"No worker reaches the broker. {WITHOUT_BROKER}",
            "Mending the broker helps; nothing is lost meanwhile.",
            "hold",
        )
    if states and all(state == "no_sweep" for state in states):
        return (
            "No worker looks for due work: what no message tells of waits.",
            "Restarting the workers helps.",
            "hold",
        )
    troubled = sum(state != "alive" for state in states)
    here = f"{counted(alive, 'worker')} {'is' if alive == 1 else 'are'} alive"
    work = f"{counted(counts['running'], 'run')} at work, {counts['ready']:,} ready"
    if troubled:
        return f"{here}, {troubled} of them with trouble; {work}.", "See below.", "hold"
    return f"{here}; {work}.", "Nothing is needed.", "good"
