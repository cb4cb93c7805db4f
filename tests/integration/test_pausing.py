"""Pausing a run, a workflow or a tenant: nothing of it is claimed, and nothing is done twice.

What a paused run waits for goes on; so does starting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models.functions import Now

from reconciliation.models import AuditEntry, Operation
from reconciliation.services.reconcile import reconcile
from tests.claiming import (
    ONCE,
    RETRIED,
    acts,
    attempts,
    claimed,
    commit,
    expire_lease,
    raising,
    ready_run,
    worker,
)
from tests.destination import RunningDestination
from tests.factories import (
    advanced,
    ready_provider,
    settled,
    started_run,
    switched,
    tenant,
    wait_until,
)
from tests.sending import about_to_send, effects, lagging_contract, posts, the_operation
from workflows.core.definitions import Workflow
from workflows.core.errors import RunIsOver, UsageError
from workflows.models import Pause, Run, Tenant
from workflows.registry import registry
from workflows.services import pauses
from workflows.services.claims import claim_next, claim_run
from workflows.services.executor import take
from workflows.services.ownership import Keeper
from workflows.services.results import result_of
from workflows.services.run_view import RunView
from workflows.services.runs import start
from workflows.services.stopping import pause_all, pause_run, resume_all, resume_run
from workflows.services.sweep import due_runs, wake_due_runs

pytestmark = pytest.mark.django_db

BY, WHY = "ada", "The provider is being moved."


@dataclass(frozen=True)
class Way:
    """One way to pause a run, and how that is taken back."""

    pause: Callable[[Run], object]
    resume: Callable[[Run], object]


WAYS = {
    "run": Way(
        lambda run: pause_run(run.pk, by=BY, reason=WHY),
        lambda run: resume_run(run.pk, by=BY),
    ),
    "workflow": Way(
        lambda run: pause_all(by=BY, reason=WHY, workflow=run.workflow),
        lambda run: resume_all(by=BY, workflow=run.workflow),
    ),
    "tenant": Way(
        lambda run: pause_all(by=BY, reason=WHY, tenant=run.tenant),
        lambda run: resume_all(by=BY, tenant=run.tenant),
    ),
    "workflow for a tenant": Way(
        lambda run: pause_all(by=BY, reason=WHY, workflow=run.workflow, tenant=run.tenant),
        lambda run: resume_all(by=BY, workflow=run.workflow, tenant=run.tenant),
    ),
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


# --- what is paused is not claimed ------------------------------------------------------------


@each_way
def test_what_is_paused_is_neither_claimed_nor_told_of_until_it_is_resumed(way: Way) -> None:
    run = ready_run()
    assert way.pause(run)
    assert claim_run(run.pk, worker()) is None
    assert claim_next(worker()) is None
    assert due_runs() == []
    run.refresh_from_db()
    assert (run.state, run.fence, run.tries) == ("ready", 0, 0)

    assert way.resume(run)
    assert due_runs() == [run.pk]
    assert claim_run(run.pk, worker())


@each_way
def test_a_run_that_is_resumed_is_claimed_by_whoever_looks_for_work(way: Way) -> None:
    run = ready_run()
    way.pause(run)
    way.resume(run)
    claim = claim_next(worker())
    assert claim is not None
    assert claim.run == run.pk


def of_another_workflow() -> Run:
    registry.add(RETRIED)
    return start(RETRIED.name, {"act": "act"}, tenant=tenant())


def of_another_tenant() -> Run:
    return start(ONCE.name, {"act": "act"}, tenant=tenant("southwind"))


@pytest.mark.parametrize(
    ("way", "other"),
    [
        ("run", of_another_workflow),
        ("run", of_another_tenant),
        ("workflow", of_another_workflow),
        ("tenant", of_another_tenant),
        ("workflow for a tenant", of_another_workflow),
        ("workflow for a tenant", of_another_tenant),
    ],
)
def test_nothing_else_is_paused_with_it(way: str, other: Callable[[], Run]) -> None:
    WAYS[way].pause(ready_run())
    run = other()
    assert due_runs() == [run.pk]
    claim = claim_next(worker())
    assert claim is not None
    assert claim.run == run.pk


@each_way
def test_what_its_worker_left_lying_is_taken_over_only_when_it_is_resumed(way: Way) -> None:
    run = ready_run()
    claimed(run)
    expire_lease(run)
    way.pause(run)
    assert claim_run(run.pk, worker()) is None
    assert due_runs() == []
    assert attempts(run) == [("act", 1, "running")]

    way.resume(run)
    assert due_runs() == [run.pk]
    assert advanced(run).state == "completed"
    assert attempts(run)[:2] == [("act", 1, "lost"), ("act", 2, "committed")]


@each_way
def test_expired_leases_of_what_is_paused_do_not_keep_others_waiting(way: Way) -> None:
    """P10: the workers of a paused workflow were killed; the leases of others are found."""
    registry.add(RETRIED)
    other = start(RETRIED.name, {"act": "act"}, tenant=tenant("southwind"))
    assert claim_run(other.pk, worker())
    paused = ready_run()
    claimed(paused)
    way.pause(paused)
    for run, minutes in ((paused, 2), (other, 1)):
        expired = Now() - timedelta(minutes=minutes)
        Run.objects.filter(pk=run.pk).update(lease_expires_at=expired)
    assert due_runs(batch=1) == [other.pk]


@each_way
def test_starting_goes_on(way: Way) -> None:
    first = ready_run()
    way.pause(first)
    second = start(ONCE.name, {"act": "act"}, tenant=tenant())
    assert second.state == "ready"


def test_a_run_that_is_paused_twice_goes_on_when_both_are_taken_back() -> None:
    run = ready_run()
    WAYS["run"].pause(run)
    WAYS["tenant"].pause(run)
    WAYS["run"].resume(run)
    assert claim_run(run.pk, worker()) is None
    WAYS["tenant"].resume(run)
    assert claim_run(run.pk, worker())


# --- a worker that is at it -------------------------------------------------------------------


@each_way
def test_a_worker_stops_at_the_next_step_and_no_step_is_done_twice(way: Way) -> None:
    ran: list[int] = []
    run = ready_run()

    def pausing(view: RunView) -> int:
        way.pause(run)
        ran.append(1)
        return 7

    acts["act"] = pausing
    run = advanced(run)
    assert (run.state, run.step, run.lease_owner) == ("ready", "after", None)
    assert attempts(run) == [("act", 1, "committed")]
    assert advanced(run).state == "ready"  # nor does another worker take it

    way.resume(run)
    run = advanced(run)
    assert (run.state, result_of(run), ran) == ("completed", 7, [1])
    assert attempts(run) == [("act", 1, "committed"), ("after", 1, "committed")]


def test_what_another_process_has_paused_is_noticed_within_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pauses, "FRESH_SECONDS", 0.0)
    run = ready_run()

    def paused_elsewhere(view: RunView) -> int:
        Pause.objects.create(workflow=run.workflow, by=BY, reason=WHY)
        return 1

    acts["act"] = paused_elsewhere
    assert advanced(run).step == "after"
    assert Run.objects.get().state == "ready"


def test_what_is_known_of_pauses_is_not_asked_for_at_each_step() -> None:
    pauses.is_paused("tests.once", uuid4())
    Pause.objects.create(workflow="tests.once", by=BY, reason=WHY)
    assert not pauses.is_paused("tests.once", uuid4())
    pauses.forget()
    assert pauses.is_paused("tests.once", uuid4())


@each_way
def test_a_last_step_that_is_under_way_ends_the_run(way: Way) -> None:
    run = ready_run()
    claim = commit(claimed(run), 1)
    assert claim is not None
    way.pause(run)
    take(claim, Keeper())
    run.refresh_from_db()
    assert (run.state, result_of(run)) == ("completed", 1)


@each_way
def test_a_step_that_fails_meanwhile_is_tried_again_only_when_it_is_resumed(way: Way) -> None:
    run = ready_run(RETRIED)

    def failing(view: RunView) -> int:
        way.pause(run)
        raise ValueError("no answer")

    acts["act"] = failing
    run = advanced(run)
    assert (run.state, run.failures) == ("ready", 1)
    acts["act"] = lambda _: 1
    assert advanced(run).state == "ready"
    way.resume(run)
    assert advanced(run).state == "completed"


# --- a write that is at it --------------------------------------------------------------------


@each_way
def test_a_write_that_is_under_way_commits_whole_and_the_run_stops_after_it(
    way: Way, destination: RunningDestination
) -> None:
    """P7, P13: what was sent is recorded with its step, once, and nothing comes after it."""
    ready_provider("payments", destination.url)
    run = started_run("refund")
    sender = about_to_send(run)
    outcome = sender.transmit()
    way.pause(run)
    sender.record(outcome)
    take(sender.claim, Keeper())
    run.refresh_from_db()
    operation = the_operation()
    assert (run.state, run.step, operation.state) == ("ready", "tell_customer", "verified")
    receipt = run.attempts.outputs().get(step="create_refund").output
    assert receipt == {"operation": str(operation.pk), "resource": operation.resource}
    assert advanced(run).state == "ready"

    way.resume(run)
    run = advanced(run)
    assert result_of(run) == f"Your refund {operation.resource} is on its way."
    assert (len(posts(destination)), effects(destination)) == (1, 1)


@each_way
def test_a_write_that_has_not_begun_is_not_sent_before_the_run_is_resumed(
    way: Way, destination: RunningDestination
) -> None:
    ready_provider("payments", destination.url)
    run = started_run("refund")
    claim = commit(claimed(run), {"number": "ORD-7001", "refundable": "125.00"}, go_on=False)
    assert claim is None
    way.pause(run)
    assert advanced(run).state == "ready"
    assert not Operation.objects.exists()
    way.resume(run)
    assert advanced(run).state == "completed"
    assert effects(destination) == 1


@each_way
def test_a_lost_answer_is_looked_up_meanwhile_and_the_run_goes_on_when_it_is_resumed(
    way: Way, destination: RunningDestination
) -> None:
    ready_provider("machines", destination.url, contract_version=lagging_contract())
    destination.client.arm("apply_then_drop")
    run = advanced(started_run("replacement_worker"))
    assert (run.state, the_operation().state) == ("waiting", "unknown")
    way.pause(run)
    due = the_operation().due_at
    assert due is not None
    wait_until(due)
    reconcile(the_operation().pk)
    run = advanced(run)
    assert run.state == "ready"  # what was to be found out is found out
    assert the_operation().evidence.filter(kind="lookup", completes=True).exists()

    way.resume(run)
    assert settled(run).state == "completed"
    assert (len(posts(destination)), effects(destination)) == (1, 1)


def test_a_run_that_waits_for_dispatch_may_be_paused_too(destination: RunningDestination) -> None:
    provider = ready_provider("payments", destination.url, dispatch="paused")
    run = advanced(started_run("refund"))
    pause_run(run.pk, by=BY)
    switched(provider, "on")
    Operation.objects.update(due_at=Now())
    reconcile(the_operation().pk)
    assert advanced(run).state == "ready"
    assert posts(destination) == []
    resume_run(run.pk, by=BY)
    assert advanced(run).state == "completed"


# --- a wait -----------------------------------------------------------------------------------

sleeper = Workflow("tests.sleeper")


@sleeper.sleep()
def rest(run: RunView) -> timedelta:
    return timedelta(hours=1)


@sleeper.step()
def wake_up(run: RunView) -> int:
    return 1


def test_a_paused_run_s_time_goes_on_and_it_does_not() -> None:
    registry.add(sleeper)
    run = advanced(start("tests.sleeper", {}, tenant=tenant()))
    assert run.state == "waiting"
    pause_run(run.pk, by=BY)
    Run.objects.filter(pk=run.pk).update(wake_at=Now() - timedelta(seconds=1))
    assert wake_due_runs() == 1
    assert advanced(run).state == "ready"
    resume_run(run.pk, by=BY)
    assert advanced(run).state == "completed"


# --- who did it -------------------------------------------------------------------------------


def entries() -> list[tuple[str, str, str, dict[str, str]]]:
    return list(AuditEntry.objects.order_by("seq").values_list("actor", "verb", "object", "detail"))


def test_a_run_says_who_paused_it_and_the_first_one_counts() -> None:
    run = ready_run()
    assert pause_run(run.pk, by="ada", reason=WHY)
    assert not pause_run(run.pk, by="grace")
    run.refresh_from_db()
    assert (run.paused_by, run.paused_at is not None) == ("ada", True)
    assert resume_run(run.pk, by="grace")
    assert not resume_run(run.pk, by="ada")
    run.refresh_from_db()
    assert (run.paused_by, run.paused_at) == ("", None)
    assert entries() == [
        ("ada", "run paused", f"run:{run.pk}", {"reason": WHY}),
        ("grace", "run resumed", f"run:{run.pk}", {"reason": ""}),
    ]


def test_a_pause_says_who_and_why_and_the_first_one_counts() -> None:
    first = pause_all(by="ada", reason=WHY, workflow="refund", tenant=tenant())
    second = pause_all(by="grace", reason="Me too.", workflow="refund", tenant=tenant())
    assert (second.pk, second.by, second.reason) == (first.pk, "ada", WHY)
    assert not resume_all(by="grace", workflow="refund")  # that is another pause
    assert resume_all(by="grace", workflow="refund", tenant=tenant())
    assert not resume_all(by="grace", workflow="refund", tenant=tenant())
    scope = f"workflow:refund tenant:{Tenant.objects.get().pk}"
    assert entries() == [
        ("ada", "paused", scope, {"reason": WHY}),
        ("grace", "resumed", scope, {"reason": ""}),
    ]


@pytest.mark.parametrize("act", [pause_run, resume_run])
@pytest.mark.parametrize("work", [lambda _: 1, raising(ValueError())], ids=["completed", "failed"])
def test_a_run_that_is_over_is_neither_paused_nor_resumed(
    act: Callable[..., bool], work: Callable[[RunView], int]
) -> None:
    run = advanced(ready_run(ONCE, work))
    with pytest.raises(RunIsOver, match=f"run {run.pk} is {run.state} already"):
        act(run.pk, by=BY)
    with pytest.raises(Run.DoesNotExist):
        act(uuid4(), by=BY)


@pytest.mark.parametrize(
    "given",
    [
        {"by": BY, "reason": WHY},  # nothing is named
        {"by": BY, "reason": "", "workflow": "refund"},
        {"by": "", "reason": WHY, "workflow": "refund"},
        {"by": "a" * 151, "reason": WHY, "workflow": "refund"},
        {"by": BY, "reason": "w" * 501, "workflow": "refund"},
        {"by": "a\x00", "reason": WHY, "workflow": "refund"},
    ],
)
def test_a_pause_of_nothing_by_nobody_or_without_a_reason_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        pause_all(**given)
    assert not Pause.objects.exists()
