"""What follows when a step's own code raised."""

from __future__ import annotations

import random
from datetime import timedelta

import structlog
from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import TransactionManagementError
from psycopg.pq import TransactionStatus

from workflows.core.errors import LostOwnership, OutputsAway
from workflows.core.retry import is_permanent
from workflows.core.steps import StepFunction
from workflows.core.words import describe
from workflows.services.claims import Claim
from workflows.services.kinds import Again, Fail, Hold
from workflows.services.run_view import RunView

log = structlog.get_logger(__name__)

STORAGE_REST = timedelta(seconds=10)
LEFT_OPEN = (
    "it left a transaction open, which was undone: end what it begins, or declare the step atomic"
)
# Not the step's fault: the attempt is left to its lease, so that an outage fails no step for good.
OUTAGE = (OperationalError, InterfaceError, LostOwnership)


def call(
    claim: Claim, view: RunView, function: StepFunction | None = None
) -> tuple[object, Again | Hold | Fail | None]:
    """Call the step's function; return its value, or what follows from what it raised.

    Whatever the author's code raises is its result, never this process's end. So is a transaction
    that it leaves open: nothing that is written after it would be committed.

    Args:
        function: another one that its author has given, called in the step's place.

    Raises:
        OperationalError, InterfaceError: the database went away meanwhile.
    """
    own = connections[DEFAULT_DB_ALIAS]  # looked up once: each step comes this way
    was_open = own.in_atomic_block
    value, problem = outcome(claim, view, function)
    if was_open or not in_transaction(own):
        return value, problem
    undo_transaction(own)
    return None, problem or after_failure(claim, TransactionManagementError(LEFT_OPEN))


def outcome(
    claim: Claim, view: RunView, function: StepFunction | None
) -> tuple[object, Again | Hold | Fail | None]:
    try:
        return (function or claim.step.function)(view), None
    except OUTAGE as error:
        if isinstance(error, LostOwnership) or session_is_over():
            raise
        # A deadlock, a statement that took too long, another database of the author's own.
        return None, after_failure(claim, error)
    except OutputsAway as error:
        return None, when_outputs_are_back(error)
    except BaseException as error:  # noqa: BLE001 (its result, never our end)
        # Also what ends a process or a coroutine, such as `asyncio.CancelledError`.
        return None, after_failure(claim, error)


def in_transaction(own: BaseDatabaseWrapper) -> bool:
    """Whether what this thread writes to the database now is committed by somebody else."""
    if own.in_atomic_block:
        return True
    raw = own.connection
    if raw is None or raw.closed:
        return False
    return not raw.autocommit or raw.pgconn.transaction_status != TransactionStatus.IDLE


def undo_transaction(own: BaseDatabaseWrapper) -> None:
    """Give the session up, and with it whatever is open there."""
    own.in_atomic_block = False  # else Django would keep what is closed
    own.close()


def session_is_over() -> bool:
    """Whether this thread has lost its session with the database, or is to give it up."""
    raw = connection.connection
    return raw is None or raw.closed or connection.close_at == 0


def when_outputs_are_back(error: OutputsAway) -> Again:
    """Not the step's fault, and nothing is lost: it reads once more when it can."""
    return Again(STORAGE_REST, str(error), counts=False)


def after_failure(claim: Claim, error: BaseException) -> Again | Hold | Fail:
    """Say how the run goes on after the step raised `error`."""
    log.warning("step.failed", error=type(error).__name__)
    message = describe(error)
    delay = None
    if not is_permanent(error):
        delay = claim.step.retry.delay(claim.failures + 1, random.random())  # noqa: S311 (jitter)
    if delay is not None:
        return Again(delay, message)
    if claim.step.on_failure == "hold":
        return Hold("step_failed", message)
    return Fail("step_failed", message)
