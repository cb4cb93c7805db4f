"""How the machinery is, in sentences for people: workers, their sweep, the broker. One query.

What workers know of themselves is read; nothing else is asked, so that a page never waits for a
broker that is away.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from workflows.core.durations import age
from workflows.models import Worker
from workflows.selectors.words import counted
from workflows.selectors.worker_list import WITHOUT_BROKER, behind_after
from workflows.selectors.workers import live_workers
from workflows.worker_pages import Health

LOOKED_AT = 100


def health(now: datetime) -> tuple[Health, ...]:
    """Workers alive, sweep, broker, each in a sentence; `now` is the database's time."""
    workers = list(live_workers(now).defer("workflows")[: LOOKED_AT + 1])
    if not workers:
        return (
            Health(
                "quiet",
                "No worker is alive: runs wait, and nothing is sent or looked up.",
                "Starting a worker helps. Reviews and decisions go on.",
            ),
        )
    return (alive_line(workers), sweep_line(workers, now), broker_line(workers, now))


def alive_line(workers: Sequence[Worker]) -> Health:
    number = counted(len(workers), "worker")
    if len(workers) > LOOKED_AT:
        number = f"More than {LOOKED_AT} workers"
    return Health("alive", f"{number} {'is' if len(workers) == 1 else 'are'} alive.")


def sweep_line(workers: Sequence[Worker], now: datetime) -> Health:
    """When any of them last looked for what is due: one that does is enough."""
    latest = max(worker.swept_at or worker.started_at for worker in workers)
    behind = now - latest
    if behind > behind_after():
        return Health(
            "no_sweep",
            f"Nobody has looked for due work for {age(behind)}: what no message tells of waits.",
            "Restarting the workers helps.",
        )
    return Health("alive", f"Due work was looked for {age(behind)} ago.")


def broker_line(workers: Sequence[Worker], now: datetime) -> Health:
    away = [worker.broker_away_since for worker in workers if worker.broker_away_since]
    if not away:
        return Health("alive", "The broker answers.")
    since = age(now - min(away))
    if len(away) == len(workers):
        return Health(
            "no_broker",
            f"No worker has reached the broker for {since}. {WITHOUT_BROKER}",
            "Mending the broker helps; nothing is lost meanwhile.",
        )
    return Health(
        "no_broker",
        f"{len(away)} of {len(workers)} workers have not reached the broker for up to {since}.",
        "The others take their work.",
    )
