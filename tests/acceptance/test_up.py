"""`manage.py up`: what a new user sees, and what `kill -9` of anything and everything leaves."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.acceptance.changed_settings import changing
from tests.brokers import broker_of_machine
from tests.ports import LOOPBACK, free_port
from tests.relay import Relay
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
# A machine that is busy with other tests starts six Pythons in its own time.
UP_SECONDS = 300.0
SETTLE_SECONDS = 300.0
# Short, so that a killed worker's runs go on soon; long enough to be renewed on a busy machine.
LEASE_SECONDS = "6"
# What the tests' own settings set, and what the shell may have set for another installation.
NOT_INHERITED = ("DJANGO_SETTINGS_MODULE", "DATABASE_URL", "BROKER_URL", "ROMULUS_KEYS")

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]


class Installation:
    """A data folder of its own, and the processes that work for it."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.output = folder / "output"
        self.json = folder / "result.json"
        self.port = free_port()
        self._killed: set[int] = set()
        kept = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
        self.environment = kept | {
            "ROMULUS_DATA": str(self.data),
            "ROMULUS_LEASE_SECONDS": LEASE_SECONDS,
        }

    def up(self, *options: str, port: int | None = None) -> subprocess.Popen[bytes]:
        command = [sys.executable, "manage.py", "up", f"--port={port or self.port}", *options]
        with self.output.open("ab") as output:
            return subprocess.Popen(
                command, cwd=ROOT, env=self.environment, stdout=output, stderr=output
            )

    def settle(self) -> dict[str, Any]:
        """Run `up` until the demonstration is settled; return what it wrote."""
        options = ("--until-settled", f"--json={self.json}", f"--timeout={SETTLE_SECONDS}")
        exit_code = self.up(*options).wait(UP_SECONDS + SETTLE_SECONDS)
        assert exit_code == 0, self.said()
        result: dict[str, Any] = json.loads(self.json.read_text())
        return result

    def said(self) -> str:
        return self.output.read_text()

    def wait_for_words(self, words: str) -> None:
        wait_for(lambda: words in self.said(), f"{words!r} is said", limit=UP_SECONDS)

    def forget_words(self) -> None:
        self.output.write_text("")

    def processes(self) -> list[int]:
        """The processes of this folder: PostgreSQL's show it, all others have it in their
        environment.
        """
        return [int(entry.name) for entry in Path("/proc").glob("[1-9]*") if self._is_ours(entry)]

    def _is_ours(self, process: Path) -> bool:
        try:
            traces = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            return False
        return os.fsencode(self.data) in traces

    def kill_everything(self) -> None:
        for pid in self.processes():
            self._killed.add(pid)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def wait_until_nothing_is_left(self) -> None:
        wait_for(lambda: not self.processes(), "no process is left")
        # PostgreSQL takes one that nobody has reaped yet for a server that runs.
        wait_for(lambda: not any(map(is_orphan, self._killed)), "all are reaped")


def is_orphan(pid: int) -> bool:
    """Whether the process is there, dead or alive, and not for this one to reap."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return int(status.rpartition(")")[2].split()[1]) != os.getpid()


@pytest.fixture
def installation() -> Iterator[Installation]:
    # Not `tmp_path`, whose parents are closed to the account that root lets run PostgreSQL.
    with tempfile.TemporaryDirectory(prefix="romulus-up-") as folder:
        installation = Installation(Path(folder))
        try:
            yield installation
        finally:
            installation.kill_everything()
            installation.wait_until_nothing_is_left()


def states(result: dict[str, Any]) -> dict[str, str]:
    return {run["workflow"]: run["state"] for run in result["runs"]}


def effects(run: dict[str, Any]) -> list[int]:
    """How many effects the destination holds of each of the run's operations."""
    return [len(operation["destination"]) for operation in run["operations"]]


def test_the_demonstration_settles_and_nothing_is_left(installation: Installation) -> None:
    result = installation.settle()
    assert states(result) == {
        "ticket_triage": "held",
        "replacement_worker": "completed",
        "refund": "completed",
    }
    assert [effects(run) for run in result["runs"]] == [[1], [1], [1]]
    (refund,) = (run for run in result["runs"] if run["workflow"] == "refund")
    assert "lost" in {attempt["state"] for attempt in refund["attempts"]}
    assert "was ended by SIGKILL; starting it again" in installation.said()
    installation.wait_until_nothing_is_left()


def test_after_sigkill_the_next_up_goes_on_where_the_runs_were(installation: Installation) -> None:
    supervisor = installation.up()
    installation.wait_for_words("Romulus is up")
    supervisor.kill()
    supervisor.wait()
    installation.wait_until_nothing_is_left()

    installation.forget_words()
    supervisor = installation.up()
    installation.wait_for_words("Romulus is up")
    installation.kill_everything()
    supervisor.wait()
    installation.wait_until_nothing_is_left()

    # Where the kills fell decides between two ends: a write that never arrived and has no key is
    # held, and so is a step at which too many workers died. No write may have two effects.
    for run in installation.settle()["runs"]:
        assert run["state"] in ("completed", "held"), run
        assert effects(run) == [1] or (run["state"] == "held" and effects(run) in ([], [0])), run
    installation.wait_until_nothing_is_left()


def test_ctrl_c_ends_everything_cleanly(installation: Installation) -> None:
    supervisor = installation.up("--no-demo", "--workers=1")
    installation.wait_for_words("Romulus is up")

    second = installation.up(port=free_port())
    assert second.wait(UP_SECONDS) == 1
    assert f"already runs in {installation.data}" in installation.said()

    supervisor.send_signal(signal.SIGINT)
    assert supervisor.wait(120) == 0
    assert installation.processes() == []
    assert "Traceback" not in installation.said()


def test_a_broker_that_is_away_is_told_of_and_waited_for(installation: Installation) -> None:
    """It answers once everything else is up; only then can the demonstration settle."""
    with broker_of_machine("redis") as broker:
        late = Relay(broker.address, (LOOPBACK, free_port()))
        late.cut()
        own_keys = {"global_keyprefix": broker.prefix}
        installation.environment |= changing(CELERY_BROKER_TRANSPORT_OPTIONS=own_keys)
        installation.environment["BROKER_URL"] = broker.url(late.port)
        options = ("--until-settled", f"--json={installation.json}", f"--timeout={SETTLE_SECONDS}")
        up = installation.up(*options)
        installation.wait_for_words("Romulus is up")
        where = f"redis://{LOOPBACK}:{late.port}"
        assert f"The broker at {where} does not answer" in installation.said()

        late.mend()
        installation.wait_for_words("The broker answers")
        assert up.wait(SETTLE_SECONDS) == 0, installation.said()
        late.cut()
    assert states(json.loads(installation.json.read_text())) == {
        "ticket_triage": "held",
        "replacement_worker": "completed",
        "refund": "completed",
    }


def test_a_port_in_use_is_said_in_a_sentence(installation: Installation) -> None:
    with socket.create_server(("127.0.0.1", installation.port)):
        assert installation.up().wait(UP_SECONDS) == 1
    assert f"Port {installation.port} is in use by another program" in installation.said()
    assert "Traceback" not in installation.said()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--until-settled", "--no-demo"], "leave out --no-demo"),
        (["--json=result.json"], "give both"),
        (["--until-settled", "--json=/nowhere/result.json"], "There is no folder /nowhere"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: list[str], sentence: str) -> None:
    said = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("up", *options, stdout=said)
    assert ended.value.code == 1
    assert sentence in said.getvalue()


@pytest.mark.parametrize("option", ["--port=99999", "--port=http", "--workers=0"])
def test_numbers_that_make_no_sense_are_refused(option: str) -> None:
    with pytest.raises(CommandError, match=option.partition("=")[0]):
        call_command("up", option)
