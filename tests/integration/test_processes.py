"""Child processes: started again when they die, ended with all that they started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from romulus_site import leash
from romulus_site.embedded.leftovers import command_line
from romulus_site.processes import Child, DidNotStart, Part, Supervisor, Surroundings, pause_after
from tests.waiting import wait_for

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the leash is Linux's")

# Both write their process ID; the first ends at SIGTERM, the second not even then.
OBEDIENT = "import os, pathlib, sys, time; pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); "
STUBBORN = OBEDIENT + "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
FOR_EVER = "time.sleep(600)"
WITH_A_CHILD = "import subprocess; subprocess.run([sys.executable, '-c', {code!r}, sys.argv[2]])"


def part(code: str, *files: Path) -> Part:
    command = [sys.executable, "-c", code, *map(str, files)]
    return Part("example", command, lambda pid: recorded(files[0]) == pid)


def recorded(file: Path) -> int:
    """The process ID in `file`, 0 while there is none."""
    return int(file.read_text() or 0) if file.exists() else 0


def is_running(pid: int) -> bool:
    """Whether the process does anything; one that is dead and not yet collected does not."""
    return bool(command_line(pid))


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, said: list[str]) -> Iterator[Supervisor]:
    supervisor = Supervisor(tmp_path, Surroundings(tmp_path, {}), said.append)
    yield supervisor
    supervisor.stop()


def started(supervisor: Supervisor, part: Part) -> Child:
    (child,) = supervisor.start([part])
    supervisor.wait_until_ready(child, 30)
    return child


def test_a_child_that_dies_is_started_again_and_that_is_said(
    supervisor: Supervisor, said: list[str], tmp_path: Path
) -> None:
    child = started(supervisor, part(OBEDIENT + FOR_EVER, tmp_path / "pid"))
    killed = recorded(tmp_path / "pid")
    os.kill(killed, signal.SIGKILL)
    wait_for(child.has_ended, "the child is dead")

    supervisor.wait_until_ready(child, 30)

    assert recorded(tmp_path / "pid") != killed
    assert said == ["example was ended by SIGKILL; starting it again"]


def test_a_child_that_never_starts_is_given_up_with_its_last_words(
    supervisor: Supervisor, said: list[str], tmp_path: Path
) -> None:
    (child,) = supervisor.start(
        [part("print('no such table'); raise SystemExit(3)", tmp_path / "pid")]
    )
    with pytest.raises(DidNotStart, match="no such table"):
        supervisor.wait_until_ready(child, 30)
    assert said[0] == "example ended with exit code 3; starting it again"


def test_a_child_that_is_never_ready_is_given_up(supervisor: Supervisor, tmp_path: Path) -> None:
    (child,) = supervisor.start([part("import time; time.sleep(600)", tmp_path / "pid")])
    with pytest.raises(DidNotStart):
        supervisor.wait_until_ready(child, 0.1)


def test_the_death_of_a_child_ends_what_it_started(supervisor: Supervisor, tmp_path: Path) -> None:
    code = OBEDIENT + WITH_A_CHILD.format(code=STUBBORN + FOR_EVER)
    child = started(supervisor, part(code, tmp_path / "pid", tmp_path / "grandchild"))
    grandchild = wait_for(lambda: recorded(tmp_path / "grandchild"), "the grandchild runs")
    os.kill(recorded(tmp_path / "pid"), signal.SIGKILL)
    wait_for(child.has_ended, "the child is dead")
    supervisor.tend()
    wait_for(lambda: not is_running(grandchild), "the grandchild has ended")


def test_stop_ends_a_child_that_does_not_listen(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("romulus_site.processes.STOP_SECONDS", 0.2)
    started(supervisor, part(STUBBORN + FOR_EVER, tmp_path / "pid"))
    supervisor.stop()
    assert not is_running(recorded(tmp_path / "pid"))


STARTER = """
import subprocess, signal, sys
from romulus_site import leash

command = [sys.executable, "-c", sys.argv[1], sys.argv[2]]
with subprocess.Popen(leash.command(command, signal=signal.SIGKILL)):
    pass
"""


@linux_only
def test_a_child_does_not_outlive_the_sigkill_of_its_starter(tmp_path: Path) -> None:
    arguments = [STUBBORN + FOR_EVER, str(tmp_path / "pid")]
    with subprocess.Popen([sys.executable, "-c", STARTER, *arguments]) as starter:
        pid = wait_for(lambda: recorded(tmp_path / "pid"), "the child runs")
        starter.kill()
    wait_for(lambda: not is_running(pid), "the child has ended too")


@linux_only
def test_a_program_is_not_started_for_one_who_is_dead_already() -> None:
    command = leash.command(["/bin/true"], signal=signal.SIGKILL)
    orphan = [word.replace(str(os.getpid()), "1") for word in command]
    run = subprocess.run(orphan, check=False, capture_output=True, text=True)
    assert run.returncode == 1
    assert "has ended" in run.stderr


@pytest.mark.parametrize(("deaths", "pause"), [(1, 0), (2, 1), (3, 2), (6, 16), (20, 30)])
def test_the_pause_grows_with_each_death_up_to_a_limit(deaths: int, pause: float) -> None:
    assert pause_after(deaths) == pause
