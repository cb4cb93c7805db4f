"""`bench operations`: what one write costs beside the bare calls that it consists of.

Runs of several writes to the rehearsal destination, in its own process on the loopback; each write
is sent, answered, its result checked, and settled with its step's checkpoint. What one *steady*
write costs is the difference that further writes of a run make, as in `bench steps`; the bare calls
are the same two requests by plain `httpx`. Both are walked in turn. PostgreSQL counts a statement
that only reads as a transaction too; of those that write there are three for each write, which
tests/integration/test_write_commits.py shows.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from django.conf import settings

from romulus_site import leash
from romulus_site.bench import report
from romulus_site.bench.costs import Costs, each, gauge_of
from romulus_site.bench.database import Server, bench_server
from romulus_site.bench.options import two_or_more
from romulus_site.bench.steps import Shape, steady
from romulus_site.bench.talk import ChildFailed
from romulus_site.bench.walkers import MS, Walkers, walkers
from workflows.management.base import positive

HELP = "writes a second, and what one costs beside its bare calls"
END_SECONDS = 10
NAMES = {
    "milliseconds": "elapsed, ms",
    "commits": "transactions, those that only read too",
    "wal_bytes": "WAL, bytes",
    "worker_cpu_ms": "worker CPU, ms",
    "database_cpu_ms": "database CPU, ms",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--in-flight", type=positive, default=1, help="runs at work at once")
    parser.add_argument("--runs", type=positive, default=8, help="runs of each walk")
    parser.add_argument("--writes", type=two_or_more, default=10, help="writes of each run")
    parser.add_argument(
        "--repeats", type=positive, default=3, help="walks that count, after one that does not"
    )


def measure(given: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    shape = Shape(given.in_flight, given.runs, given.writes)
    with (
        bench_server() as server,
        destination(server) as address,
        with_destination(server, address).migrated() as database,
        gauge_of(server, database) as gauge,
        walkers(
            "writes", with_destination(server, address), database, gauge, steps=given.writes
        ) as writes,
        walkers(
            "bare_calls", with_destination(server, address), database, gauge, steps=given.writes
        ) as calls,
    ):
        repeats = []
        for number in range(given.repeats + 1):
            say(f"repeat {number} of {given.repeats}" if number else "warm-up")
            repeats.append(one_repeat(shape, writes, calls))
        return figures(shape, repeats[1:]) | {"machine": server.facts()}


def one_repeat(shape: Shape, writes: Walkers, calls: Walkers) -> tuple[Costs, Costs, Costs]:
    """What all writes of a walk cost, one steady write, and one bare call."""
    whole = shape.walked(writes)
    of_one = Shape(shape.in_flight, shape.runs, steps=1).walked(writes)
    bare = shape.walked(calls)
    return whole, steady(shape, whole, of_one), each(bare, shape.runs * shape.steps)


def figures(shape: Shape, repeats: list[tuple[Costs, Costs, Costs]]) -> dict[str, Any]:
    rates = [shape.rate(whole) for whole, _, _ in repeats]
    steady_writes = report.summary_of_costs([write for _, write, _ in repeats])
    bare = report.summary_of_costs([call for _, _, call in repeats])
    return {
        "bench": "operations",
        "in_flight": shape.in_flight,
        "runs": shape.runs,
        "writes_per_run": shape.steps,
        "operations_per_second": report.summary(rates),
        "bare_calls_per_second": report.summary(
            MS / elapsed for _, _, call in repeats if (elapsed := call["milliseconds"])
        ),
        "steady_write": steady_writes,
        "bare_call": bare,
        "overhead_ms": report.summary(
            (write["milliseconds"] or 0) - (call["milliseconds"] or 0) for _, write, call in repeats
        ),
    }


def lines(document: dict[str, Any]) -> list[str]:
    rows = [
        [
            name,
            *report.spread(document["steady_write"][key]),
            *report.spread(document["bare_call"][key])[:1],
        ]
        for key, name in NAMES.items()
    ]
    return [
        report.measured_on(document["machine"]),
        f"{document['in_flight']} in flight: {document['operations_per_second']['median']:.4g} "
        f"operations/s, {document['overhead_ms']['median']:.4g} ms beside the bare calls",
        "",
        *report.table(["one write", "median", "lowest", "highest", "bare calls"], rows),
    ]


# --- the destination --------------------------------------------------------------------------


@contextmanager
def destination(server: Server) -> Iterator[str]:
    """Run the rehearsal destination in a folder of the bench's, and give its address."""
    command = [sys.executable, "-m", "reconciliation.rehearsal.destination"]
    process = subprocess.Popen(  # noqa: S603 (our own command line)
        leash.command(
            [*command, "--data", str(server.folder / "destination"), "--port", "0"],
            signal=signal.SIGKILL,
        ),
        cwd=settings.BASE_DIR,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line.startswith("listening on "):
            raise ChildFailed("The rehearsal destination did not start.")
        yield line.split()[-1]
    finally:
        process.terminate()
        process.wait(END_SECONDS)
        process.stdout.close()


def with_destination(server: Server, address: str) -> Server:
    return replace(server, environment=server.environment | {"ROMULUS_BENCH_DESTINATION": address})
