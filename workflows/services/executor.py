"""One worker's way through a run: claim, execute outside any transaction, commit, go on.

The outcome is decided first and written after. A worker that lost the run meanwhile writes
nothing; that its late commit was refused stays visible (promise P2).
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

import structlog
from django.conf import settings

from workflows.core.errors import LostOwnership, UnstorableValue
from workflows.core.retry import MAX_LOST_ATTEMPTS
from workflows.core.states import AttemptState, RunState
from workflows.core.values import to_json
from workflows.core.words import describe
from workflows.services import hints
from workflows.services.claims import Claim, claim_run, commit_step, record_superseded, release
from workflows.services.failures import OUTAGE, call
from workflows.services.kinds import Again, Done, Fail, Hold, Park, Result, handlers
from workflows.services.ownership import Keeper
from workflows.services.run_holds import open_run_hold
from workflows.services.run_view import RunView

log = structlog.get_logger(__name__)


def advance(run: UUID, keeper: Keeper) -> None:
    """Take `run` as far as it goes now. Does nothing when it is not due or held by another.

    Safe to call any number of times, at once, late, or for a run that does not exist: messages
    are hints (promise P10).
    """
    if not keeper.may_claim():
        return
    claim = claim_run(run, keeper.worker)
    while claim is not None:
        claim = take_step(claim, keeper)


def take_step(claim: Claim, keeper: Keeper) -> Claim | None:
    """Execute one step and commit what came of it; return the claim on the next step, if any."""
    with (
        keeper.at_work(claim.attempt),
        structlog.contextvars.bound_contextvars(
            run=str(claim.run), attempt=str(claim.attempt), step=claim.step.name
        ),
    ):
        try:
            return settle_or_hold(claim, keeper)
        except LostOwnership:
            record_superseded(claim)
            return None


def settle_or_hold(claim: Claim, keeper: Keeper) -> Claim | None:
    """Execute and commit. An error of Romulus itself is for a person: neither a failed step, nor a
    failed write, nor a silent stop."""
    try:
        result = too_many_losses(claim) or execute(claim)
        return settle(claim, result, go_on=keeper.may_claim())
    except OUTAGE:
        raise
    except Exception as error:
        log.exception("step.crashed")
        crashed = Hold("step_crashed", f"Romulus could not go on: {describe(error)}")
        return settle(claim, crashed, go_on=False)


def too_many_losses(claim: Claim) -> Result | None:
    if claim.step.kind == "missing":
        return Hold(
            "step_missing",
            f"{claim.workflow.name} version {claim.workflow.version} has no step "
            f"{claim.step.name}: the code changed without a new version.",
        )
    if claim.lost < MAX_LOST_ATTEMPTS:
        return None
    return Hold(
        "workers_lost",
        f"{claim.lost} workers went quiet at step {claim.step.name}. It may be what ends them.",
    )


def execute(claim: Claim) -> Result:
    """Run the step outside any transaction and return what came of it."""
    view = RunView(claim)
    handler = handlers.get(claim.step.kind)
    if handler is not None:
        return handler(claim, view)
    value, problem = call(claim, view)
    return problem or storable(claim, value)


def storable(claim: Claim, value: object) -> Result:
    try:
        plain = to_json(
            value,
            claim.step.returns,
            limit=settings.ROMULUS_MAX_OUTPUT_BYTES,
            what=f"output of step {claim.step.name}",
        )
    except UnstorableValue as error:
        # Never tried again: the step's work is done, and only its output cannot be kept.
        return Hold("output_not_storable", str(error))
    return Done(plain)


def settle(claim: Claim, result: Result, *, go_on: bool) -> Claim | None:
    """Write the result in one transaction; return the claim on the next step, if any."""
    match result:
        case Done(value, also):
            following = commit_step(claim, value, go_on=go_on, also=also)
            if following is None and not go_on:
                hints.run_is_ready(claim.run)
            return following
        case Again(delay, message, also):
            failed = bool(message)
            release(
                claim,
                RunState.READY,
                attempt_state=AttemptState.FAILED if failed else AttemptState.COMMITTED,
                failure={"reason": "retry", "message": message} if failed else None,
                error=message,
                delay=delay,
                also=also,
            )
            if not delay:
                hints.run_is_ready(claim.run)
        case Park(reason, message, also):
            park = {"reason": reason, "message": message}
            release(claim, RunState.WAITING, failure=park, also=also)
        case Hold(reason, message, also):
            failed = reason == "step_failed"
            release(
                claim,
                RunState.HELD,
                attempt_state=AttemptState.FAILED if failed else AttemptState.COMMITTED,
                failure={"reason": reason, "message": message},
                error=message if failed else "",
                also=also or partial(open_run_hold, claim, reason, message),
            )
        case Fail(reason, message, also):
            release(
                claim,
                RunState.FAILED,
                attempt_state=AttemptState.FAILED,
                failure={"reason": reason, "message": message},
                error=message,
                also=also,
            )
    return None
