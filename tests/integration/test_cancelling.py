"""Cancelling a run: at once where nothing is open elsewhere, and what the sweep does of it.

None of these tests has a worker that is alive, but where it says so.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db.models.functions import Now

from reconciliation.models import AuditEntry, Hold
from tests.cancelling import BY, WHY, cancel, is_cancelled
from tests.claiming import (
    ONCE,
    RESTED,
    RETRIED,
    acts,
    attempts,
    claimed,
    commit,
    lose_worker,
    raising,
    ready_run,
    worker,
)
from tests.factories import advanced, ready_provider, started_run, tenant
from tests.sending import about_to_send
from workflows.core.definitions import Workflow
from workflows.core.errors import LostOwnership, RunIsOver, UsageError
from workflows.core.retry import MAX_LOST_ATTEMPTS
from workflows.models import Run
from workflows.registry import registry
from workflows.services import ending
from workflows.services.claims import claim_next
from workflows.services.ending import end_cancelled
from workflows.services.results import result_of
from workflows.services.run_view import RunView
from workflows.services.runs import start
from workflows.services.stopping import cancel_run, pause_all, pause_run

pytestmark = pytest.mark.django_db

# --- nothing is open elsewhere ----------------------------------------------------------------

sleeper = Workflow("tests.cancelled_sleeper")


@sleeper.sleep()
def rest(run: RunView) -> timedelta:
    return timedelta(hours=1)


def resting() -> Run:
    return advanced(ready_run(RESTED, raising(TimeoutError())))


def sleeping() -> Run:
    registry.add(sleeper)
    return advanced(start(sleeper.name, {}, tenant=tenant()))


def held() -> Run:
    run = ready_run()
    for _ in range(MAX_LOST_ATTEMPTS):
        lose_worker(run)
    return advanced(run)


def running() -> Run:
    run = ready_run()
    claimed(run)
    run.refresh_from_db()
    return run


def left_lying() -> Run:
    run = ready_run()
    lose_worker(run)
    run.refresh_from_db()
    return run


def paused() -> Run:
    run = ready_run()
    pause_run(run.pk, by=BY)
    return run


def of_a_paused_workflow() -> Run:
    run = ready_run()
    pause_all(by=BY, reason=WHY, workflow=run.workflow)
    return run


def of_a_version_that_is_not_here() -> Run:
    run = ready_run()
    Run.objects.update(version=99)
    run.refresh_from_db()
    return run


@pytest.mark.parametrize(
    ("run_of", "state"),
    [
        (ready_run, "ready"),
        (resting, "ready"),
        (sleeping, "waiting"),
        (held, "held"),
        (running, "running"),
        (left_lying, "running"),
        (paused, "ready"),
        (of_a_paused_workflow, "ready"),
        (of_a_version_that_is_not_here, "ready"),
    ],
)
def test_a_run_that_has_nothing_open_elsewhere_ends_at_once(
    run_of: Callable[[], Run], state: str
) -> None:
    run = run_of()
    assert run.state == state
    assert cancel(run) == "cancelled"
    assert is_cancelled(run)
    assert result_of(run) is None


def test_the_record_says_who_did_it_and_why() -> None:
    run = ready_run()
    cancel(run)
    assert (run.cancel_asked_by, run.cancel_asked_at is not None) == (BY, True)
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.verb, entry.object) == (BY, "run cancelled", f"run:{run.pk}")
    assert entry.detail == {"reason": WHY}


def test_the_hold_of_a_held_run_is_closed_and_its_queue_is_rid_of_it() -> None:
    run = held()
    hold = Hold.objects.get()
    assert hold.state == "open"
    cancel(run)
    hold.refresh_from_db()
    assert (hold.state, hold.closed_at is not None) == ("closed", True)
    closed = AuditEntry.objects.get(verb="hold closed: the run was cancelled")
    assert closed.detail == {"by": BY, "holds": [str(hold.pk)]}


def test_the_purge_looks_at_a_cancelled_run_too() -> None:
    run = ready_run()
    cancel(run)
    assert run.purge_at is not None


@pytest.mark.parametrize("end", [lambda _: 1, raising(ValueError())], ids=["completed", "failed"])
def test_a_run_that_is_over_is_not_cancelled(end: Callable[[RunView], int]) -> None:
    run = advanced(ready_run(ONCE, end))
    before = Run.objects.values().get()
    with pytest.raises(RunIsOver, match=f"run {run.pk} is {run.state} already"):
        cancel(run)
    assert Run.objects.values().get() == before
    assert not AuditEntry.objects.exists()


def test_a_run_is_cancelled_once() -> None:
    run = ready_run()
    cancel(run)
    before = Run.objects.values().get()
    with pytest.raises(RunIsOver, match="is cancelled already"):
        cancel_run(run.pk, by="grace")
    assert Run.objects.values().get() == before
    assert AuditEntry.objects.count() == 1


def test_a_run_that_is_not_there_is_not_cancelled() -> None:
    with pytest.raises(Run.DoesNotExist):
        cancel_run(uuid4(), by=BY)
    with pytest.raises(UsageError):
        cancel_run(ready_run().pk, by="")


# --- a step that is under way -----------------------------------------------------------------


def cancelling(run: Run, value: Any) -> Callable[[RunView], Any]:
    """A step that is under way when its run is cancelled, and brings `value` or raises it."""

    def work(view: RunView) -> Any:
        assert cancel_run(run.pk, by=BY) == "cancelled"
        if isinstance(value, Exception):
            raise value
        return value

    return work


def test_what_a_step_brings_too_late_is_kept_as_evidence_and_goes_no_further() -> None:
    run = ready_run()
    acts["act"] = cancelling(run, {"a": 1})
    run = advanced(run)
    assert is_cancelled(run)
    assert attempts(run) == [("act", 1, "superseded")]
    late = run.attempts.get()
    assert (late.output, late.output_form) == ({"a": 1}, "plain")
    assert late.error == "the run was cancelled by ada meanwhile"
    assert (late.fence, late.ended_at is not None) == (1, True)
    assert not run.attempts.outputs().exists()  # nobody reads it
    assert result_of(run) is None


@pytest.mark.parametrize(
    "error", [ValueError("no such order"), TimeoutError("again, please")], ids=repr
)
def test_a_step_that_fails_too_late_neither_fails_the_run_nor_is_tried_again(
    error: Exception,
) -> None:
    run = ready_run(RETRIED)
    acts["act"] = cancelling(run, error)
    run = advanced(run)
    assert is_cancelled(run)
    assert attempts(run) == [("act", 1, "superseded")]
    assert run.attempts.get().output_form is None


def test_an_output_that_cannot_be_stored_opens_no_hold_for_a_run_that_was_cancelled() -> None:
    run = ready_run()
    acts["act"] = cancelling(run, object())
    assert is_cancelled(advanced(run))
    assert not Hold.objects.exists()


def test_the_last_step_of_a_cancelled_run_does_not_complete_it() -> None:
    run = ready_run()
    claim = commit(claimed(run), 1)
    assert claim is not None
    cancel(run)
    with pytest.raises(LostOwnership):
        commit(claim, 2)
    assert is_cancelled(run)
    assert run.attempts.get(step="act").state == "committed"


def test_a_worker_that_went_quiet_is_not_replaced() -> None:
    run = left_lying()
    cancel(run)
    assert claim_next(worker()) is None
    assert attempts(run) == [("act", 1, "lost")]


# --- the sweep --------------------------------------------------------------------------------


def asked(run: Run) -> Run:
    """Its end was asked for, and not carried out yet."""
    Run.objects.filter(pk=run.pk).update(cancel_asked_at=Now(), cancel_asked_by=BY)
    return run


@pytest.mark.parametrize("run_of", [ready_run, sleeping, held, running])
def test_what_was_asked_for_the_sweep_carries_out(run_of: Callable[[], Run]) -> None:
    run = asked(run_of())
    assert end_cancelled() == 1
    assert is_cancelled(run)
    assert end_cancelled() == 0


def test_a_worker_that_comes_first_ends_it_and_does_no_step() -> None:
    ran: list[int] = []
    run = asked(ready_run(ONCE, lambda _: ran.append(1)))
    run = advanced(run)
    assert is_cancelled(run)
    assert ran == []


def test_a_step_that_is_under_way_when_its_end_is_asked_for_is_the_last() -> None:
    """It commits before the sweep comes by: nothing of it is lost, and nothing follows."""
    run = ready_run()

    def work(view: RunView) -> int:
        asked(run)
        return 7

    acts["act"] = work
    run = advanced(run)
    assert is_cancelled(run)
    assert attempts(run) == [("act", 1, "committed")]
    assert run.attempts.outputs().get().output == 7


def test_those_that_have_something_to_settle_do_not_keep_others_from_their_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ending, "BATCH", 1)
    ready_provider("payments")
    first = started_run("refund")
    about_to_send(first)  # its worker is at it
    asked(first)
    run = asked(ready_run())
    assert any(end_cancelled() for _ in range(100))
    assert is_cancelled(run)
    first.refresh_from_db()
    assert first.state == "running"
