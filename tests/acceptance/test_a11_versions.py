"""Case A11: a deployment meets runs in progress, and a worker meets runs that it has no code for.

Five runs have written and sleep when the new version arrives: it renames the write, adds a step
before the one at which they sleep, and asks for a new field of the input and of an output.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from reconciliation.models import AuditEntry, Hold, Operation
from tests.acceptance.counting import counting
from tests.acceptance.test_checkpoint_kills import counting_run, ended
from tests.destination import RunningDestination
from tests.factories import ready_provider, tenant
from tests.migrating import first_run
from tests.versions import NAME, first_version, process_with, second_version
from tests.waiting import wait_for
from tests.workers import ROOT, Crew, WorkerProcess, environment_of
from workflows.models import Run, Worker
from workflows.selectors import explain_run
from workflows.services.migrations import NOBODY
from workflows.services.results import result_of
from workflows.services.runs import start

pytestmark = pytest.mark.processes

FIRST, SECOND = "tests.acceptance.versioned_1", "tests.acceptance.versioned_2"
CHANGED = "tests.acceptance.versioned_1_changed,tests.acceptance.counting"
ORDERS = [f"ORD-{number}" for number in range(7001, 7006)]


@pytest.fixture(autouse=True)
def provider(committed_db: str, destination: RunningDestination) -> Iterator[None]:
    """The payments provider; and this process can start runs of either version."""
    ready_provider("payments", destination.url)
    with process_with(first_version(), second_version(), counting):
        yield


def parked_runs() -> list[Run]:
    """Runs of the first version that have written, and sleep at `settled`."""
    runs = [first_run(order) for order in ORDERS]
    for run in runs:
        wait_for(lambda run=run: is_asleep(run), f"run {run.pk} sleeps")  # type: ignore[misc]
    assert all(run.visit == 1 for run in runs)
    return runs


def is_asleep(run: Run) -> bool:
    run.refresh_from_db()
    return (run.state, run.step) == ("waiting", "settled")


def wake(runs: list[Run]) -> None:
    """The time that they sleep for is over; the sweep of any worker sees that."""
    pks = [run.pk for run in runs]
    due = Now() - timedelta(seconds=1)
    assert Run.objects.filter(pk__in=pks, state="waiting").update(wake_at=due) == len(runs)


def reloaded(runs: list[Run]) -> list[Run]:
    for run in runs:
        run.refresh_from_db()
    return runs


def workers_of(run: Run) -> set[Any]:
    return set(run.attempts.values_list("worker", flat=True))


def identity(worker: WorkerProcess) -> Any:
    return Worker.objects.get(pid=worker.pid).pk


def has_swept_since(worker: WorkerProcess, run: Run) -> bool:
    """Whether the worker has looked for due runs, and renewed its leases, after `run` was ready."""
    swept_at = Worker.objects.get(pid=worker.pid).swept_at
    return swept_at is not None and swept_at > run.ready_at + timedelta(seconds=1)


def writes(destination: RunningDestination) -> tuple[int, int]:
    """How many effects the destination has, and how many writes reached it."""
    journal = destination.client.journal()
    return len(destination.client.effects()), sum(entry.method == "POST" for entry in journal)


def migrate_runs(database_url: str, *arguments: str) -> tuple[int, Any]:
    """The command as a new deployment has it: with the second version alone."""
    ran = subprocess.run(
        [sys.executable, "manage.py", "migrate_runs", NAME, "--json", *arguments],
        cwd=ROOT,
        env=environment_of(database_url) | {"ROMULUS_WORKFLOWS": SECOND},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.stdout, ran.stderr
    return ran.returncode, json.loads(ran.stdout)


def count_of(groups: list[dict[str, Any]]) -> int:
    return sum(group["count"] for group in groups)


def test_two_versions_side_by_side_take_only_what_is_theirs(
    workers: Crew, destination: RunningDestination
) -> None:
    old = workers.start(workflows=FIRST)
    runs = parked_runs()
    later = start(NAME, {"order": "ORD-8001", "reason": "late"}, tenant=tenant(), version=2)
    wait_for(lambda: has_swept_since(old, later), "the old worker has looked for due runs")
    later.refresh_from_db()
    assert (later.state, later.fence, later.tries, later.failures) == ("ready", 0, 0, 0)
    assert not later.attempts.exists(), "an old worker uses up no attempt"
    why = explain_run(later)
    assert (why.cause, f"{NAME} version 2" in why.sentence) == ("no_worker", True)

    new = workers.start(workflows=SECOND)
    wait_for(lambda: is_asleep(later), "the new worker has taken the run of its version")
    wake([*runs, later])
    assert {ended(run).state for run in [*runs, later]} == {"completed"}
    assert [run.version for run in reloaded(runs)] == [1] * len(runs)
    assert {worker for run in runs for worker in workers_of(run)} == {identity(old)}
    assert workers_of(later) == {identity(new)}
    assert result_of(runs[0])["order"] == ORDERS[0]
    assert result_of(later)["reason"] == "late"
    assert writes(destination) == (6, 6)


def test_after_the_old_workers_runs_wait_and_say_so_and_move_without_writing_again(
    workers: Crew, committed_db: str, destination: RunningDestination
) -> None:
    old = workers.start(workflows=FIRST)
    runs = parked_runs()
    gone = identity(old)
    old.kill()
    new = workers.start(workflows=SECOND)
    wake(runs)

    def all_say_so() -> bool:
        return all(
            run.state == "ready" and explain_run(run).cause == "no_worker" for run in reloaded(runs)
        )

    wait_for(all_say_so, "the runs wait for a worker of their version")
    assert f"{NAME} version 1" in explain_run(runs[0]).sentence
    before = list(Run.objects.order_by("pk").values())
    code, rehearsed = migrate_runs(committed_db, "--dry-run")
    assert (code, count_of(rehearsed["moved"]), rehearsed["stayed"]) == (0, 5, [])
    assert list(Run.objects.order_by("pk").values("version", "step", "fence")) == [
        {name: row[name] for name in ("version", "step", "fence")} for row in before
    ]
    assert not any(run.attempts.filter(worker=NOBODY).exists() for run in runs)

    code, moved = migrate_runs(committed_db, "--by", "ada")
    assert (code, moved["moved"][0]["from_step"], moved["moved"][0]["to_step"]) == (
        0,
        "settled",
        "settled",
    )
    assert {ended(run).state for run in runs} == {"completed"}
    assert [run.version for run in runs] == [2] * len(runs)
    for run, order in zip(runs, ORDERS, strict=True):
        receipt = Operation.objects.get(run=run).receipt
        assert result_of(run) == {
            "order": order,
            "amount": 125,
            "receipt": receipt,
            "reason": "not said",
        }
        assert workers_of(run) == {gone, NOBODY, identity(new)}
        assert list(run.attempts.order_by("fence").values_list("step", "state")) == [
            ("load", "committed"),
            ("pay", "committed"),
            ("settled", "committed"),
            ("load_order", "committed"),
            ("refund", "committed"),
            ("settled", "committed"),
            ("tell", "committed"),
        ]
    assert writes(destination) == (5, 5)
    assert Operation.objects.count() == 5
    moves = AuditEntry.objects.filter(verb="run migrated", actor="command:ada")
    assert moves.count() == 5


def test_a_step_taken_away_ends_in_a_named_state_with_a_way_forward_and_no_loop(
    workers: Crew, committed_db: str, destination: RunningDestination, tmp_path: Path
) -> None:
    old = workers.start(workflows=FIRST)
    runs = parked_runs()
    old.kill()
    changed = workers.start(workflows=CHANGED)
    wake(runs)
    assert {ended(run).state for run in runs} == {"held"}
    failures = [run.failure for run in runs]
    assert {failure["reason"] for failure in failures} == {"step_missing"}
    assert {failure["message"] for failure in failures} == {
        f"{NAME} version 1 has no step settled: the code changed without a new version. Bring the "
        "step back, then try again; or give the workflow a later version whose "
        "migrates(from_version=1, …) names the step that takes its place, and run manage.py "
        "migrate_runs."
    }
    assert Hold.objects.filter(state="open", reason="step_missing").count() == 5
    fences = [run.fence for run in runs]
    beside = counting_run(tmp_path)
    assert ended(beside).state == "completed", "other runs are unaffected"
    wait_for(lambda: has_swept_since(changed, beside), "the sweep has come by again")
    assert [run.fence for run in reloaded(runs)] == fences, "nobody tries them again and again"

    changed.kill()
    workers.start(workflows=SECOND)
    code, moved = migrate_runs(committed_db)
    assert (code, count_of(moved["moved"])) == (0, 5)
    wait_for(lambda: all(map(is_asleep, runs)), "they sleep at the step that is back")
    assert not Hold.objects.filter(state="open").exists()
    wake(runs)
    assert {ended(run).state for run in runs} == {"completed"}
    assert writes(destination) == (5, 5)
