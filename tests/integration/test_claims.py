"""Holding a run: who gets it, and what a stale holder can no longer do.

Promise P2, and that no run is ever left without a reason (P12).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from reconciliation.models import Hold
from tests.claiming import (
    ONCE,
    RETRIED,
    acts,
    attempts,
    claimed,
    commit,
    expire_lease,
    lose_worker,
    moment,
    raising,
    ready_run,
    worker,
)
from tests.factories import advanced
from tests.waiting import wait_for
from workflows.core.errors import LostOwnership
from workflows.core.retry import MAX_LOST_ATTEMPTS
from workflows.core.states import AttemptState, RunState
from workflows.models import Run, Worker
from workflows.services.claims import Claim, claim_run, record_superseded, release
from workflows.services.ownership import Keeper
from workflows.services.results import result_of
from workflows.services.run_view import RunView

pytestmark = pytest.mark.django_db

# --- who gets it ------------------------------------------------------------------------------


def test_a_ready_run_that_is_due_is_claimed_under_a_lease_and_a_fence(settings: Settings) -> None:
    run = ready_run()
    claim = claimed(run)
    run.refresh_from_db()
    assert (run.state, run.fence, run.lease_owner) == ("running", 1, claim.worker)
    assert run.lease_expires_at is not None
    assert run.claimed_at is not None
    lease = run.lease_expires_at - run.claimed_at
    assert lease.total_seconds() == settings.ROMULUS_LEASE_SECONDS
    assert (run.attempt, run.tries, run.claimed_at) == (claim.attempt, 1, moment(claim))
    assert (claim.step.name, claim.failures, claim.losses) == ("act", 0, 0)
    assert not run.attempts.exists()  # its row is written when it ends


def test_a_run_that_is_not_due_is_not_claimed() -> None:
    run = ready_run()
    Run.objects.filter(pk=run.pk).update(ready_at=Now() + timedelta(seconds=30))
    assert claim_run(run.pk, worker()) is None
    run.refresh_from_db()
    assert (run.state, run.fence, run.tries) == ("ready", 0, 0)


def test_a_run_that_another_worker_holds_is_not_claimed() -> None:
    run = ready_run()
    claim = claimed(run)
    assert claim_run(run.pk, worker()) is None
    assert claim_run(run.pk, claim.worker) is None  # nor once more by the same one
    assert attempts(run) == [("act", 1, "running")]


@pytest.mark.parametrize("state", ["waiting", "held", "completed", "failed", "cancelled"])
def test_a_run_that_is_neither_ready_nor_left_lying_is_not_claimed(state: str) -> None:
    run = ready_run()
    finished = Now() if state in ("completed", "failed", "cancelled") else None
    Run.objects.filter(pk=run.pk).update(state=state, finished_at=finished)
    assert claim_run(run.pk, worker()) is None


def test_a_run_that_does_not_exist_is_not_claimed() -> None:
    assert claim_run(uuid4(), worker()) is None


@pytest.mark.parametrize("other", [{"version": 2}, {"workflow": "tests.unknown"}])
def test_a_version_that_this_process_does_not_have_is_left_to_others(other: dict[str, Any]) -> None:
    """A11: an old worker leaves what it does not know alone, and uses up no try."""
    run = ready_run()
    Run.objects.filter(pk=run.pk).update(**other)
    assert claim_run(run.pk, worker()) is None
    run.refresh_from_db()
    assert (run.state, run.fence, run.tries) == ("ready", 0, 0)


def test_a_run_whose_lease_ran_out_is_taken_over_and_the_earlier_attempt_is_lost() -> None:
    run = ready_run()
    first = claimed(run)
    expire_lease(run)
    second = claimed(run)
    run.refresh_from_db()
    assert (run.fence, run.lease_owner) == (2, second.worker)
    assert attempts(run) == [("act", 1, "lost"), ("act", 2, "running")]
    lost = run.attempts.get(pk=first.attempt)
    assert (lost.worker, lost.fence, lost.claimed_at) == (first.worker, 1, moment(first))
    assert lost.ended_at is not None
    assert "its lease ended" in lost.error
    assert (second.losses, second.failures, second.number) == (1, 0, 2)


def test_the_fence_grows_with_every_claim_and_every_step() -> None:
    run = ready_run()
    fences = [claimed(run).fence]
    expire_lease(run)
    second = claimed(run)
    following = commit(second, 1)
    assert following is not None
    fences += [second.fence, following.fence]
    assert fences == [1, 2, 3]


def test_a_position_that_the_workflow_no_longer_has_is_held_with_that_reason() -> None:
    run = ready_run()
    Run.objects.filter(pk=run.pk).update(step="renamed")
    run = advanced(run)
    assert run.state == "held"
    assert run.failure["reason"] == "step_missing"
    assert Hold.objects.get(run=run).reason == "step_missing"


# --- what commits -----------------------------------------------------------------------------


def test_output_end_of_attempt_and_move_are_one_and_the_next_attempt_is_open() -> None:
    run = ready_run()
    claim = claimed(run)
    following = commit(claim, {"a": 1})
    run.refresh_from_db()
    assert (run.state, run.step, run.fence) == ("running", "after", 2)
    kept = run.attempts.outputs().get()
    assert (kept.pk, kept.output, kept.output_form) == (claim.attempt, {"a": 1}, "plain")
    assert kept.ended_at is not None
    assert attempts(run) == [("act", 1, "committed"), ("after", 1, "running")]
    assert following is not None
    assert (following.fence, kept.claimed_at) == (2, moment(claim))
    assert (run.attempt, run.claimed_at) == (following.attempt, moment(following))
    assert run.claimed_at == kept.ended_at


def test_a_worker_that_may_not_go_on_hands_the_run_back() -> None:
    run = ready_run()
    assert commit(claimed(run), 1, go_on=False) is None
    run.refresh_from_db()
    assert (run.state, run.step, run.lease_owner) == ("ready", "after", None)
    assert claimed(run).step.name == "after"


def test_the_last_output_is_the_result() -> None:
    run = advanced(ready_run(ONCE, lambda _: {"total": "1.50"}))
    assert (run.state, run.failure) == ("completed", None)
    assert result_of(run) == {"total": "1.50"}
    assert run.finished_at is not None


def stale_and_present(run: Run) -> tuple[Claim, Claim]:
    stale = claimed(run)
    expire_lease(run)
    return stale, claimed(run)


def record_of(run: Run) -> tuple[Any, ...]:
    """Everything that is stored of a run, but for the states of its lost attempts."""
    run.refresh_from_db()
    ended = run.attempts.exclude(state="lost")
    return (
        *(getattr(run, field.attname) for field in Run._meta.concrete_fields),
        list(ended.values_list("pk", "state", "ended_at", "output")),
    )


@pytest.mark.parametrize(
    "late",
    [
        lambda claim: commit(claim, "late"),
        lambda claim: commit(claim, "late", go_on=False),
        lambda claim: release(claim, RunState.READY, delay=timedelta(0)),
        lambda claim: release(claim, RunState.FAILED, attempt_state=AttemptState.FAILED),
        lambda claim: release(claim, RunState.HELD),
        lambda claim: release(claim, RunState.WAITING),
    ],
)
def test_a_stale_claim_changes_nothing_and_is_told(late: Callable[[Claim], Any]) -> None:
    """A10: the later holder's lease is neither shortened nor prolonged."""
    run = ready_run()
    stale, _ = stale_and_present(run)
    before = record_of(run)
    with pytest.raises(LostOwnership, match=f"run {run.pk}: fence 1 holds it no more"):
        late(stale)
    assert record_of(run) == before


def test_what_should_commit_with_a_stale_claim_is_undone_with_it() -> None:
    run = ready_run()
    stale, _ = stale_and_present(run)

    def also() -> None:
        Run.objects.filter(pk=run.pk).update(labels={"written": "by the stale one"})

    with pytest.raises(LostOwnership):
        commit(stale, 1, also=also)
    run.refresh_from_db()
    assert run.labels == {}


@pytest.mark.parametrize("changed", [{"fence": 2}, {"worker": uuid4()}])
def test_neither_the_fence_nor_the_worker_alone_is_enough(changed: dict[str, Any]) -> None:
    """A10: the same worker's name under another fence, or another's name under the same one."""
    run = ready_run()
    claim = claimed(run)
    with pytest.raises(LostOwnership):
        commit(replace(claim, **changed), 1)
    assert commit(claim, 1)


def test_a_late_commit_is_recorded_as_superseded_and_what_it_brought_is_evidence() -> None:
    run = ready_run()

    def overtaken(view: RunView) -> int:
        expire_lease(run)
        claimed(run)
        return 1

    acts["act"] = overtaken
    run = advanced(run)
    assert (run.state, run.fence) == ("running", 2)
    assert attempts(run) == [("act", 1, "superseded"), ("act", 2, "running")]
    assert run.attempts.get(state="superseded").output == 1
    assert not run.attempts.outputs().exists()  # nothing reads it


def test_an_attempt_that_ended_well_is_never_called_superseded() -> None:
    run = ready_run()
    claim = claimed(run)
    commit(claim, 1)
    record_superseded(claim)
    assert attempts(run)[0] == ("act", 1, "committed")


# --- workers that go quiet --------------------------------------------------------------------


def test_a_step_that_ends_its_workers_is_held_with_the_reason_and_never_run_again() -> None:
    """A13: crashed claims count, in the database."""
    ran: list[int] = []
    run = ready_run(ONCE, lambda _: ran.append(1))
    for _ in range(MAX_LOST_ATTEMPTS):
        lose_worker(run)
    run = advanced(run)
    hold = Hold.objects.get(run=run)
    assert (run.state, run.failure["reason"], ran) == ("held", "workers_lost", [])
    assert hold.reason == "workers_lost"
    assert hold.message.startswith("3 workers went quiet at step act.")


def test_fewer_losses_than_that_are_borne() -> None:
    run = ready_run()
    for _ in range(MAX_LOST_ATTEMPTS - 1):
        lose_worker(run)
    assert advanced(run).state == "completed"


def test_losses_and_failures_are_counted_apart() -> None:
    run = ready_run(RETRIED, raising(ValueError()))
    lose_worker(run)
    run = advanced(run)
    lose_worker(run)
    claim = claimed(run)
    assert (claim.failures, claim.losses, claim.number) == (1, 2, 4)


def test_losses_at_one_step_do_not_count_at_the_next() -> None:
    run = ready_run()
    lose_worker(run)
    lose_worker(run)
    following = commit(claimed(run), 1, go_on=False)
    assert following is None
    claim = claimed(run)
    assert (claim.step.name, claim.losses, claim.number) == ("after", 0, 1)


def test_a_step_that_always_outlasts_its_lease_is_held_too() -> None:
    run = ready_run()
    earlier: Claim | None = None
    for _ in range(MAX_LOST_ATTEMPTS + 1):
        claim = claimed(run)
        if earlier:  # which ends now, too late
            record_superseded(earlier)
        earlier = claim
        expire_lease(run)
    assert claimed(run).losses >= MAX_LOST_ATTEMPTS


# --- a worker that cannot prove its leases ----------------------------------------------------


def test_a_keeper_that_could_not_renew_claims_nothing_until_it_can(settings: Settings) -> None:
    settings.ROMULUS_LEASE_SECONDS = 0.05
    keeper = Keeper()
    run = ready_run()
    wait_for(lambda: not keeper.may_claim(), "its proof is over")
    run = advanced(run, keeper)
    assert (run.state, run.fence) == ("ready", 0)

    keeper.lease = 30
    keeper.renew()
    assert advanced(run, keeper).state == "completed"


def test_a_keeper_that_is_closing_finishes_its_step_and_takes_up_nothing_new() -> None:
    keeper = Keeper()

    def close(view: RunView) -> int:
        keeper.close()
        return 1

    run = ready_run(ONCE, close)
    run = advanced(run, keeper)
    assert (run.state, run.step) == ("ready", "after")
    assert advanced(run, keeper).state == "ready"
    assert advanced(run, Keeper()).state == "completed"


def test_a_keeper_tells_what_its_process_has() -> None:
    keeper = Keeper()
    row = Worker.objects.get(pk=keeper.worker)
    assert ["refund", 1] in row.workflows
    assert isinstance(row.seen_at, datetime)
