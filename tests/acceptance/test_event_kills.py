"""Promise P6 with real processes: killed around an event and around a wait, the run goes on once,
and the worker that takes over can say with which event."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.expecting import expecting
from tests.events import delivered
from tests.factories import tenant
from tests.waiting import wait_for
from tests.workers import ROOT, Crew, environment_of
from workflows.models import Event, Match, Run, Wait
from workflows.registry import registry
from workflows.services.results import result_of
from workflows.services.runs import start

pytestmark = pytest.mark.processes

WORKFLOWS = "tests.acceptance.expecting"


@pytest.fixture(autouse=True)
def known() -> None:
    registry.add(expecting)


def expecting_run(folder: Path, correlation: str = "48213") -> Run:
    return start("expecting", {"folder": str(folder), "correlation": correlation}, tenant=tenant())


def in_state(run: Run, *states: str) -> Run:
    def there() -> bool:
        run.refresh_from_db()
        return run.state in states

    wait_for(there, f"run {run.pk} is {' or '.join(states)}")
    return run


def send(database_url: str, correlation: str, event_id: str, failpoint: str = "") -> int:
    """Store an event from a process of its own; return how that ended."""
    environment = environment_of(database_url) | {
        "ROMULUS_FAILPOINTS": failpoint,
        "ROMULUS_WORKFLOWS": WORKFLOWS,
    }
    command = [sys.executable, "-m", "tests.acceptance.sender", correlation, event_id]
    return subprocess.run(command, cwd=ROOT, env=environment, timeout=60, check=False).returncode


def went_on_once_with(run: Run, folder: Path, event_id: str) -> None:
    in_state(run, "completed", "failed", "held")
    assert (run.state, result_of(run)) == ("completed", event_id)
    assert (folder / "told").read_text().splitlines() == [event_id]
    match = Match.objects.select_related("event", "wait").get()
    assert (match.event.event_id, match.wait.run_id) == (event_id, run.pk)
    assert (match.event.state, match.wait.state) == ("matched", "resolved")
    assert Wait.objects.count() == 1
    assert run.attempts.outputs().filter(step="refunded").count() == 1


def test_killed_before_its_commit_an_event_is_not_there_and_can_be_sent_again(
    workers: Crew, committed_db: str, tmp_path: Path
) -> None:
    workers.start(workflows=WORKFLOWS)
    run = in_state(expecting_run(tmp_path), "waiting")
    assert send(committed_db, "48213", "evt_1", "event_stored") == -signal.SIGKILL
    run.refresh_from_db()
    assert (run.state, Event.objects.count()) == ("waiting", 0)
    assert send(committed_db, "48213", "evt_1") == 0
    went_on_once_with(run, tmp_path, "evt_1")


def test_killed_after_its_commit_an_event_needs_nobody_to_be_told_of_it(
    workers: Crew, committed_db: str, tmp_path: Path
) -> None:
    """Between recording the event and telling of the run: the sweep finds it."""
    workers.start(workflows=WORKFLOWS)
    run = in_state(expecting_run(tmp_path), "waiting")
    assert send(committed_db, "48213", "evt_1", "after_event") == -signal.SIGKILL
    assert Event.objects.get().state == "matched"
    assert send(committed_db, "48213", "evt_1") == 0  # the sender had no answer
    went_on_once_with(run, tmp_path, "evt_1")
    assert Event.objects.get().duplicates == 1


@pytest.mark.parametrize(
    ("failpoint", "is_taken"),
    [
        ("wait_opened@refunded", False),  # between opening it and looking for events
        ("after_decide@refunded", True),
    ],
)
def test_killed_while_its_wait_opens_a_run_takes_its_event_once(
    failpoint: str, is_taken: bool, workers: Crew, tmp_path: Path
) -> None:
    delivered(event_id="evt_1")
    delivered(event_id="evt_2")
    doomed = workers.start(failpoint=failpoint, workflows=WORKFLOWS)
    run = expecting_run(tmp_path)
    doomed.wait_until_dead()
    assert (Wait.objects.count(), Match.objects.count()) == (is_taken, is_taken)
    workers.start(workflows=WORKFLOWS)
    went_on_once_with(run, tmp_path, "evt_1")
    assert Event.objects.get(event_id="evt_2").state == "stored"


def test_killed_when_it_goes_on_a_run_still_has_its_event(workers: Crew, tmp_path: Path) -> None:
    doomed = workers.start(failpoint="before_checkpoint@refunded", workflows=WORKFLOWS)
    run = in_state(expecting_run(tmp_path), "waiting")
    delivered(event_id="evt_1")
    delivered(event_id="evt_2")
    doomed.wait_until_dead()
    workers.start(workflows=WORKFLOWS)
    went_on_once_with(run, tmp_path, "evt_1")
    assert Event.objects.get(event_id="evt_2").state == "late"
