"""Runs go on under a later version, or stay with a reason: nothing is done twice or rewritten."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from reconciliation.models import AuditEntry, Hold, Operation, Provider
from reconciliation.services.reconcile import reconcile
from tests.claiming import acts, claimed, commit, expire_lease, raising
from tests.deciding import TRY_AGAIN, decide
from tests.destination import RunningDestination
from tests.factories import (
    administrator,
    advanced,
    held_operation,
    ready_provider,
    switched,
    tenant,
)
from tests.migrating import (
    FLOW,
    asleep,
    changed_in_place,
    everything,
    family,
    first_run,
    ready_at,
    small,
)
from tests.storages import IsFull, files_in, use
from tests.versions import first_version, process_with, second_version
from workflows.core.definitions import Workflow
from workflows.core.errors import LostOwnership, RunIsOver, UnknownWorkflow, UsageError
from workflows.core.standing import Moves, Reason, Stays
from workflows.examples.ticket_triage import ticket_triage
from workflows.models import Run
from workflows.services.migrations import NOBODY, carried_out, migrate_run, planned
from workflows.services.outputs import read_output
from workflows.services.results import result_of
from workflows.services.run_view import RunView
from workflows.services.runs import start
from workflows.services.standings import with_parents
from workflows.services.stopping import cancel_run, pause_run
from workflows.services.sweep import wake_due_runs

pytestmark = pytest.mark.django_db

BY = "command:ada"


@pytest.fixture
def payments(destination: RunningDestination) -> RunningDestination:
    ready_provider("payments", destination.url)
    return destination


def moved(run: Run, version: int = 2) -> Moves:
    answer = migrate_run(run.pk, version, by=BY).answer
    assert isinstance(answer, Moves), answer
    run.refresh_from_db()
    return answer


def stayed(run: Run, version: int = 2) -> Stays:
    """Try to move `run`; it stays, and nothing of it has changed."""
    before = everything()
    answer = migrate_run(run.pk, version, by=BY).answer
    assert isinstance(answer, Stays), answer
    assert everything() == before
    return answer


def woken(run: Run) -> Run:
    """The time that it slept for is over."""
    Run.objects.filter(pk=run.pk).update(wake_at=Now() - timedelta(seconds=1))
    assert wake_due_runs() == 1
    return advanced(run)


# --- one that moves ---------------------------------------------------------------------------


def test_a_run_goes_on_under_the_later_version_and_writes_nothing_again(
    payments: RunningDestination,
) -> None:
    with process_with(first_version()):
        run = asleep()
    # The process that moves it and the one that goes on have the later version alone.
    with process_with(second_version()):
        assert (moved(run).step, run.version, run.state) == ("settled", 2, "waiting")
        assert run.failure["reason"] == "sleeping"
        run = woken(run)
        assert (run.state, run.step) == ("completed", "tell")
        receipt = Operation.objects.get(run=run).receipt
        assert result_of(run) == {
            "order": "ORD-7001",
            "amount": 125,
            "receipt": receipt,
            "reason": "not said",
        }
    assert len(payments.client.effects()) == 1
    assert [entry.method for entry in payments.client.journal()].count("POST") == 1


def test_history_is_added_to_and_never_rewritten(payments: RunningDestination) -> None:
    with process_with(first_version(), second_version()):
        run = asleep()
        before = list(run.attempts.order_by("fence").values())
        fence = run.fence
        moved(run)
    after = list(run.attempts.order_by("fence").values())
    assert after[: len(before)] == before
    assert [
        (row["step"], row["visit"], row["fence"], row["worker"], row["state"], row["error"])
        for row in after[len(before) :]
    ] == [
        (
            "load_order",
            1,
            fence + 1,
            NOBODY,
            "committed",
            "migrated from version 1, step load",
        ),
        ("refund", 1, fence + 2, NOBODY, "committed", "migrated from version 1, step pay"),
    ]
    assert (run.fence, run.visit, run.tries) == (fence + 2, 1, 0)
    entry = AuditEntry.objects.get(verb="run migrated")
    assert (entry.actor, entry.object) == (BY, f"run:{run.pk}")
    assert entry.detail == {
        "from_version": 1,
        "from_step": "settled",
        "to_version": 2,
        "to_step": "settled",
    }


def test_a_run_two_versions_behind_moves_by_what_each_of_the_two_says() -> None:
    """At once: it is never of the version between, whose code this process only has to know."""
    second = small(2, steps={"act": "done"}, outputs={"act": lambda old: f"{old} then"})
    third = small(
        3,
        from_version=2,
        named="ended",
        last="at_last",
        steps={"done": "ended", "after": "at_last"},
        outputs={"done": lambda old: f"{old} and now"},
    )
    with process_with(small(1), third):
        run = ready_at("after", passed=["act"])
        assert stayed(run, 3).reason is Reason.NO_MIGRATION
    with process_with(second, third):
        moved(run, 3)
        assert (run.version, run.step, run.attempts.count()) == (3, "at_last", 2)
        assert result_of(advanced(run)) == "act 1 then and now"


def test_a_step_that_the_version_between_does_not_have_leads_nowhere() -> None:
    """Though a later version has one of its name again: it is another one."""
    third = small(3, from_version=2)
    with process_with(small(1), small(2, last="at_last"), third):
        run = ready_at("after", passed=["act"])
        assert stayed(run, 3).reason is Reason.STEP_GONE


def test_of_a_step_that_was_passed_often_the_latest_output_counts() -> None:
    with process_with(small(1), small(2, steps={"act": "done"})):
        run = ready_at("after", passed=["act", "act"])
        moved(run)
        assert [(row.visit, read_output(row)) for row in run.attempts.filter(step="done")] == [
            (1, "act 2")
        ]


def test_tries_begin_to_count_anew_and_its_place_in_the_queue_is_kept() -> None:
    with process_with(small(1), small(2)):
        run = ready_at("act", passed=[])
        Run.objects.filter(pk=run.pk).update(
            tries=2, failures=1, losses=1, ready_at=Now() + timedelta(hours=1)
        )
        run.refresh_from_db()
        due = run.ready_at
        moved(run)
    assert (run.tries, run.failures, run.losses, run.ready_at) == (0, 0, 0, due)


def test_from_version_to_version_and_back_to_an_old_name() -> None:
    first = small(1)
    second = small(2, steps={"act": "acted"}, named="acted")
    third = small(3, from_version=2, steps={"acted": "act"}, outputs={"act": None})
    with process_with(first):
        run = ready_at("after", passed=["act"])
    with process_with(second):
        moved(run)
    with process_with(third):
        moved(run, 3)
        assert advanced(run).state == "completed"
    assert [(row.step, row.visit, row.error) for row in run.attempts.order_by("fence")][:3] == [
        ("act", 1, ""),
        ("acted", 1, "migrated from version 1, step act"),
        ("act", 2, "migrated from version 2, step acted"),
    ]


def test_what_was_sealed_stays_sealed_and_what_is_large_goes_to_the_storage(
    settings: Settings, tmp_path: Path
) -> None:
    folder = use(settings, tmp_path)
    large = {"lines": ["line"] * 100}
    acts["act"] = lambda _: {"card": "4111"}
    open_again = small(2, steps={"act": "acted"}, named="acted")
    grown = small(
        3, from_version=2, steps={"acted": "act"}, outputs={"acted": lambda _: large, "act": None}
    )
    with process_with(small(1, sensitive=True), open_again, grown):
        run = start(FLOW, {}, tenant=tenant(), version=1)
        assert commit(claimed(run), {"card": "4111"}, go_on=False) is None
        moved(run)
        sealed = run.attempts.get(step="acted")
        assert (sealed.output_form, read_output(sealed)) == ("sealed", {"card": "4111"})
        moved(run, 3)
        stored = run.attempts.get(step="act", visit=2)
        assert (stored.output_form, read_output(stored)) == ("object", large)
    (file,) = files_in(folder)
    assert b"line" not in (folder / file).read_bytes()


def test_a_storage_that_keeps_nothing_lets_the_run_stay(settings: Settings, tmp_path: Path) -> None:
    use(settings, tmp_path, IsFull)
    large = {"lines": ["line"] * 100}
    with process_with(small(1), small(2, outputs={"act": lambda _: large})):
        answer = stayed(ready_at("after", passed=["act"]))
    assert answer.reason is Reason.OUTPUT_NOT_KEPT
    assert "No space left" in answer.about


# --- one that stays ---------------------------------------------------------------------------


def test_a_run_with_an_unsettled_operation_stays_until_it_is_settled(
    payments: RunningDestination,
) -> None:
    with process_with(first_version(), second_version()):
        paused = first_run()
        switched(Provider.objects.get(), "paused")
        assert (advanced(paused).state, Operation.objects.get().state) == ("waiting", "intended")
        answer = stayed(paused)
        assert (answer.reason, answer.about) == (Reason.UNSETTLED, "Refund order ORD-7001")

        switched(Provider.objects.get(), "on")
        Operation.objects.update(due_at=Now())
        reconcile(Operation.objects.get().pk)
        assert advanced(paused).step == "settled"
        moved(paused)


def test_a_run_whose_write_is_held_stays(destination: RunningDestination) -> None:
    """Its outcome is not known: under another name it would be sent again."""
    ready_provider("desk", destination.url)
    later = Workflow("ticket_triage", version=2, input=ticket_triage.input)
    later.step()(nothing)
    every = ticket_triage.steps
    later.migrates(
        from_version=1, steps=dict.fromkeys(every, "nothing"), outputs=dict.fromkeys(every)
    )
    operation = held_operation(destination)
    with process_with(ticket_triage, later):
        assert stayed(operation.run).reason is Reason.UNSETTLED


def nothing(run: RunView) -> None: ...


def test_a_run_that_a_worker_holds_stays_and_one_whose_worker_went_quiet_moves() -> None:
    with process_with(small(1), small(2)):
        run = start(FLOW, {}, tenant=tenant(), version=1)
        stale = claimed(run)
        assert stayed(run).reason is Reason.AT_WORK
        expire_lease(run)
        assert moved(run).step == "act"
        assert (run.state, run.version, run.tries) == ("ready", 2, 0)
        assert run.attempts.get().state == "lost"
        with pytest.raises(LostOwnership):
            commit(stale, 1)
        acts["act"] = lambda _: 2
        assert advanced(run).state == "completed"
        assert result_of(run) == 2


def test_a_sleep_that_is_over_is_not_begun_anew(payments: RunningDestination) -> None:
    """Also where the worker that had seen its end went quiet."""
    with process_with(first_version(), second_version()):
        run = asleep()
        Run.objects.filter(pk=run.pk).update(wake_at=Now() - timedelta(seconds=1))
        assert wake_due_runs() == 1
        claimed(run)
        expire_lease(run)
        moved(run)
        assert run.wake_at is not None
        assert advanced(run).state == "completed"


def test_a_run_that_is_to_be_cancelled_or_is_over_is_left_alone(
    payments: RunningDestination,
) -> None:
    with process_with(first_version(), second_version()):
        run = first_run()
        Run.objects.filter(pk=run.pk).update(cancel_asked_at=Now(), cancel_asked_by="ada")
        assert stayed(run).reason is Reason.CANCELLING
        cancel_run(run.pk, by="ada")
        with pytest.raises(RunIsOver, match="is cancelled already"):
            migrate_run(run.pk, 2, by=BY)


def test_only_to_a_later_version_that_is_here() -> None:
    with process_with(small(1), small(2)):
        run = start(FLOW, {}, tenant=tenant(), version=2)
        with pytest.raises(UsageError, match=r"is of version 2 of tests\.small already"):
            migrate_run(run.pk, 2, by=BY)
        with pytest.raises(UnknownWorkflow):
            migrate_run(run.pk, 3, by=BY)
        with pytest.raises(Run.DoesNotExist):
            migrate_run(uuid4(), 2, by=BY)


def test_a_run_that_goes_on_between_plan_and_lock_is_planned_anew() -> None:
    later = small(2)
    with process_with(small(1), later):
        run = start(FLOW, {}, tenant=tenant(), version=1)

        def plan() -> Any:
            (made,) = planned(list(with_parents(Run.objects.filter(pk=run.pk))), later)
            return made

        before = plan()
        claim = claimed(run)
        answer = carried_out(before, later, BY).answer
        assert isinstance(answer, Stays)
        assert answer.reason is Reason.AT_WORK

        before = plan()
        commit(claim, 1, go_on=False)
        answer = carried_out(before, later, BY).answer
        assert isinstance(answer, Stays)
        assert answer.reason is Reason.AT_WORK  # as it was planned: nobody has asked anew

        before = plan()
        pause_run(run.pk, by="ada")  # changes nothing that counts
        answer = carried_out(before, later, BY).answer
        assert isinstance(answer, Moves)
        assert answer.step == "after"


# --- held runs --------------------------------------------------------------------------------


def test_a_run_whose_step_is_gone_is_held_with_the_ways_forward_and_moves_on_by_one() -> None:
    with process_with(small(1)):
        run = ready_at("after", passed=["act"])
    with process_with(changed_in_place(1)):
        run = advanced(run)
        assert (run.state, run.failure["reason"]) == ("held", "step_missing")
        assert run.failure["message"] == (
            "tests.small version 1 has no step after: the code changed without a new version. "
            "Bring the step back, then try again; or give the workflow a later version whose "
            "migrates(from_version=1, …) names the step that takes its place, and run "
            "manage.py migrate_runs."
        )
        assert advanced(run).attempts.count() == 2, "it is not tried again by itself"
    with process_with(small(2, steps={"after": "at_last"}, last="at_last")):
        assert moved(run).step == "at_last"
        assert (run.state, run.failure) == ("ready", None)
        assert Hold.objects.get().state == "closed"
        entry = AuditEntry.objects.get(verb__startswith="hold closed")
        assert (entry.verb, entry.detail["by"]) == (
            "hold closed: the run moved to version 2",
            BY,
        )
        assert advanced(run).state == "completed"


def test_a_held_run_keeps_its_hold_under_the_later_version() -> None:
    acts["act"] = raising(ValueError("no such order"))
    with process_with(small(1, on_failure="hold"), small(2)):
        run = advanced(start(FLOW, {}, tenant=tenant(), version=1))
        assert run.state == "held"
        moved(run)
        assert (run.state, run.version, run.failure["reason"]) == ("held", 2, "step_failed")
        hold = Hold.objects.get()
        assert hold.state == "open"
        acts["act"] = lambda _: 1
        decide(hold, TRY_AGAIN, by=administrator())
        assert advanced(run).state == "completed"


def test_a_held_run_whose_step_has_another_name_is_decided_first() -> None:
    acts["act"] = raising(ValueError("no such order"))
    with process_with(small(1, on_failure="hold"), small(2, steps={"act": "acted"}, named="acted")):
        run = advanced(start(FLOW, {}, tenant=tenant(), version=1))
        assert stayed(run).reason is Reason.HELD


# --- runs that wait for others, or beside them ------------------------------------------------


def test_neither_a_parent_that_waits_nor_a_branch_moves_and_after_the_join_it_does() -> None:
    acts["act"] = lambda _: 1
    with process_with(family(1), family(2), small(1), small(2)):
        run = advanced(start("tests.family", {}, tenant=tenant(), version=1))
        assert stayed(run).reason is Reason.CHILDREN
        branches = list(run.children.order_by("parent_index"))
        with process_with(family(2)):  # nobody here knows what `left_and_right` was in version 1
            answer = stayed(branches[0])
        assert (answer.reason, "'left_and_right'" in answer.message) == (Reason.IN_GROUP, True)

        for branch in branches:
            advanced(branch)
        run = advanced(run)  # past the group, to its children
        (child,) = run.children.filter(parent_step="spawn")
        assert stayed(run).reason is Reason.CHILDREN
        assert advanced(child).version == 2
        run.refresh_from_db()
        assert run.state == "ready", "all have ended, and are not joined yet"
        assert stayed(run).reason is Reason.CHILDREN

        pause_at_next(run)
        moved(run)
        assert result_of(advanced(run)) == [1, 2]


def test_a_child_of_another_workflow_moves_while_its_parent_waits() -> None:
    acts["act"] = lambda _: 1
    with process_with(family(1), family(2), small(1)):
        run = advanced(start("tests.family", {}, tenant=tenant(), version=1))
        for branch in run.children.all():
            advanced(branch)
        run = advanced(run)
        (child,) = run.children.filter(parent_step="spawn")
    with process_with(family(1), small(2)):
        moved(child)
        assert advanced(child).state == "completed"
        assert advanced(run).state == "completed"


def test_what_the_branches_of_a_passed_group_left_binds_where_it_would_not_be_found() -> None:
    acts["act"] = lambda _: 1
    with process_with(family(1), family(2, outputs={"left": str}), small(1)):
        run = advanced(start("tests.family", {}, tenant=tenant(), version=1))
        for branch in run.children.all():
            advanced(branch)
        run = advanced(run)
        advanced(run.children.get(parent_step="spawn"))
        pause_at_next(run)
        assert stayed(run).reason is Reason.GROUP_PASSED


def pause_at_next(run: Run) -> None:
    """Let a worker take the run past its step and stop there."""
    claim = claimed(run)
    pause_run(run.pk, by="ada")
    commit(claim, [], go_on=True)
    Run.objects.filter(pk=run.pk).update(paused_at=None)
    run.refresh_from_db()
