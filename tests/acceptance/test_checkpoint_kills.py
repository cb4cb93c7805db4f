"""Promises P1 and P2 with real processes: killed around a checkpoint, and two attempts at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.factories import tenant
from tests.waiting import wait_for
from tests.workers import Crew
from workflows.models import Run
from workflows.services.runs import start

pytestmark = pytest.mark.processes


def counting_run(folder: Path, **input: object) -> Run:
    return start("counting", {"folder": str(folder), **input}, tenant=tenant())


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


def test_killed_before_the_checkpoint_the_step_runs_again(workers: Crew, tmp_path: Path) -> None:
    doomed = workers.start(failpoint="before_checkpoint@first")
    run = counting_run(tmp_path)
    doomed.wait_until_dead()
    run.refresh_from_db()
    assert (run.state, run.step) == ("running", "first")
    assert not run.outputs.exists()

    workers.start()
    assert ended(run).state == "completed"
    assert attempts(run) == [("first", "lost"), ("first", "committed"), ("second", "committed")]
    assert (passages(tmp_path, "first"), passages(tmp_path, "second")) == (2, 1)
    assert run.outputs.get(step="first").value == 2


def test_killed_after_the_checkpoint_the_saved_output_is_used(
    workers: Crew, tmp_path: Path
) -> None:
    doomed = workers.start(failpoint="after_checkpoint@first")
    run = counting_run(tmp_path)
    doomed.wait_until_dead()
    run.refresh_from_db()
    assert (run.state, run.step) == ("running", "second")
    assert run.outputs.get().value == 1

    workers.start()
    assert ended(run).state == "completed"
    assert attempts(run) == [("first", "committed"), ("second", "lost"), ("second", "committed")]
    assert (passages(tmp_path, "first"), run.result) == (1, 1)


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

    before = list(run.outputs.order_by("id").values_list("step", "value", "attempt"))
    stale.thaw()
    wait_for(lambda: ("first", "superseded") in attempts(run), "the late commit is refused")
    run.refresh_from_db()
    after = list(run.outputs.order_by("id").values_list("step", "value", "attempt"))
    assert (run.state, before) == ("completed", after)
    assert attempts(run) == [
        ("first", "superseded"),
        ("first", "committed"),
        ("second", "committed"),
    ]
