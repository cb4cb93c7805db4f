"""Runs whose end is asked for: by whom, and what is to be seen of it."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.test import TestCase

from tests.claiming import worker
from tests.hinting import hinted
from workflows.models import Run
from workflows.services.claims import claim_run
from workflows.services.stopping import cancel_run
from workflows.services.sweep import due_runs

BY, WHY = "ada", "The customer has called it off."


def cancel(run: Run) -> str:
    outcome = cancel_run(run.pk, by=BY, reason=WHY)
    run.refresh_from_db()
    return outcome


def is_cancelled(run: Run) -> bool:
    """Whether `run` has ended by its cancellation, says so, and can never go on."""
    run.refresh_from_db()
    if run.state != "cancelled":
        return False
    assert run.failure == {"reason": "cancelled", "message": "Cancelled by ada."}
    assert run.finished_at is not None
    assert (run.lease_owner, run.lease_expires_at) == (None, None)
    assert claim_run(run.pk, worker()) is None
    assert run.pk not in due_runs()
    return True


def told_of_by(act: Callable[[], object]) -> list[UUID]:
    """The runs that workers are told of when what `act` does is committed."""
    hinted()
    with TestCase.captureOnCommitCallbacks(execute=True):
        act()
    return hinted()
