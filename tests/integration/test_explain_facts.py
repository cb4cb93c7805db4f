"""What is gathered from the database when a run is explained, and in how many queries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from reconciliation.models import Operation
from tests.claiming import RESTED, claimed, expire_lease, raising, ready_run
from tests.destination import RunningDestination
from tests.factories import (
    advanced,
    held_operation,
    many_runs,
    ready_provider,
    started_run,
    tenant,
)
from tests.flows import batch, driven, looping, parted
from tests.statements import statements
from workflows.core.explain import Cause, Explanation
from workflows.models import Run, Tenant, Worker
from workflows.selectors import explain_run, explain_runs
from workflows.selectors.run_parts import run_parts
from workflows.services.children import ask_to_end
from workflows.services.clock import database_now
from workflows.services.stopping import cancel_run, pause_all, pause_run

pytestmark = pytest.mark.django_db

ADA = "user:3 ada"


def explained(run: Run) -> Explanation:
    run.refresh_from_db()
    return explain_run(run, run_parts(run, None))


def alive(*pairs: tuple[str, int], **seen: Any) -> Worker:
    """A live worker with these workflows, that has just swept."""
    given = {"host": "host", "pid": 17, "swept_at": database_now()} | seen
    return Worker.objects.create(workflows=[list(pair) for pair in pairs], **given)


def aged(seconds: float) -> Any:
    return Now() - timedelta(seconds=seconds)


# --- workers ----------------------------------------------------------------------------------


def test_without_a_worker_it_tells_which_are_alive_with_what() -> None:
    alive(("refund", 7), ("triage", 1))
    Worker.objects.filter(pk=alive(("refund", 1), pid=18).pk).update(seen_at=aged(16))
    said = explained(started_run())
    assert said.cause is Cause.NO_WORKER
    assert said.sentence.endswith(
        "none of the 1 live workers has refund version 1. They have version 7 (1 worker)."
    )
    assert said.facts["workers"] == [
        {"name": "host/17", "workflows": ["refund v7", "triage v1"]},
    ]


def test_a_run_at_work_tells_by_whom_since_when_and_until_when() -> None:
    run = ready_run()
    claimed(run)
    said = explained(run)
    assert said.cause is Cause.LEASED
    assert (said.facts["worker"], said.facts["try"]) == ("here/1", 1)
    assert said.facts["since"] == run.claimed_at
    assert said.facts["lease_expires_at"] == run.lease_expires_at


def test_an_expired_lease_tells_how_many_tries_were_lost() -> None:
    run = ready_run()
    alive(("tests.once", 1))
    for lost in (1, 2):
        claimed(run)
        expire_lease(run)
        said = explained(run)
        assert said.cause is Cause.LEASE_EXPIRED
        assert said.facts["lost_tries"] == lost


def test_a_retry_tells_when_it_is_due() -> None:
    alive(("tests.rested", 1))
    run = advanced(ready_run(RESTED, raising(OSError("no answer"))))
    said = explained(run)
    assert said.cause is Cause.RETRY
    assert said.facts["ready_at"] == run.ready_at
    assert said.facts["next_try"] == 2
    assert "OSError: no answer" in said.sentence


def test_a_due_run_tells_that_the_broker_is_away() -> None:
    worker = alive(("refund", 1))
    run = started_run()
    assert explained(run).cause is Cause.BACKLOG
    Worker.objects.filter(pk=worker.pk).update(broker_away_since=aged(70))
    said = explained(run)
    worker.refresh_from_db()
    assert said.cause is Cause.BROKER_AWAY
    assert said.facts["broker_away_since"] == worker.broker_away_since
    assert "the next sweep" in said.moves


def test_a_due_run_tells_that_the_sweep_is_behind() -> None:
    worker = alive(("refund", 1))
    run = started_run()
    Worker.objects.filter(pk=worker.pk).update(swept_at=aged(16))
    assert explained(run).cause is Cause.BACKLOG
    Run.objects.filter(pk=run.pk).update(ready_at=aged(40))
    said = explained(run)
    assert said.cause is Cause.SWEEP_BEHIND
    assert "16 s" in said.sentence
    # Another worker's sweep is as good.
    alive(("refund", 1), pid=18)
    assert explained(run).cause is Cause.BACKLOG


def test_only_runs_that_can_be_taken_are_ahead() -> None:
    alive(("refund", 1), ("ticket_triage", 1))
    Tenant.objects.create(slug="south", name="South")
    many_runs(1, "ready", version=2)  # nobody has it
    many_runs(1, "ready", paused_at=database_now(), paused_by=ADA)
    many_runs(1, "ready", workflow="ticket_triage")
    many_runs(1, "ready", ready_at=database_now() + timedelta(hours=1))
    many_runs(2, "ready")
    run = started_run()
    assert explained(run).facts["ahead"] == 3
    pause_all(by=ADA, reason="Moving.", workflow="ticket_triage")
    assert explained(run).facts["ahead"] == 2


# --- waiting ----------------------------------------------------------------------------------


def test_a_sleeping_run_tells_until_when() -> None:
    run = driven(looping, times=2, rest=3600)
    said = explained(run)
    assert said.cause is Cause.SLEEPING
    assert said.facts["wake_at"] == run.wake_at
    assert "at step 3 of 5, rest until" in said.sentence


def test_a_run_that_waits_for_others_counts_them_as_they_are_now() -> None:
    run = driven(batch, does="cchfsssss")
    said = explained(run)
    assert said.cause is Cause.CHILDREN
    counts = {name: said.facts[name] for name in ("started", "completed", "failed", "held")}
    assert counts == {"started": 9, "completed": 2, "failed": 1, "held": 1}
    assert (said.facts["at_work"], said.facts["queued"]) == (4, 1)
    (held,) = Run.objects.filter(parent=run, state="held")
    assert said.facts["held_runs"] == [{"id": str(held.pk), "name": "Tests: item, file: 002"}]
    # What its row says is as old as the last look at it.
    Run.objects.filter(pk=held.pk).update(state="ready")
    assert explained(run).facts["held"] == 0


def test_a_run_that_waits_for_its_turn_tells_how_many_may_be_at_work() -> None:
    run = driven(batch, does="ssssss")
    last = Run.objects.filter(parent=run).order_by("parent_index").last()
    assert last is not None
    said = explained(last)
    assert said.cause is Cause.TURN
    assert (said.facts["at_once"], said.facts["at_work_beside"], said.facts["queued"]) == (4, 4, 2)
    assert "of the 6 runs started with it 4 may be at work at once" in said.sentence


def test_a_branch_counts_its_own_steps_and_its_parent_the_main_line() -> None:
    run = driven(parted)
    assert "at step 2 of 3, ship" in explained(run).sentence
    held = Run.objects.get(parent=run, state="held")
    assert explained(held).sentence.startswith("It is held at step 1 of 2, bill.")


# --- stopped ----------------------------------------------------------------------------------


def test_a_paused_run_tells_by_whom_and_why() -> None:
    run = started_run()
    pause_run(run.pk, by=ADA, reason="The auditor is here.")
    said = explained(run)
    assert said.cause is Cause.RUN_PAUSED
    assert said.owner == "ada"
    assert said.sentence.endswith("UTC: The auditor is here.")
    assert said.facts["paused"][0]["by"] == ADA


@pytest.mark.parametrize(
    ("what", "scope"),
    [
        ("workflow refund for tenant Northwind", lambda: ("refund", tenant())),
        ("tenant Northwind", lambda: ("", tenant())),
        ("workflow refund", lambda: ("refund", None)),
    ],
)
def test_a_pause_of_more_than_the_run_is_told(
    what: str, scope: Callable[[], tuple[str, Tenant | None]]
) -> None:
    run = started_run()
    workflow, of = scope()
    elsewhere = Tenant.objects.create(slug="south", name="South")
    pause_all(by="command:ops", reason="Not ours.", tenant=elsewhere)
    pause_all(by="command:ops", reason="Not ours.", workflow="refund", tenant=elsewhere)
    pause_all(by="command:ops", reason="Moving house.", workflow=workflow, tenant=of)
    said = explained(run)
    assert said.cause is Cause.PAUSED
    assert f"{what} is paused by ops at the terminal since" in said.sentence
    assert said.moves == f"Resuming {what}."
    assert [each["what"] for each in said.facts["paused"]] == [what]


def test_of_several_pauses_the_most_specific_is_told() -> None:
    run = started_run()
    pause_all(by=ADA, reason="All.", workflow="refund")
    pause_all(by=ADA, reason="Here.", workflow="refund", tenant=run.tenant)
    assert "workflow refund for tenant Northwind is paused" in explained(run).sentence


def test_a_cancellation_tells_what_is_settled_first_and_for_whom_it_is_held(
    destination: RunningDestination,
) -> None:
    ready_provider("desk", destination.url)
    run = held_operation(destination).run
    cancel_run(run.pk, by=ADA, reason="Withdrawn.")
    said = explained(run)
    assert said.cause is Cause.CANCELLING
    assert said.facts["unsettled"] == Operation.objects.get().summary
    assert said.facts["cancel"]["reason"] == "Withdrawn."
    assert said.owner == "reviewer_1"
    assert said.moves.endswith("The run ends then.")


def test_a_cancellation_with_nothing_open_is_the_sweep_s() -> None:
    run = started_run()
    ask_to_end(Run.objects.filter(pk=run.pk), by="step collect of its parent")
    alive(("other", 1))
    said = explained(run)
    assert said.cause is Cause.CANCELLING
    assert said.moves == "The next sweep ends it."


# --- many -------------------------------------------------------------------------------------


def queries(runs: list[Run]) -> int:
    now = database_now()
    with statements() as sent:
        assert len(explain_runs(runs, now)) == len(runs)
    return len(sent)


def all_kinds() -> list[Run]:
    """One run or more in every state and with every cause."""
    run = driven(batch, does="chsssss")
    driven(parted)
    driven(looping, times=1)
    driven(looping, times=2, rest=60)
    for each in many_runs(2, "ready"):
        pause_run(each.pk, by=ADA)
    many_runs(2, "ready")
    ask_to_end(Run.objects.filter(pk__in=[each.pk for each in many_runs(2)]), by=ADA)
    claimed(ready_run())
    return [run]


def test_explaining_many_takes_as_many_queries_as_explaining_few() -> None:
    alive(("refund", 1))
    pause_all(by=ADA, reason="Moving.", workflow="other")
    all_kinds()
    few = list(Run.objects.all())
    queries(few)
    first = queries(few)
    all_kinds()
    all_kinds()
    many = list(Run.objects.all())
    assert len(many) == 3 * len(few)
    assert queries(many) == first <= 7


def test_explaining_what_is_over_asks_nothing() -> None:
    assert queries(many_runs(3, "completed")) == 0
