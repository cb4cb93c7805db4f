"""One worker's way through a run: claim, execute outside any transaction, commit, go on.

The outcome is decided first and written after. A worker that lost the run meanwhile writes
nothing; that its late commit was refused stays visible (promise P2).
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from uuid import UUID

import structlog
from django.conf import settings
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.transaction import TransactionManagementError

from workflows.core.at_work import AtWork, at_work
from workflows.core.errors import LostOwnership, OutputNotKept, OutputsAway, UnstorableValue
from workflows.core.retry import MAX_LOST_ATTEMPTS
from workflows.core.states import AttemptState, RunState
from workflows.core.values import to_json
from workflows.core.words import describe
from workflows.failpoints import failpoint
from workflows.models import Run
from workflows.services import hints
from workflows.services.children import ask_to_end, look_at_parent
from workflows.services.claims import (
    Claim,
    claim_next,
    claim_run,
    commit_step,
    hold,
    record_superseded,
    release,
)
from workflows.services.crashes import hold_later, still_to_hold
from workflows.services.failures import OUTAGE, after_failure, call, when_outputs_are_back
from workflows.services.kinds import (
    Again,
    Cancel,
    Decide,
    Done,
    Fail,
    Hold,
    Overtaken,
    Park,
    Result,
    fit_to_keep,
    handlers,
)
from workflows.services.outputs import Kept, keep_output
from workflows.services.ownership import Keeper
from workflows.services.pauses import is_paused
from workflows.services.run_holds import open_run_hold
from workflows.services.run_view import RunView
from workflows.services.settling import asked_by, close_all, unsettled, why_cancelled
from workflows.services.taken_back import TRIES, again_if_taken_back, was_taken_back
from workflows.sql import fetch

log = structlog.get_logger(__name__)

Settled = tuple[Claim | None, bool]
"""The claim on the next step, if any; whether the run has stopped here: it has ended or is held."""
NOTHING: Settled = (None, False)

# A worker goes on with what else is due for this long before it looks at its messages again.
BACKLOG_SECONDS = 5.0


def advance(run: UUID, keeper: Keeper) -> None:
    """Take `run` as far as it goes now. Does nothing when it is not due or held by another.

    Safe to call any number of times, at once, late, or for a run that does not exist: messages
    are hints (promise P10).
    """
    if not keeper.may_claim():
        return
    take(claim_run(run, keeper.worker), keeper)


def work_on(run: UUID, keeper: Keeper) -> None:
    """Take `run` as far as it goes, then what else is due, so that a message need not come for
    each run of a backlog. After a while the thread goes back for its messages."""
    until = time.monotonic() + BACKLOG_SECONDS
    advance(run, keeper)
    while keeper.may_claim() and (claim := claim_next(keeper.worker)) is not None:
        take(claim, keeper)
        if time.monotonic() > until:
            hints.work_is_due(claim.run)
            return


def take(claim: Claim | None, keeper: Keeper) -> None:
    while claim is not None:
        claim = take_step(claim, keeper)


def take_step(claim: Claim, keeper: Keeper) -> Claim | None:
    """Execute one step and commit what came of it; return the claim on the next step, if any."""
    keeper.begin(claim.attempt, claim.step.timeout.total_seconds())
    before = at_work.set(AtWork(claim.run, claim.attempt, claim.step.name))
    try:
        following, has_stopped = settle_or_leave(claim, keeper)
        if has_stopped:
            # After the commit, whatever it was part of: a parent is locked before its children.
            look_at_parent(claim.parent)
        return following
    finally:
        at_work.reset(before)
        keeper.end(claim.attempt)


def settle_or_leave(claim: Claim, keeper: Keeper) -> Settled:
    """Of what is left to its lease, because the database is gone or takes nothing, the log tells.
    Whoever comes after the lease counts it as lost."""
    try:
        return settle_or_hold(claim, keeper)
    except BaseException as error:
        log.warning("step.left_to_its_lease", error=describe(error))
        raise


def settle_or_hold(claim: Claim, keeper: Keeper) -> Settled:
    """Execute and commit. An error of Romulus itself is for a person: neither a failed step, nor a
    failed write, nor a silent stop."""
    result: Result | None = None
    times_taken_back = 0
    try:
        if claim.step.atomic and not claim.cancelling:
            result, settled = take_atomic_step(claim, keeper)
            if settled is not None:
                return settled
        while True:
            try:
                result = result or worked_out(claim)
                return settle(claim, result, keeper)
            except Overtaken:
                log.info("step.overtaken", step=claim.step.name)
                result = None
            except OperationalError as error:
                times_taken_back += 1
                if times_taken_back == TRIES or not was_taken_back(error):
                    raise
                log.warning("step.taken_back", step=claim.step.name, error=describe(error))
                if claim.step.kind in handlers:
                    # By what is committed: what it had written is not, whatever it remembers.
                    result = None
    except LostOwnership:
        refused(claim, result)
        return NOTHING
    except OUTAGE:
        raise
    except Exception as error:
        log.exception("step.crashed")
        crashed = Hold("step_crashed", f"Romulus could not go on: {describe(error)}")
        try:
            return hold_crashed(claim, crashed, keeper)
        except LostOwnership:
            refused(claim, None)
            return NOTHING


def hold_crashed(claim: Claim, crashed: Hold, keeper: Keeper) -> Settled:
    """Hold the run; where that is refused, let it be done later. If the connection was lost at the
    commit, and it is held after all, that finds nobody who has it."""
    try:
        return again_if_taken_back(partial(settle, claim, crashed, keeper))
    except LostOwnership:
        raise
    except Exception as error:
        log.exception("step.not_held")
        hold_later(claim, crashed, describe(error))
        return NOTHING


def worked_out(claim: Claim) -> Result:
    return cancelled(claim) or why_not_execute(claim) or execute(claim)


def why_not_execute(claim: Claim) -> Hold | None:
    return too_many_losses(claim) or still_to_hold(claim)


def refused(claim: Claim, result: Result | None) -> None:
    """The run was taken over, or ended, meanwhile: keep what this worker brought as evidence."""
    late = None
    if isinstance(result, Done):
        try:
            late = kept(claim, result)
        except OutputNotKept:
            log.warning("output.late_not_kept")
    record_superseded(claim, late)


def cancelled(claim: Claim) -> Result | None:
    """Somebody asked for the run's end: what is open elsewhere is settled first."""
    if not claim.cancelling or unsettled(claim.run):
        return None
    by = asked_by(claim.run)
    return Cancel(by, also=partial(end_with, claim.run, by))


def end_with(run: UUID, by: str) -> None:
    """A run ends because somebody asked for it: so does what it has open, and what it started."""
    ask_to_end(Run.objects.filter(parent=run), by)
    close_all({run: by})


def too_many_losses(claim: Claim) -> Hold | None:
    if claim.step.kind == "missing":
        return Hold(
            "step_missing",
            f"{claim.workflow.name} version {claim.workflow.version} has no step "
            f"{claim.step.name}: the code changed without a new version. Bring the step back, then "
            "try again; or give the workflow a later version whose migrates(from_version="
            f"{claim.workflow.version}, …) names the step that takes its place, and run "
            "manage.py migrate_runs.",
        )
    if claim.losses < MAX_LOST_ATTEMPTS:
        return None
    return Hold(
        "workers_lost",
        f"{claim.losses} workers went quiet at step {claim.step.name}. It may be what ends them.",
    )


def execute(claim: Claim) -> Result:
    """Run the step outside any transaction and return what came of it."""
    view = RunView(claim)
    handler = handlers.get(claim.step.kind)
    if handler is not None:
        try:
            return handler(claim, view)
        except OutputsAway as error:
            return when_outputs_are_back(error)
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


def take_atomic_step(claim: Claim, keeper: Keeper) -> tuple[Result, Settled | None]:
    """A step whose own writes to this database commit together with its checkpoint, or not at all.

    The run's row is touched last, so that the lease can be renewed while the step works.

    Returns:
        What came of it; and None with it, where it is still to be settled.
    """
    settled = NOTHING
    try:
        with transaction.atomic():
            let_compute(claim)
            result = why_not_execute(claim) or execute(claim)
            if isinstance(result, Done):
                settled = settle_done(claim, result, keeper)
            else:
                transaction.set_rollback(True)
    except OutputNotKept as error:
        result = not_kept(error)
    except (IntegrityError, TransactionManagementError) as error:
        # The commit was refused for what the step wrote, or it went on after such an error.
        result = after_failure(claim, error)
    except OperationalError as error:
        if not was_taken_back(error):
            raise
        # As if a statement of its own had been the victim.
        result = after_failure(claim, error)
    if isinstance(result, Done):
        failpoint("after_atomic", claim.step.name)
        return result, settled
    return result, None


def let_compute(claim: Claim) -> None:
    """In this transaction the author's code may compute for as long as the step may take.

    The server ends any other that is idle for longer than a lease (romulus_site/database).
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('idle_in_transaction_session_timeout', %s, true)",
            [f"{round(claim.step.timeout.total_seconds() * 1000)}ms"],
        )


# --- writing what came of it ------------------------------------------------------------------


def settle(claim: Claim, result: Result, keeper: Keeper) -> Settled:
    """Write the result in one transaction."""
    if isinstance(result, Decide):
        return settle_decided(claim, result, keeper)
    if isinstance(result, Done):
        try:
            return settle_done(claim, result, keeper)
        except OutputNotKept as error:
            result = not_kept(error)
    result = fit_to_keep(result)
    match result:
        case Again():
            settle_again(claim, result)
        case Park(reason, message, also, wake_at):
            park = {"reason": reason, "message": message}
            release(claim, RunState.WAITING, failure=park, wake_at=wake_at, also=also)
        case Hold():
            settle_hold(claim, result)
        case Fail(reason, message, also):
            release(
                claim,
                RunState.FAILED,
                attempt_state=AttemptState.FAILED,
                failure={"reason": reason, "message": message},
                error=message,
                also=also,
            )
        case Cancel(by, also):
            release(claim, RunState.CANCELLED, failure=why_cancelled(by), also=also)
    return None, not isinstance(result, Again | Park)


def settle_decided(claim: Claim, undecided: Decide, keeper: Keeper) -> Settled:
    """Decide and write in one transaction, under its locks; they come before the run's."""
    settled = NOTHING
    failpoint("before_decide", claim.step.name)
    with transaction.atomic():
        fetch("lock_matching", {"keys": undecided.keys})
        hold(claim)
        result = undecided.decide()
        if result is not None:
            settled = settle(claim, result, keeper)
    failpoint("after_decide", claim.step.name)
    return settle(claim, execute(claim), keeper) if result is None else settled


def not_kept(error: OutputNotKept) -> Hold:
    """Nothing is lost yet, but trying again would do the step's work again."""
    return Hold("output_not_kept", str(error))


def settle_done(claim: Claim, done: Done, keeper: Keeper) -> Settled:
    """Commit the output and go on. Raises `OutputNotKept` with nothing committed."""
    output = kept(claim, done)
    workflow = claim.workflow
    following = (
        workflow.target(claim.step.name, done.goto)
        if done.goto
        else workflow.after(claim.step.name)
    )
    go_on = keeper.may_claim() and not is_paused(workflow.name, claim.tenant)
    next_claim = commit_step(claim, output, following, go_on=go_on, also=done.also)
    if next_claim is None and following is not None:
        hints.run_is_ready(claim.run)
    return next_claim, following is None


def kept(claim: Claim, done: Done) -> Kept:
    step = claim.step
    if done.sensitive and not step.sensitive:
        step = replace(step, sensitive=True)
    return keep_output(step, done.value, run=claim.run, attempt=claim.attempt)


def settle_again(claim: Claim, again: Again) -> None:
    failed = bool(again.message) and again.counts
    release(
        claim,
        RunState.READY,
        attempt_state=AttemptState.FAILED if failed else AttemptState.COMMITTED,
        failure={"reason": "retry", "message": again.message} if again.message else None,
        error=again.message,
        delay=again.delay,
        also=again.also,
    )
    if not again.delay:
        hints.run_is_ready(claim.run)


def settle_hold(claim: Claim, hold: Hold) -> None:
    failed = hold.reason == "step_failed"
    release(
        claim,
        RunState.HELD,
        attempt_state=AttemptState.FAILED if failed else AttemptState.COMMITTED,
        failure={"reason": hold.reason, "message": hold.message},
        error=hold.message if failed else "",
        also=hold.also or partial(open_run_hold, claim, hold.reason, hold.message),
    )
