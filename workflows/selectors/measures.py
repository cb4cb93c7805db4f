"""How runs, attempts, events and workers are doing, for `/metrics`.

Each question costs what is unfinished, or what came lately, and not what the history holds: a
counter over the history would have to read it all. So what flows is given for a `WINDOW`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Count, Max, Min, Q

from workflows.core.measures import Measure, by, one
from workflows.core.states import AttemptState, RunState
from workflows.models import Attempt, Event, Run
from workflows.models.event import TO_ACT_ON
from workflows.models.ids import id_at
from workflows.selectors.workers import live_workers

WINDOW = timedelta(minutes=5)
LATELY = "in the last 5 minutes"


def measures(now: datetime) -> Iterator[Measure]:
    yield runs()
    yield one(
        "runs_ready_oldest_seconds",
        "How long the oldest due run waits for a worker.",
        oldest_due(now),
    )
    yield attempts(now)
    yield from events(now)
    yield from workers(now)


def runs() -> Measure:
    counted = Run.objects.filter(finished_at=None).values_list("state").annotate(Count("pk"))
    found = dict(counted)
    states = (state for state in RunState if not state.is_final)
    return by(
        "runs_unfinished",
        "Runs that have not ended, by state.",
        "state",
        ((state, found.get(state, 0)) for state in states),
    )


def oldest_due(now: datetime) -> float:
    due = Run.objects.filter(state=RunState.READY, paused_at=None, ready_at__lte=now)
    return age(due.aggregate(oldest=Min("ready_at"))["oldest"], now)


def attempts(now: datetime) -> Measure:
    lately = Attempt.objects.filter(pk__gte=id_at(now - WINDOW))
    found = dict(lately.values_list("state").annotate(Count("pk")))
    ended = (state for state in AttemptState if state is not AttemptState.RUNNING)
    return by(
        "attempts_recent",
        f"Claims {LATELY} that have ended, by how.",
        "state",
        ((state, found.get(state, 0)) for state in ended),
    )


def events(now: datetime) -> Iterator[Measure]:
    waiting = Event.objects.filter(TO_ACT_ON)
    found = waiting.aggregate(
        number=Count("pk"), oldest=Min("received_at"), ambiguous=Count("ambiguous_at")
    )
    yield one("events_unmatched", "Events that no wait has and nobody dismissed.", found["number"])
    yield one(
        "events_unmatched_oldest_seconds", "Age of the oldest of them.", age(found["oldest"], now)
    )
    yield one(
        "events_ambiguous", "Of them, those that more than one wait could take.", found["ambiguous"]
    )
    lately = Event.objects.filter(pk__gte=id_at(now - WINDOW))
    counted = dict(lately.values_list("state").annotate(Count("pk")))
    yield by(
        "events_recent",
        f"Events received {LATELY}, by what became of them.",
        "state",
        sorted(counted.items()),
    )


def workers(now: datetime) -> Iterator[Measure]:
    found = (
        live_workers()
        .order_by()
        .aggregate(
            number=Count("pk"),
            untold=Count("pk", filter=Q(broker_away_since__isnull=False)),
            swept=Max("swept_at"),
        )
    )
    yield one("workers_live", "Worker processes that were seen within one lease.", found["number"])
    yield one(
        "workers_without_broker", "Of them, those whose messages reach no broker.", found["untold"]
    )
    lag = None if found["swept"] is None else age(found["swept"], now)
    yield one("sweep_lag_seconds", "Since a live worker last looked for what is due.", lag)


def age(since: datetime | None, now: datetime) -> float:
    return 0.0 if since is None else max((now - since).total_seconds(), 0.0)
