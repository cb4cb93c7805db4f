"""Somebody stops a run, or takes it over, while a worker is in the middle of a step."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now

from tests.claiming import ATOMIC, acts, attempts, claimed, commit, expire_lease, ready_run, worker
from tests.factories import advanced, ready_provider, started_run
from tests.racing import at_once, beside
from tests.scripted import scripted_provider
from tests.sending import the_operation
from tests.waiting import LIMIT_SECONDS
from workflows.core.errors import LostOwnership, RunIsOver
from workflows.models import Run, Tenant
from workflows.services.claims import claim_run
from workflows.services.ending import end_cancelled
from workflows.services.executor import advance
from workflows.services.ownership import Keeper
from workflows.services.results import result_of
from workflows.services.run_view import RunView
from workflows.services.stopping import cancel_run, pause_run, resume_run

pytestmark = pytest.mark.usefixtures("committed_db")

BY = "ada"


def elsewhere(act: Callable[[], Any]) -> Any:
    """Do `act` on another connection, as another process would; give what it returned."""
    with beside() as do:
        return do(act).result(timeout=LIMIT_SECONDS)


# --- a write in mid-call ----------------------------------------------------------------------


def in_mid_call(act: Callable[[Run], object]) -> tuple[Run, int]:
    """A run whose worker was at a write when `act` was done to it; and how often that was sent."""
    with scripted_provider() as provider:
        ready_provider("desk", provider.url, adapter="http")
        run = started_run("ticket_triage")

        def acting_meanwhile(_: object) -> bytes:
            act(run)
            connection.close()
            return provider.body

        provider.answers = acting_meanwhile
        advance(run.pk, Keeper())
        run.refresh_from_db()
        return run, len(provider.requests)


def test_a_pause_in_mid_call_is_seen_by_the_commit() -> None:
    """The worker does not know of it: its commit does."""
    run, _ = in_mid_call(lambda run: pause_run(run.pk, by=BY))
    operation = the_operation()
    assert (run.state, run.step, operation.state) == ("ready", "tell_requester", "verified")
    resume_run(run.pk, by=BY)
    run = advanced(run)
    assert (run.state, operation.transmissions.count()) == ("completed", 1)


def test_a_cancellation_in_mid_call_is_seen_by_the_commit() -> None:
    asked: list[str] = []
    run, sent = in_mid_call(lambda run: asked.append(cancel_run(run.pk, by=BY)))
    operation = the_operation()
    assert (run.state, asked, sent) == ("cancelled", ["asked"], 1)
    assert run.failure == {"reason": "cancelled", "message": "Cancelled by ada."}
    assert (operation.state, operation.resource) == ("verified", "r_1")
    receipt = run.attempts.outputs().get(step="note_in_desk").output
    assert receipt == {"operation": str(operation.pk), "resource": "r_1"}
    assert not run.attempts.filter(step="tell_requester").exists()
    assert end_cancelled() == 0


# --- a commit and a wish at once --------------------------------------------------------------


def test_of_a_commit_and_a_cancellation_at_once_the_run_ends_whole() -> None:
    for _ in range(20):
        run = ready_run()
        claim = claimed(run)
        committed, _ = at_once(
            lambda claim=claim: commit(claim, 1, go_on=False),  # type: ignore[misc]
            lambda run=run: cancel_run(run.pk, by=BY),  # type: ignore[misc]
        )
        run.refresh_from_db()
        assert run.state == "cancelled"
        if isinstance(committed, LostOwnership):
            assert attempts(run) == [("act", 1, "lost")]
        else:
            assert attempts(run) == [("act", 1, "committed")]


def test_of_the_last_commit_and_a_cancellation_at_once_one_wins() -> None:
    for _ in range(20):
        run = ready_run()
        claim = commit(claimed(run), 1)
        assert claim is not None
        committed, cancelled = at_once(
            lambda claim=claim: commit(claim, 2),  # type: ignore[misc]
            lambda run=run: cancel_run(run.pk, by=BY),  # type: ignore[misc]
        )
        run.refresh_from_db()
        if isinstance(cancelled, RunIsOver):
            assert (run.state, result_of(run), committed) == ("completed", 2, None)
        else:
            assert (run.state, type(committed)) == ("cancelled", LostOwnership)


def test_of_a_claim_and_a_pause_at_once_the_run_is_held_by_one_or_nobody() -> None:
    for _ in range(20):
        run, other = ready_run(), worker()
        claim, _ = at_once(
            lambda run=run, other=other: claim_run(run.pk, other),  # type: ignore[misc]
            lambda run=run: pause_run(run.pk, by=BY),  # type: ignore[misc]
        )
        run.refresh_from_db()
        assert run.paused_at is not None
        assert run.state == ("running" if claim else "ready")
        assert claim_run(run.pk, other) is None


def test_two_cancellations_at_once_cancel_once() -> None:
    for _ in range(10):
        run = ready_run()
        given = at_once(*[lambda run=run: cancel_run(run.pk, by=BY)] * 4)  # type: ignore[misc]
        assert sum(isinstance(each, RunIsOver) for each in given) == 3
        run.refresh_from_db()
        assert run.state == "cancelled"


# --- an atomic step ---------------------------------------------------------------------------


def written() -> list[str]:
    return list(Tenant.objects.filter(slug__startswith="row").values_list("slug", flat=True))


def writing(meanwhile: Callable[[], object]) -> Callable[[RunView], int]:
    """An atomic step that writes a row, and while it is at it something happens elsewhere."""

    def work(view: RunView) -> int:
        Tenant.objects.create(slug=f"row{view.attempt}", name="Row")
        elsewhere(meanwhile)
        return view.attempt

    return work


def test_what_an_atomic_step_wrote_that_lost_its_lease_is_undone() -> None:
    """P2: and its successor finds nothing of it."""
    run = ready_run(ATOMIC)

    def take_over() -> None:
        expire_lease(run)
        claimed(run)

    acts["act"] = writing(take_over)
    run = advanced(run)
    assert (run.state, run.fence, written()) == ("running", 2, [])
    assert attempts(run) == [("act", 1, "superseded"), ("act", 2, "running")]

    acts["act"] = writing(lambda: None)
    expire_lease(run)
    run = advanced(run)
    assert (run.state, result_of(run), written()) == ("completed", 3, ["row3"])


def test_what_an_atomic_step_wrote_whose_run_was_cancelled_is_undone() -> None:
    run = ready_run(ATOMIC)
    acts["act"] = writing(lambda: cancel_run(run.pk, by=BY))
    run = advanced(run)
    assert (run.state, written()) == ("cancelled", [])
    assert attempts(run) == [("act", 1, "superseded")]


def test_an_atomic_step_whose_run_is_paused_commits_and_the_run_stops_after_it() -> None:
    run = ready_run(ATOMIC)
    acts["act"] = writing(lambda: pause_run(run.pk, by=BY))
    run = advanced(run)
    assert (run.state, run.step, written()) == ("ready", "after", ["row1"])


def test_nobody_sees_what_an_atomic_step_writes_before_its_checkpoint() -> None:
    seen: list[Any] = []
    run = ready_run(ATOMIC)

    def look() -> None:
        seen.append((written(), run.attempts.outputs().count()))

    acts["act"] = writing(look)
    assert (advanced(run).state, seen, written()) == ("completed", [([], 0)], ["row1"])


def test_the_lease_of_an_atomic_step_is_renewed_while_it_works() -> None:
    """The run's row is not locked meanwhile."""
    keeper = Keeper()
    run = ready_run(ATOMIC)
    ends: list[datetime] = []

    def end_of_lease() -> datetime:
        return Run.objects.values_list("lease_expires_at", flat=True).get(pk=run.pk)

    def renew() -> None:
        Run.objects.filter(pk=run.pk).update(lease_expires_at=Now() + timedelta(seconds=1))
        ends.append(end_of_lease())
        keeper.renew()
        ends.append(end_of_lease())

    acts["act"] = writing(renew)
    run = advanced(run, keeper)
    before, after = ends
    assert run.state == "completed"
    assert after - before > timedelta(seconds=5), (before, after, keeper.lease)
