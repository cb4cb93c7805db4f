"""Promises P1 and P2 with real processes: killed around a checkpoint, and two attempts at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.factories import tenant
from tests.waiting import wait_for
from tests.workers import Crew
from workflows.models import Run, Tenant
from workflows.services.results import result_of
from workflows.services.runs import start

pytestmark = pytest.mark.processes


def counting_run(folder: Path, **input: object) -> Run:
    return start("counting", {"folder": str(folder), **input}, tenant=tenant())


def rows() -> list[str]:
    """What the atomic step has written."""
    return list(Tenant.objects.filter(slug__startswith="row").values_list("slug", flat=True))


def passages(folder: Path, step: str) -> int:
    file = folder / step
    return len(file.read_text().splitlines()) if file.exists() else 0


def ended(run: Run) -> Run:
    def over() -> bool:
        run.refresh_from_db()
        return run.state in ("completed", "failed", "held")

    wait_for(over, f"run {run.pk} is over")
    return run


def attempts(run: Run) -> list[tuple[str, str]]:
    return list(run.attempts.order_by("fence").values_list("step", "state"))


def outputs(run: Run) -> list[tuple[str, Any, UUID]]:
    return list(run.attempts.outputs().order_by("fence").values_list("step", "output", "pk"))


def test_killed_before_the_checkpoint_the_step_runs_again(workers: Crew, tmp_path: Path) -> None:
    doomed = workers.start(failpoint="before_checkpoint@first")
    run = counting_run(tmp_path)
    doomed.wait_until_dead()
    run.refresh_from_db()
    assert (run.state, run.step) == ("running", "first")
    assert not run.attempts.outputs().exists()

    workers.start()
    assert ended(run).state == "completed"
    assert attempts(run) == [("first", "lost"), ("first", "committed"), ("second", "committed")]
    assert (passages(tmp_path, "first"), passages(tmp_path, "second")) == (2, 1)
    assert run.attempts.outputs().get(step="first").output == 2


def test_killed_after_the_checkpoint_the_saved_output_is_used(
    workers: Crew, tmp_path: Path
) -> None:
    doomed = workers.start(failpoint="after_checkpoint@first")
    run = counting_run(tmp_path)
    doomed.wait_until_dead()
    run.refresh_from_db()
    assert (run.state, run.step) == ("running", "second")
    assert run.attempts.outputs().get().output == 1

    workers.start()
    assert ended(run).state == "completed"
    assert attempts(run) == [("first", "committed"), ("second", "lost"), ("second", "committed")]
    assert (passages(tmp_path, "first"), result_of(run)) == (1, 1)


@pytest.mark.parametrize("failpoint", ["before_checkpoint", "after_checkpoint"])
def test_killed_before_its_commit_an_atomic_step_leaves_nothing_behind(
    failpoint: str, workers: Crew, tmp_path: Path
) -> None:
    """Its checkpoint, which is written last, is in the same commit as its own rows."""
    doomed = workers.start(failpoint=f"{failpoint}@book")
    run = start("booking", {"folder": str(tmp_path)}, tenant=tenant())
    doomed.wait_until_dead()
    run.refresh_from_db()
    assert (run.state, run.step, passages(tmp_path, "book")) == ("running", "book", 1)
    assert (rows(), run.attempts.outputs().count()) == ([], 0)

    workers.start()
    assert ended(run).state == "completed"
    assert attempts(run) == [("book", "lost"), ("book", "committed"), ("confirm", "committed")]
    assert (rows(), result_of(run)) == (["row-2"], 2)


def test_killed_after_its_commit_an_atomic_step_is_not_done_again(
    workers: Crew, tmp_path: Path
) -> None:
    doomed = workers.start(failpoint="after_atomic@book")
    run = start("booking", {"folder": str(tmp_path)}, tenant=tenant())
    doomed.wait_until_dead()
    run.refresh_from_db()
    assert (run.state, run.step) == ("running", "confirm")
    assert (rows(), run.attempts.outputs().get().output) == (["row-1"], 1)

    workers.start()
    assert ended(run).state == "completed"
    assert (passages(tmp_path, "book"), rows(), result_of(run)) == (1, ["row-1"], 1)


def test_of_two_competing_attempts_only_the_present_holder_advances(
    workers: Crew, tmp_path: Path
) -> None:
    stale = workers.start()
    run = counting_run(tmp_path, wait_for_gate=True)
    wait_for(lambda: passages(tmp_path, "first") == 1, "the first worker is in the step")
    stale.freeze()
    workers.start()
    wait_for(lambda: passages(tmp_path, "first") == 2, "another worker has taken over")
    (tmp_path / "gate").touch()
    assert ended(run).state == "completed"

    before = outputs(run)
    stale.thaw()
    wait_for(lambda: ("first", "superseded") in attempts(run), "the late commit is refused")
    run.refresh_from_db()
    assert (run.state, outputs(run)) == ("completed", before)
    assert attempts(run) == [
        ("first", "superseded"),
        ("first", "committed"),
        ("second", "committed"),
    ]
    # What it brought too late is kept, and counts for nothing.
    assert run.attempts.get(state="superseded").output == 1
    assert result_of(run) == 2
