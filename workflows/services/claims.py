"""Who holds a run: claiming, committing under the fence, and giving back.

Every write here carries the worker and the fence of the claim, and the row count is the truth: a
claim that was taken over changes nothing (promise P2) and raises `LostOwnership`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
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
from workflows.models import Attempt
from workflows.models.ids import new_id
from workflows.registry import registry
from workflows.services.outputs import Kept, purge_delay
from workflows.services.pauses import going_on, of_a_tenant
from workflows.sql import fetch

log = structlog.get_logger(__name__)

# Time enough to hold a run whose step is gone.
MISSING_STEP_TIMEOUT = timedelta(minutes=1)
# A claimer that meets others at the head of a backlog looks no further than this.
CANDIDATES = 32

Also = Callable[[], None]
"""Work that must commit together with a move, in its transaction."""


def nothing() -> None:
    pass


@dataclass(slots=True)
class Claim:
    """One attempt: what a worker holds while it works on a step. Nothing changes it; that it is
    not frozen halves the time that making one takes, which every step does."""

    run: UUID
    workflow: Workflow
    tenant: UUID
    step: Step
    visit: int
    number: int  # the how-manieth try of this step and visit
    failures: int  # tries of this step that failed before
    losses: int  # tries of this step whose worker went quiet
    attempt: UUID
    worker: UUID
    fence: int
    input: Json
    claimed_at: bytes  # as the database sent it: it goes back there as it came
    started_at: datetime
    parent: UUID | None = None
    parent_step: str = ""
    parent_visit: int | None = None
    waited_until: datetime | None = None  # what a waiting step was woken at
    cancelling: bool = False  # somebody asked for its end; it only settles what is open


def claim_run(run: UUID, worker: UUID) -> Claim | None:
    """Claim `run` for `worker`, or return None: not due, held by another, paused, or not ours."""
    return claim_first([run], worker)


def claim_next(worker: UUID) -> Claim | None:
    """Claim the run that has been ready longest among those that this process may claim."""
    due = next_due(CANDIDATES)
    return claim_first(due, worker) if due else None


def next_due(batch: int, *, again: float | None = None) -> list[UUID]:
    """Return runs that are ready and due and not paused, the first one first, of those that this
    process has the code for.

    Args:
        batch: at most so many.
        again: leave out those of whom somebody was told in so many seconds; None: leave out none.
    """
    name = "next_due_by_tenant" if of_a_tenant() else "next_due"
    pairs = of_pairs(going_on(registry.pairs()))
    return [row["id"] for row in fetch(name, pairs | {"batch": batch, "again": again})]


def of_pairs(pairs: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """The parameters that name what this process has the code for."""
    return {"names": [name for name, _ in pairs], "versions": [version for _, version in pairs]}


def claim_first(runs: Sequence[UUID], worker: UUID) -> Claim | None:
    """Claim the first of `runs` that may be claimed, if there is one.

    A run whose position its workflow does not have (the code changed under one version number)
    is claimed with a stand-in for its step, and held by the executor.
    """
    failpoint("before_claim")
    attempt = new_id()
    names, versions, steps, timeouts = registry.claimable()
    rows = fetch(
        "claim",
        {
            "runs": list(runs),
            "worker": worker,
            "attempt": attempt,
            "lease": settings.ROMULUS_LEASE_SECONDS,
            "names": names,
            "versions": versions,
            "steps": steps,
            "timeouts": timeouts,
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
        number=row["tries"],
        failures=row["failures"],
        losses=row["losses"],
        attempt=attempt,
        worker=worker,
        fence=row["fence"],
        input=json.loads(row["input"]),
        claimed_at=row["claimed_at"],
        started_at=row["created_at"],
        parent=row["parent_id"],
        parent_step=row["parent_step"],
        parent_visit=row["parent_visit"],
        waited_until=row["wake_at"],
        cancelling=row["cancelling"],
    )


def missing_step(name: str) -> Step:
    """Stand in for a position that the workflow no longer has; the executor holds the run."""

    def gone(_run: Any) -> None:
        raise AssertionError("never run")

    return Step(name, "missing", gone, Any, RetryPolicy(), MISSING_STEP_TIMEOUT, "hold", "", name)


# --- committing -------------------------------------------------------------------------------


def commit_step(
    claim: Claim, kept: Kept, following: Step | None, *, go_on: bool, also: Also = nothing
) -> Claim | None:
    """Commit the output and the move past the step (promise P1).

    Args:
        kept: the step's output as it goes into its row.
        following: the step that comes next; None ends the run.
        go_on: begin the next attempt for this worker at once; False hands the run back.
        also: work that must commit together with the move.

    Returns:
        The claim on the next step, or None when the run has ended or was handed back, which it is
        too when it was paused or is to be cancelled.

    Raises:
        LostOwnership: a later claim holds the run; nothing was changed.
    """
    visit = next_visit(claim, following)
    failpoint("before_checkpoint", claim.step.name)
    if also is nothing:
        following_claim = commit_alone(claim, kept, following, visit, go_on=go_on)
    else:
        with transaction.atomic():
            go_on = not hold(claim) and go_on
            also()
            following_claim = commit_alone(claim, kept, following, visit, go_on=go_on)
    failpoint("after_checkpoint", claim.step.name)
    return following_claim


def commit_alone(
    claim: Claim, kept: Kept, following: Step | None, visit: int, *, go_on: bool
) -> Claim | None:
    """The checkpoint itself: one statement, which outside a transaction is its own."""
    if following is not None and go_on:
        following_claim = move_on(claim, kept, following, visit)
        if following_claim is not None:
            return following_claim
    # The end, or a stop: the worker is ending, or the run was paused or is to be cancelled.
    stop_here(claim, kept, following, visit)
    return None


def next_visit(claim: Claim, following: Step | None) -> int:
    """Count the visits of the next step; only steps that lie on a loop can have more than one.

    Read before the commit: nobody but the holder of the run adds any.
    """
    if following is None:
        return claim.visit
    if not claim.workflow.may_revisit(following.name):
        return 1
    passed = Attempt.objects.outputs().filter(run_id=claim.run, step=following.name)
    last = passed.order_by("-visit").values_list("visit", flat=True).first() or 0
    if following.name == claim.step.name:
        last = max(last, claim.visit)
    return last + 1


def ended(claim: Claim, kept: Kept) -> dict[str, Any]:
    """The parameters that every commit shares: whose it is, and its attempt's row."""
    return {
        "run": claim.run,
        "worker": claim.worker,
        "fence": claim.fence,
        "attempt": claim.attempt,
        "step": claim.step.name,
        "visit": claim.visit,
        "number": claim.number,
        "claimed_at": claim.claimed_at,
        "output": kept.text,
        "form": kept.form,
    }


def move_on(claim: Claim, kept: Kept, following: Step, visit: int) -> Claim | None:
    """The steady step. None when nothing was committed, because the run is to stop here."""
    attempt = new_id()
    parameters = ended(claim, kept)
    parameters["next_step"] = following.name
    parameters["next_visit"] = visit
    parameters["next_attempt"] = attempt
    timeout = following.timeout.total_seconds()
    parameters["next_timeout"] = timeout
    parameters["next_lease"] = min(settings.ROMULUS_LEASE_SECONDS, timeout)
    rows = fetch("go_on", parameters)
    if not rows:
        return None
    (row,) = rows
    return Claim(
        run=claim.run,
        workflow=claim.workflow,
        tenant=claim.tenant,
        step=following,
        visit=visit,
        number=1,
        failures=0,
        losses=0,
        attempt=attempt,
        worker=claim.worker,
        fence=claim.fence + 1,
        input=claim.input,
        claimed_at=row["claimed_at"],
        started_at=claim.started_at,
        parent=claim.parent,
        parent_step=claim.parent_step,
        parent_visit=claim.parent_visit,
    )


def stop_here(claim: Claim, kept: Kept, following: Step | None, visit: int) -> None:
    parameters = ended(claim, kept) | {
        "state": RunState.COMPLETED if following is None else RunState.READY,
        "next_step": claim.step.name if following is None else following.name,
        "next_visit": visit,
        "tries": claim.number if following is None else 0,
        "purge_after": purge_after(claim.workflow),
    }
    if not fetch("stop_here", parameters):
        raise lost(claim)


def purge_after(workflow: Workflow) -> float | None:
    delay = purge_delay(workflow)
    return None if delay is None else delay.total_seconds()


def hold(claim: Claim) -> bool:
    """Lock the run of a claim that still counts, before anything else is locked (lock order).

    Returns:
        Whether it is to stop here: it was paused, or its end was asked for.

    Raises:
        LostOwnership: a later claim holds the run.
    """
    rows = fetch("hold_run", {"run": claim.run, "worker": claim.worker, "fence": claim.fence})
    if not rows:
        raise lost(claim)
    return bool(rows[0]["stopping"])


def lost(claim: Claim) -> LostOwnership:
    return LostOwnership(f"run {claim.run}: fence {claim.fence} holds it no more")


# --- giving back ------------------------------------------------------------------------------


def release(
    claim: Claim,
    state: RunState,
    *,
    attempt_state: AttemptState = AttemptState.COMMITTED,
    failure: Json = None,
    error: str = "",
    delay: timedelta = timedelta(0),
    wake_at: datetime | None = None,
    also: Also = nothing,
) -> None:
    """End the attempt without an output and move the run to `state`.

    Args:
        failure: why, for people: {"reason": …, "message": …}.
        error: what the attempt ended with, when it failed.
        delay: rest before a `ready` run may be claimed again.
        wake_at: when a `waiting` run is made ready, if nothing does it before.
        also: work that must commit together with the move.

    Raises:
        LostOwnership: a later claim holds the run; nothing was changed.
    """
    failpoint("before_release", claim.step.name)
    parameters = {
        "run": claim.run,
        "worker": claim.worker,
        "fence": claim.fence,
        "attempt": claim.attempt,
        "step": claim.step.name,
        "visit": claim.visit,
        "number": claim.number,
        "claimed_at": claim.claimed_at,
        "state": state,
        "attempt_state": attempt_state,
        "failure": None if failure is None else json.dumps(failure),
        "error": error,
        "delay": delay.total_seconds(),
        "wake_at": wake_at,
        "purge_after": purge_after(claim.workflow),
    }
    if also is nothing:
        moved = fetch("release", parameters)
    else:
        with transaction.atomic():
            hold(claim)
            also()
            moved = fetch("release", parameters)
    if not moved:
        raise lost(claim)
    failpoint("after_release", claim.step.name)


def record_superseded(claim: Claim, late: Kept | None = None) -> None:
    """Keep, for the timeline and as evidence, that a commit came too late and what it brought."""
    failpoint("before_supersede", claim.step.name)
    fetch(
        "supersede",
        {
            "attempt": claim.attempt,
            "output": late.text if late else None,
            "form": late.form if late else None,
        },
    )
    failpoint("after_supersede", claim.step.name)
    log.warning("attempt.superseded", run=str(claim.run), attempt=str(claim.attempt))
