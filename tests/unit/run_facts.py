"""The facts about a run that tests of its explanation start from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from workflows.core.run_facts import RunFacts, Stop, WholePause, WorkerSeen
from workflows.core.states import RunState

NOW = datetime(2026, 3, 10, 3, 0, 12, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def worker(name: str = "host/17", version: int = 4, **seen: Any) -> WorkerSeen:
    """A live worker that has this version of refund and has just swept."""
    pairs = frozenset({("refund", version), ("triage", 1)})
    return WorkerSeen(name, pairs, **({"started_at": ago(600), "swept_at": ago(1)} | seen))


FACTS = RunFacts(
    state=RunState.READY,
    step="create_refund",
    number=2,
    steps=3,
    workflow="refund",
    version=4,
    ready_at=ago(2),
    workers=(worker(), worker("host/18")),
)
ADA = Stop("user:3 ada", ago(60), "The auditor is here.")
CRON = Stop("command:cron", NOW - timedelta(days=1))
WHOLE = WholePause("workflow refund", Stop("user:4 bo", ago(30), "New rules."))
TENANT = WholePause("tenant Northwind", Stop("user:5 cy", ago(90)))
