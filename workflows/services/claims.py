"""Who holds a run: claiming, committing under the fence, and giving back.

Every write here carries the worker and the fence of the claim, and the row count is the truth: a
claim that was taken over changes nothing (promise P2) and raises `LostOwnership`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction

from workflows.core.definitions import Step, Workflow
from workflows.core.errors import LostOwnership
from workflows.core.retry import RetryPolicy
from workflows.core.states import AttemptState, RunState
from workflows.core.values import Json
from workflows.failpoints import failpoint
from workflows.models.ids import new_id
from workflows.registry import registry
from workflows.sql import fetch

log = structlog.get_logger(__name__)

# Time enough to hold a run whose step is gone.
MISSING_STEP_TIMEOUT = timedelta(minutes=1)

Also = Callable[[], None]
"""Work that must commit together with a move, in its transaction."""


def nothing() -> None:
    pass


@dataclass(frozen=True)
class Claim:
    """One attempt: what a worker holds while it works on a step."""

    run: UUID
    workflow: Workflow
    tenant: UUID
    step: Step
    visit: int
    number: int
    failures: int  # tries of this step that failed before
    lost: int  # tries of this step whose worker went quiet
    attempt: UUID
    worker: UUID
    fence: int
    input: Json
    claimed_at: datetime
    started_at: datetime


def claim_run(run: UUID, worker: UUID) -> Claim | None:
    """Claim `run` for `worker`, or return None: not due, held by another, or not ours to run.

    A run whose position its workflow does not have (the code changed under one version number)
    is held with that reason.
    """
    failpoint("before_claim")
    attempt = new_id()
    steps = registry.steps()
    rows = fetch(
        "claim",
        {
            "run": run,
            "worker": worker,
            "attempt": attempt,
            "lease": settings.ROMULUS_LEASE_SECONDS,
            "names": [workflow.name for workflow, _ in steps],
            "versions": [workflow.version for workflow, _ in steps],
            "steps": [step.name for _, step in steps],
            "timeouts": [step.timeout.total_seconds() for _, step in steps],
            "missing": MISSING_STEP_TIMEOUT.total_seconds(),
        },
    )
    if not rows:
        return None
    claim = claim_of(rows[0], worker, attempt)
    failpoint("after_claim", claim.step.name)
    return claim


def claim_of(row: dict[str, Any], worker: UUID, attempt: UUID) -> Claim:
    workflow = registry.get(row["workflow"], row["version"])
    return Claim(
        run=row["id"],
        workflow=workflow,
        tenant=row["tenant_id"],
        step=workflow.steps.get(row["step"]) or missing_step(row["step"]),
        visit=row["visit"],
        number=row["tries"] + 1,
        failures=row["failures"],
        lost=row["lost"],
        attempt=attempt,
        worker=worker,
        fence=row["fence"],
        input=json.loads(row["input"]) if isinstance(row["input"], str) else row["input"],
        claimed_at=row["claimed_at"],
        started_at=row["created_at"],
    )


def missing_step(name: str) -> Step:
    """Stand in for a position that the workflow no longer has; the executor holds the run."""

    def gone(_run: Any) -> None:
        raise AssertionError("never run")

    return Step(name, "missing", gone, Any, RetryPolicy(), MISSING_STEP_TIMEOUT, "hold", "", name)


def commit_step(claim: Claim, value: Json, *, go_on: bool, also: Also = nothing) -> Claim | None:
    """Commit the output and the move past the step (promise P1).

    Args:
        value: the step's output as storable JSON.
        go_on: open the next attempt for this worker at once; False hands the run back.
        also: work that must commit together with the move.

    Returns:
        The claim on the next step, or None when the run is completed or handed back.

    Raises:
        LostOwnership: a later claim holds the run; nothing was changed.
    """
    following = claim.workflow.after(claim.step.name)
    opens = bool(following) and go_on
    next_attempt = new_id()
    state = RunState.COMPLETED
    if following:
        state = RunState.RUNNING if go_on else RunState.READY
    failpoint("before_checkpoint", claim.step.name)
    row = move(
        claim,
        "commit_step",
        {
            "attempt": claim.attempt,
            "step": claim.step.name,
            "visit": claim.visit,
            "state": state,
            "next_step": following.name if following else claim.step.name,
            "next_visit": 1 if following else claim.visit,
            "next_attempt": next_attempt,
            "next_timeout": following.timeout.total_seconds() if following else 0,
            "opens": int(opens),
            "lease": settings.ROMULUS_LEASE_SECONDS,
            "output": new_id(),
            "value": json.dumps(value),
            "result": None if following else json.dumps(value),
        },
        also,
    )
    failpoint("after_checkpoint", claim.step.name)
    if not opens or following is None:
        return None
    return next_claim(claim, following, next_attempt, row)


def move(claim: Claim, statement: str, parameters: dict[str, Any], also: Also) -> dict[str, Any]:
    """Run a guarded statement together with `also`, and return its row.

    Without anything beside it a statement is its own transaction: one round trip, one commit. With
    it the run is locked first (lock order).

    Raises:
        LostOwnership: a later claim holds the run; nothing was done.
    """
    held = {"run": claim.run, "worker": claim.worker, "fence": claim.fence}
    if also is nothing:
        rows = fetch(statement, held | parameters)
    else:
        with transaction.atomic():
            if not fetch("hold_run", held):
                raise lost(claim)
            also()
            rows = fetch(statement, held | parameters)
    if not rows:
        raise lost(claim)
    return rows[0]


def lost(claim: Claim) -> LostOwnership:
    return LostOwnership(f"run {claim.run}: fence {claim.fence} holds it no more")


def next_claim(claim: Claim, step: Step, attempt: UUID, row: dict[str, Any]) -> Claim:
    return Claim(
        run=claim.run,
        workflow=claim.workflow,
        tenant=claim.tenant,
        step=step,
        visit=1,
        number=1,
        failures=0,
        lost=0,
        attempt=attempt,
        worker=claim.worker,
        fence=row["fence"],
        input=claim.input,
        claimed_at=claim.claimed_at,
        started_at=claim.started_at,
    )


def release(
    claim: Claim,
    state: RunState,
    *,
    attempt_state: AttemptState = AttemptState.COMMITTED,
    failure: Json = None,
    error: str = "",
    delay: timedelta = timedelta(0),
    also: Also = nothing,
) -> None:
    """End the attempt without an output and move the run to `state`.

    Args:
        failure: why, for people: {"reason": …, "message": …}.
        error: what the attempt ended with, when it failed.
        delay: rest before a `ready` run may be claimed again.
        also: work that must commit together with the move.

    Raises:
        LostOwnership: a later claim holds the run; nothing was changed.
    """
    failpoint("before_release", claim.step.name)
    move(
        claim,
        "release",
        {
            "attempt": claim.attempt,
            "state": state,
            "attempt_state": attempt_state,
            "failure": None if failure is None else json.dumps(failure),
            "error": error,
            "delay": delay.total_seconds(),
        },
        also,
    )
    failpoint("after_release", claim.step.name)


def record_superseded(claim: Claim) -> None:
    """Keep for the timeline that a late commit of `claim` was refused."""
    fetch("supersede", {"attempt": claim.attempt})
    log.warning("attempt.superseded", run=str(claim.run), attempt=str(claim.attempt))
