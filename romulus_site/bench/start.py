"""`bench start`: thousands of runs started in one call, and what a backlog of them costs others.

Sweep and claim are timed in turn in two databases: behind a tenth of the runs, and behind all.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from romulus_site.bench import report
from romulus_site.bench.database import Server, bench_server
from romulus_site.bench.talk import Child
from romulus_site.bench.walkers import MS
from workflows.management.base import positive

HELP = "thousands of runs started in one call, and what they cost the sweep and a claim"
FEWER = 10
WARM_UPS = 6
TIME = {"runs": 0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=positive, default=10_000, help="runs started in one call")
    parser.add_argument("--times", type=positive, default=20, help="sweeps and claims that count")


def measure(given: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    # Each claim takes a run away, and there is one for each to take.
    few = max(given.runs // FEWER, given.times + WARM_UPS)
    many = max(given.runs, few)
    with bench_server() as server, server.migrated() as one, server.database(one) as other:
        with backlog(server, one) as small, backlog(server, other) as large:
            say(f"start {few} runs")
            small.ask({"runs": few})
            say(f"start {many} runs")
            started = large.ask({"runs": many})["start"]
            say("sweeps and claims behind both, in turn")
            timed = [(small.ask(TIME), large.ask(TIME)) for _ in range(given.times + WARM_UPS)]
        return {
            "bench": "start",
            "machine": server.facts(),
            "runs": many,
            "start_seconds": report.rounded(started),
            "sweep_ms": compared("sweep", timed[WARM_UPS:]),
            "claim_ms": compared("claim", timed[WARM_UPS:]),
            "fewer_runs": few,
        }


def backlog(server: Server, database: str) -> Child:
    environment = server.environment_of(database, broker="memory://")
    return Child("backlog", environment, server.folder / f"{database}.log")


def compared(name: str, timed: list[tuple[dict[str, float], dict[str, float]]]) -> dict[str, Any]:
    few = [small[name] * MS for small, _ in timed]
    many = [large[name] * MS for _, large in timed]
    return {
        "few": report.summary(few),
        "many": report.summary(many),
        "ratio": report.ratios(many, few)["median"],
    }


def lines(document: dict[str, Any]) -> list[str]:
    rows: list[list[object]] = []
    for name in ("sweep_ms", "claim_ms"):
        title = name.replace("_", ", ")
        backlogs = {"few": document["fewer_runs"], "many": document["runs"]}
        rows += [
            [title, runs, *report.spread(document[name][size])] for size, runs in backlogs.items()
        ]
        rows.append(["  many to few", None, document[name]["ratio"], None, None])
    return [
        report.measured_on(document["machine"]),
        f"{document['runs']} runs started in one call: {document['start_seconds']:.4g} s",
        "",
        *report.table(["behind a backlog", "runs", "median", "lowest", "highest"], rows),
    ]
