"""`bench recovery`: from the SIGKILL of a worker until its run goes on in another one.

The worker is killed as soon as it is at work: its lease is as long as it can be then. What ends
sooner was found by the end of the worker's session with the database.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings

from romulus_site.bench import report
from romulus_site.bench.database import bench_server
from romulus_site.bench.options import two_or_more
from romulus_site.bench.talk import Child
from romulus_site.bench.workers import Ear, Staff, broker_name, scene, staff_of
from workflows.management.base import positive

HELP = "seconds from the SIGKILL of a worker until its run goes on elsewhere"
LONGEST_START_SECONDS = 30.0
# Beyond the lease: long enough to measure what is far too long.
LONGEST_BEYOND_SECONDS = 60.0
CONCURRENCY = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeats", type=positive, default=3, help="workers that are killed")
    parser.add_argument("--workers", type=two_or_more, default=2, help="worker processes at once")
    parser.add_argument(
        "--lease",
        type=float,
        default=settings.ROMULUS_LEASE_SECONDS,
        help=f"seconds of a lease (default: {settings.ROMULUS_LEASE_SECONDS:g})",
    )


def measure(given: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    seconds = []
    with (
        bench_server() as server,
        server.migrated() as database,
        scene(server, database) as (ear, environment),
    ):
        environment["ROMULUS_LEASE_SECONDS"] = str(given.lease)
        with (
            staff_of(server, database, environment) as staff,
            Child("starter", environment, server.folder / "starter.log") as starter,
        ):
            say("workers")
            staff.hire(given.workers - 1, CONCURRENCY)
            for number in range(1, given.repeats + 1):
                staff.hire(1, CONCURRENCY)
                say(f"kill {number} of {given.repeats}")
                gate = server.folder / f"gate-{number}"
                seconds.append(one_kill(starter, ear, staff, gate, given.lease))
        return document_of(seconds, given, server.facts())


def one_kill(starter: Child, ear: Ear, staff: Staff, gate: Path, lease: float) -> float:
    """Kill the worker that takes a run; return the seconds until the next one is at its step."""
    run = starter.ask({"workflow": "bench.stuck", "input": {"gate": str(gate)}})["run"]
    victim = ear.hear(run, LONGEST_START_SECONDS)["pid"]
    killed_at = time.time()
    staff.kill(victim)
    taken_over = ear.hear(run, lease + LONGEST_BEYOND_SECONDS)
    gate.touch()
    return float(taken_over["at"]) - killed_at


def document_of(
    seconds: list[float], given: argparse.Namespace, facts: dict[str, Any]
) -> dict[str, Any]:
    return {
        "bench": "recovery",
        "machine": facts,
        "broker": broker_name(),
        "repeats": given.repeats,
        "lease_seconds": given.lease,
        "recovery_seconds": report.summary(seconds),
        "beyond_lease_seconds": report.summary(max(0.0, taken - given.lease) for taken in seconds),
    }


def lines(document: dict[str, Any]) -> list[str]:
    titles = {
        "recovery_seconds": "from SIGKILL until the run goes on, s",
        "beyond_lease_seconds": "of which beyond the lease, s",
    }
    rows = [[title, *report.spread(document[name])] for name, title in titles.items()]
    return [
        report.measured_on(document["machine"]),
        f"Broker {document['broker']}; a lease of {document['lease_seconds']:g} s.",
        "",
        *report.table(["", "median", "lowest", "highest"], rows),
    ]
