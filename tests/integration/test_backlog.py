"""A backlog: who is free takes what has been due longest, without a message for each run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now
from pytest_django import DjangoCaptureOnCommitCallbacks

from tests.claiming import ONCE, RESTED, acts, claimed, expire_lease, raising, ready_run, worker
from tests.factories import advanced, started_run, tenant
from tests.hinting import hinted
from tests.statements import most_read
from workflows.models import Pause, Run
from workflows.registry import registry
from workflows.services import executor
from workflows.services.claims import CANDIDATES, claim_first, claim_next
from workflows.services.executor import work_on
from workflows.services.ownership import Keeper
from workflows.services.results import result_of
from workflows.services.run_view import RunView
from workflows.services.runs import Start, start_many
from workflows.services.stopping import cancel_run, pause_run
from workflows.services.sweep import due_runs, sweep
from workflows.sql import limited

pytestmark = pytest.mark.django_db

LONG = 3000  # so many that a plan which reads them all would be seen


@pytest.fixture(autouse=True)
def told_of_nothing() -> None:
    """What earlier tests were told of is over."""
    hinted()


def backlog(number: int, function: Callable[[RunView], object] | None = None) -> list[Run]:
    """Ready runs, the first one first: each has been due a minute longer than the next."""
    registry.add(ONCE)
    acts["act"] = function or (lambda _: 1)
    runs = start_many(ONCE.name, [Start({"act": "act"})] * number, tenant=tenant())
    for place, run in enumerate(runs):
        due_for(run, minutes=number - place)
    return runs


def due_for(run: Run, minutes: float) -> None:
    Run.objects.filter(pk=run.pk).update(ready_at=Now() - timedelta(minutes=minutes))


def states() -> set[str]:
    return set(Run.objects.values_list("state", flat=True))


# --- which one is next ------------------------------------------------------------------------


def test_what_has_been_due_longest_is_next() -> None:
    runs = backlog(3)
    due_for(runs[2], minutes=60)
    claims = [claim_next(worker()) for _ in range(4)]
    ids = [claim.run if claim else None for claim in claims]
    assert ids == [runs[2].pk, runs[0].pk, runs[1].pk, None]


def test_however_long_the_backlog_what_has_been_due_longest_is_next() -> None:
    runs = backlog(CANDIDATES + 10)
    claims = [claim_next(worker()) for _ in range(2)]
    assert [claim.run for claim in claims if claim] == [run.pk for run in runs[:2]]


@pytest.mark.parametrize("again", [None, "1"])
@pytest.mark.parametrize("name", ["next_due", "next_due_by_tenant"])
def test_however_long_the_backlog_few_of_its_rows_are_read(name: str, again: str | None) -> None:
    start_many(ONCE.name, [Start({"act": "act"})] * LONG, tenant=backlog(1)[0].tenant)
    assert 0 < rows_read(name, again) <= CANDIDATES


def test_of_the_backlog_of_a_paused_tenant_one_row_is_read() -> None:
    """However long it is, and though all of it has been due for longer than what is not paused."""
    runs = backlog(1)
    start_many(ONCE.name, [Start({"act": "act"})] * LONG, tenant=runs[0].tenant)
    Pause.objects.create(tenant=runs[0].tenant, by="ada", reason="An incident.")
    others = start_many(ONCE.name, [Start({"act": "act"})] * 3, tenant=tenant("southwind"))
    assert 0 < rows_read("next_due_by_tenant", None) <= len(others)
    claims = [claim_next(worker()) for _ in range(4)]
    assert {claim.run for claim in claims if claim} == {run.pk for run in others}


def rows_read(name: str, again: str | None) -> float:
    """The most rows of runs that a part of a hot statement's plan has read."""
    statement = limited(name, CANDIDATES)
    given = {"names": f"{{{ONCE.name}}}", "versions": "{1}", "again": again}
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE workflows_run")  # the planner knows how long it is
        cursor.execute(f"PREPARE looked AS {statement.text.decode()}")
        try:
            values = [given[parameter] for parameter in statement.parameters]
            places = ", ".join(["%s"] * len(values))
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE looked ({places})", values)
            ((((document,),),),) = (cursor.fetchall(),)
        finally:
            cursor.execute("DEALLOCATE looked")
    return most_read(document["Plan"], "workflows_run")


def test_of_all_workflows_what_has_been_due_longest_is_next() -> None:
    other = started_run("refund")
    due_for(other, minutes=2.5)
    runs = backlog(3)
    claims = [claim_next(worker()) for _ in range(4)]
    assert [claim.run for claim in claims if claim] == [
        runs[0].pk,
        other.pk,
        runs[1].pk,
        runs[2].pk,
    ]


def test_what_rests_is_not_next() -> None:
    run = advanced(ready_run(RESTED, raising(TimeoutError())))
    assert run.state == "ready"
    assert claim_next(worker()) is None
    due_for(run, minutes=0)
    assert claim_next(worker())


def test_a_run_whose_lease_ran_out_is_the_sweep_s_to_find() -> None:
    run = ready_run()
    claimed(run)
    expire_lease(run)
    assert claim_next(worker()) is None
    assert due_runs() == [run.pk]


def test_of_several_that_may_be_claimed_the_first_is() -> None:
    runs = backlog(3)
    claimed(runs[0])
    claim = claim_first([run.pk for run in reversed(runs)], worker())
    assert claim is not None
    assert claim.run == runs[1].pk


@pytest.mark.parametrize("other", [{"version": 2}, {"workflow": "tests.unknown"}])
def test_versions_that_are_not_here_are_left_alone_and_hide_nothing(
    other: dict[str, object],
) -> None:
    """A11, P10: left over after a deploy, more than are looked at, and all of them older."""
    left = backlog(CANDIDATES + 10)
    Run.objects.update(**other)
    run = ready_run()
    claim = claim_next(worker())
    assert claim is not None
    assert claim.run == run.pk
    assert claim_next(worker()) is None
    assert Run.objects.filter(state="ready", fence=0, tries=0).count() == len(left)


def pause_each(runs: list[Run]) -> None:
    for run in runs:
        pause_run(run.pk, by="ada")


def pause_the_workflow(runs: list[Run]) -> None:
    Pause.objects.create(workflow=runs[0].workflow, by="ada", reason="An incident.")


def pause_the_tenant(runs: list[Run]) -> None:
    Pause.objects.create(tenant=runs[0].tenant, by="ada", reason="An incident.")


@pytest.mark.parametrize("pause", [pause_each, pause_the_workflow, pause_the_tenant])
def test_what_is_paused_is_skipped_and_hides_nothing(pause: Callable[[list[Run]], None]) -> None:
    runs = backlog(CANDIDATES + 10)
    pause(runs)
    other = started_run("refund")
    Run.objects.filter(pk=other.pk).update(tenant=tenant("southwind"))
    claim = claim_next(worker())
    assert claim is not None
    assert claim.run == other.pk
    assert claim_next(worker()) is None
    assert due_runs() == []


# --- a worker that took a message -------------------------------------------------------------


def test_a_worker_goes_on_with_whatever_else_is_due() -> None:
    runs = backlog(30)
    work_on(runs[17].pk, Keeper())
    assert states() == {"completed"}
    assert hinted() == []


def test_it_takes_what_it_was_told_of_first_and_then_what_has_been_due_longest() -> None:
    order: list[object] = []
    runs = backlog(4, lambda run: order.append(run.id))
    work_on(runs[2].pk, Keeper())
    assert order == [runs[place].pk for place in (2, 0, 1, 3)]


def test_a_message_about_nothing_is_as_good_as_any() -> None:
    """P10: the run may have ended, or never have been there; others are due all the same."""
    over = advanced(ready_run())
    runs = backlog(3)
    work_on(over.pk, Keeper())
    assert {result_of(run) for run in runs} == {1}


def test_after_a_while_it_goes_back_for_its_messages_and_says_that_more_is_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executor, "BACKLOG_SECONDS", 0.0)
    runs = backlog(5)
    work_on(runs[0].pk, Keeper())
    assert Run.objects.filter(state="completed").count() == 2
    assert len(hinted()) == 1


def test_a_worker_that_is_ending_takes_up_nothing_new() -> None:
    keeper = Keeper()
    runs = backlog(3, lambda _: keeper.close())
    work_on(runs[0].pk, keeper)
    assert Run.objects.filter(state="ready", fence=0).count() == 2
    runs[0].refresh_from_db()
    assert (runs[0].state, runs[0].step) == ("ready", "after")


def test_a_step_that_fails_does_not_end_the_backlog() -> None:
    runs = backlog(3, raising(ValueError("no such order")))
    work_on(runs[0].pk, Keeper())
    assert states() == {"failed"}


def test_what_was_stopped_meanwhile_does_not_hold_up_the_others() -> None:
    runs = backlog(4)
    cancel_run(runs[1].pk, by="ada")
    pause_run(runs[2].pk, by="ada")
    work_on(runs[0].pk, Keeper())
    found = [Run.objects.get(pk=run.pk).state for run in runs]
    assert found == ["completed", "cancelled", "ready", "completed"]


# --- what is told of it -----------------------------------------------------------------------


def test_a_sweep_tells_of_a_few_however_long_the_backlog() -> None:
    backlog(50)
    assert sweep() == 20
    assert len(hinted()) == 20


def test_a_process_whose_threads_are_all_at_work_tells_of_nothing() -> None:
    """It takes what is due when it is done; its messages would only pile up."""
    keeper = Keeper()
    keeper.threads = 1
    runs = backlog(3)
    claim = claim_next(keeper.worker)
    assert claim is not None
    keeper.begin(claim.attempt, 60)
    assert sweep(keeper) == 0
    keeper.end(claim.attempt)
    assert sweep(keeper) == 2
    assert hinted() == [run.pk for run in runs[1:]]


def test_a_crowd_that_starts_at_once_is_told_of_by_a_few_messages(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    registry.add(ONCE)
    with django_capture_on_commit_callbacks(execute=True):
        start_many(ONCE.name, [Start({"act": "act"})] * 50, tenant=tenant())
    assert len(hinted()) == 20
