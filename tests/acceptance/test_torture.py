"""`manage.py torture`, short and real: on the embedded set-up, and on servers that answer here."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from romulus_site.torture.plan import Errand, Plan, make_plan
from romulus_site.torture.sendings import CERTAIN

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
RUNS, SECONDS = 30, 12
LEASE = 3.0  # as the command has it unless it is told
# Peace may have to wait a minute for a reconciliation whose process died.
LIMIT_SECONDS = 600

SERVER = "postgres://postgres@127.0.0.1:5432/postgres"
BROKERS = {
    "rabbitmq": ("amqp://guest:guest@127.0.0.1:5672//", 5672),
    "redis": ("redis://127.0.0.1:6379/0", 6379),
}


def environment(data: Path, **variables: str) -> dict[str, str]:
    """That of a person who has set nothing but `variables`."""
    own = ("DATABASE_URL", "BROKER_URL", "DJANGO_SETTINGS_MODULE")
    kept = {
        name: text
        for name, text in os.environ.items()
        if name not in own and not name.startswith("ROMULUS_")
    }
    return kept | {"ROMULUS_DATA": str(data)} | variables


def torture(data: Path, seed: int, **variables: str) -> dict[str, Any]:
    """Run it to its end and return what it tells; it is to be clean."""
    numbers = [f"--runs={RUNS}", f"--seconds={SECONDS}", f"--seed={seed}"]
    done = subprocess.run(
        [sys.executable, "manage.py", "torture", "--json", *numbers],
        cwd=ROOT,
        env=environment(data, **variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def needs_server() -> None:
    try:
        psycopg.connect(SERVER, connect_timeout=2).close()
    except psycopg.OperationalError as error:
        pytest.skip(f"no PostgreSQL server for tests at {SERVER}: {error}")


def databases() -> set[str]:
    """Those of tortures: the server may have other users."""
    with psycopg.connect(SERVER) as connection:
        rows = connection.execute(
            "SELECT datname FROM pg_database WHERE datname LIKE 'torture%'"
        ).fetchall()
    return {str(name) for (name,) in rows}


def test_every_promise_is_kept_on_the_embedded_set_up(tmp_path: Path) -> None:
    told = torture(tmp_path / "data", seed=4)
    assert (told["torture"], told["breaches"]) == ("clean", [])
    assert (told["database"], told["broker"]) == ("embedded", "pgmq")
    assert_everything_happened(told, make_plan(RUNS, SECONDS, 4, lease=LEASE))


def assert_everything_happened(told: dict[str, Any], plan: Plan) -> None:
    """What the plan makes certain, however fast or slow the machine is."""
    assert told["runs"]["planned"] == RUNS < told["runs"]["all"]
    assert Counter(told["blows"]) == Counter(each.kind for each in (*plan.blows, *plan.errands))
    # The run that stands still until a kill falls has lost its worker; if that was frozen, it may
    # have come back, too late.
    assert any(blow.run for blow in plan.blows), "one of this plan stands still"
    assert sum(told["attempts"].get(state, 0) for state in ("lost", "superseded")) >= 1
    assert told["waits"]["resolved"] >= len(certain_to_be_answered(plan)) >= 1
    assert sum(told["deliveries"].values()) == len(plan.sendings)
    events = {sending.event_id for sending in plan.sendings}
    assert sum(told["events"].values()) == len(events) < len(plan.sendings)


def certain_to_be_answered(plan: Plan) -> list[int]:
    """The runs that wait for as long as it takes, and that nobody ends before."""
    ended = {errand.run for errand in plan.errands if errand.kind is Errand.CANCEL}
    return [run.number for run in plan.runs if run.coming in CERTAIN and run.number not in ended]


@pytest.mark.parametrize("broker", sorted(BROKERS))
def test_every_promise_is_kept_on_servers(tmp_path: Path, broker: str) -> None:
    url, port = BROKERS[broker]
    needs_server()
    if not answers(port):
        pytest.skip(f"no {broker} answers at 127.0.0.1:{port}")
    before = databases()
    told = torture(tmp_path / "data", seed=5, DATABASE_URL=SERVER, BROKER_URL=url)
    assert (told["torture"], told["database"]) == ("clean", "server")
    assert told["broker"] == url.partition(":")[0]
    assert databases() == before  # its own is gone


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """For temporary files; a socket's path has to be short."""
    with tempfile.TemporaryDirectory(prefix="rt-") as folder:
        yield Path(folder)


def test_a_torture_that_is_interrupted_leaves_nothing(short_folder: Path) -> None:
    data = short_folder / "data"
    process = subprocess.Popen(
        [sys.executable, "manage.py", "torture", "--runs=20", "--seconds=60", "--seed=6"],
        cwd=ROOT,
        env=environment(data, TMPDIR=str(short_folder)),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    # The first blow has fallen: workers, destination and server run.
    assert next(line for line in process.stderr if " s  " in line)
    assert processes_of(short_folder)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=120) == 130, process.stderr.read()
    process.stderr.close()
    assert [path for path in short_folder.iterdir() if path != data] == []
    assert processes_of(short_folder) == []


def processes_of(folder: Path) -> list[str]:
    """The command lines that name the folder, and the environments that do."""
    files = [*Path("/proc").glob("[1-9]*/cmdline"), *Path("/proc").glob("[1-9]*/environ")]
    return [str(file) for file in files if str(folder) in text_of(file)]


def text_of(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""  # it has ended meanwhile
