"""Case A18: the broker goes away and comes back, once as it was and once empty.

Shrunk: it is away until everything that can be seen of that was seen, instead of for 60 s; the
embedded one is waited for 1 s instead of 3.

The embedded broker, which is always there, is cut off from workers and console while the database
is not; a Redis and a RabbitMQ of this machine, where they answer, are cut off by a relay between.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from reconciliation.models import Operation
from tests.acceptance.changed_settings import changing
from tests.acceptance.payfake import (
    all_over,
    all_sends,
    effects,
    explained,
    order_run,
    payfake,
    states_of,
    wait_until_sent,
)
from tests.acceptance.refunding import passages
from tests.acceptance.web import Web, web
from tests.brokers import broker_of_machine
from tests.databases import url_of
from tests.destination import RunningDestination
from tests.relay import Relay, database_relay, relay
from tests.waiting import wait_for
from tests.workers import ROOT, Crew, environment_of
from workflows.models import Run, Worker

pytestmark = pytest.mark.processes

RUNS = 20
BACK_SECONDS = 60.0  # in which every run has to move, says the case


@dataclass(frozen=True)
class Broker:
    """What stands between the processes and their broker, and how the broker loses everything."""

    relay: Relay
    empty: Callable[[], None]


@contextmanager
def broker_behind_relay(workers: Crew, scheme: str) -> Iterator[Broker]:
    if scheme == "pgmq":
        with database_relay(connection.settings_dict) as (made, through):
            url = url_of(through).replace("postgres", "pgmq", 1)
            shrunk = changing(CELERY_BROKER_TRANSPORT_OPTIONS={"pool_timeout": 1})
            workers.environment |= shrunk | {"BROKER_URL": url}
            yield Broker(made, empty_queues)
        return
    with broker_of_machine(scheme) as broker, relay(broker.address) as made:
        workers.environment |= changing(**broker.settings)
        workers.environment |= {"BROKER_URL": broker.url(made.port)}
        workers.queues = ",".join(broker.queues)
        yield Broker(made, broker.empty)


def empty_queues() -> None:
    with connection.cursor() as cursor:
        for queue in ("advance", "reconcile"):
            cursor.execute("SELECT pgmq.purge_queue(%s)", [queue])


def start_by_command(workers: Crew, folder: Path, order: str) -> Run:
    """Start a run as an operator does, with the broker as it is now."""
    given = json.dumps({"order": order, "folder": str(folder)})
    ran = subprocess.run(
        [sys.executable, "manage.py", "start", "refunding", "--json", f"--input={given}"],
        cwd=ROOT,
        env=environment_of(workers.database_url) | workers.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return Run.objects.get(pk=json.loads(ran.stdout)["id"])


def close_gates(folder: Path, first: int) -> list[Path]:
    """Gates that keep some of the runs at their first step, and some in the midst."""
    steps = ["prepare"] * 2 + ["check"] * 2
    gates = [folder / f"ORD-{first + n}.{step}.gate" for n, step in enumerate(steps)]
    for gate in gates:
        gate.touch()
    return gates


def at_gate(folder: Path, gate: Path) -> bool:
    order, step, _ = gate.name.split(".")
    return passages(folder, order, step) > 0


def outage(
    workers: Crew,
    destination: RunningDestination,
    console: Web,
    folder: Path,
    first: int,
    away: Callable[[], Any],
    back: Callable[[], Any],
) -> list[Run]:
    """One outage, under runs at different steps; return them all, completed."""
    gates = close_gates(folder, first)
    limited = f"ORD-{first + 4}"
    refused = {"status": 429, "type": "rate_limit_error", "retry_after": 1}
    destination.client.arm("error_before", body={"order": limited}, path="*refunds", **refused)
    runs = [order_run(folder, f"ORD-{n}") for n in range(first, first + RUNS)]
    for gate in gates:
        wait_for(partial(at_gate, folder, gate), f"{gate.name} is reached")
    wait_until_sent(destination, runs[4])

    away()
    wait_for(lambda: console.ready()[0] == 503, "the console is not ready")
    assert "roker" in console.ready()[1]
    # Threads that had their message before the outage go on with what is due, new ones too.
    runs_before = len(runs)

    def one_more_says_why() -> bool:
        if len(runs) == runs_before or explained(runs[-1])["cause"] == "finished":
            runs.append(start_by_command(workers, folder, f"ORD-{first}-during-{len(runs)}"))
        return bool(explained(runs[-1])["cause"] == "broker_away")

    wait_for(one_more_says_why, "it is said why")
    for gate in gates:
        gate.unlink()

    back()
    all_over(*runs, limit=BACK_SECONDS)
    wait_for(lambda: console.ready()[0] == 200, "the console is ready again")
    return runs


@pytest.mark.parametrize("scheme", ["pgmq", "redis", "amqp"])
def test_a18_after_the_broker_was_away_every_run_moves(
    workers: Crew, destination: RunningDestination, tmp_path: Path, scheme: str
) -> None:
    payfake(destination)
    with broker_behind_relay(workers, scheme) as broker:
        crew = [workers.launch(threads=4) for _ in range(2)]
        site = environment_of(workers.database_url) | workers.environment
        with web(site, tmp_path) as console:
            for worker in crew:
                worker.wait_until_ready()
            wait_for(lambda: console.ready()[0] == 200, "all is well")

            def back_empty() -> None:
                broker.empty()
                broker.relay.mend()

            given = (workers, destination, console, tmp_path)
            runs = outage(*given, 100, broker.relay.cut, broker.relay.mend)
            runs += outage(*given, 200, broker.relay.cut, back_empty)
        assert [worker.process.poll() for worker in crew] == [None, None]
        assert Worker.objects.count() == len(crew)
    assert states_of(runs) == {"completed": len(runs)}
    assert Operation.objects.count() == 2 * len(runs)
    for operation in Operation.objects.all():
        assert (operation.state, effects(destination, operation)) == ("verified", 1)
    assert len(all_sends(destination)) == 2 * len(runs) + 2  # and the two that were refused
