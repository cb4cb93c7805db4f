"""`bench latency`: how soon a run is at work, and how soon a step follows the one before.

Real workers and the real broker, at rest: one run at a time, with pauses in between. The time
before `start()` is read by the process that starts the run; each step reads the clock of the same
machine and returns it, nothing else. In turn with them are measured: the commit latency, which is
that of the ceiling's loop, and what a task that does nothing takes from its sender to its worker,
by the same broker and the same worker: Celery alone.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import psycopg

from romulus_site.bench import report
from romulus_site.bench.costs import gauge_of
from romulus_site.bench.database import bench_server
from romulus_site.bench.flows import CLOCKED_STEPS
from romulus_site.bench.steps import Shape
from romulus_site.bench.talk import Child
from romulus_site.bench.walkers import MS, Walkers, walkers
from romulus_site.bench.workers import Ear, broker_name, scene, staff_of
from workflows.management.base import positive

HELP = "how soon a started run is at work, and a step after the one before"
# The first ones open connections and import modules.
WARM_UPS = 3
BLOCKS = 5
LONGEST_SECONDS = 30.0
COMMITS = Shape(in_flight=1, runs=4, steps=50)
# When a run came to each of its steps but the last, which is under way or just over.
REACHED = "SELECT output::float8 FROM workflows_attempt WHERE run_id = %s ORDER BY fence LIMIT %s"


@dataclass
class Times:
    """All in milliseconds."""

    start_call: list[float] = field(default_factory=list)
    start_to_first: list[float] = field(default_factory=list)
    step_to_step: list[float] = field(default_factory=list)
    celery_alone: list[float] = field(default_factory=list)
    commit: list[float] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=positive, default=100, help="runs that are started")
    parser.add_argument("--pause", type=float, default=0.1, help="seconds between two, on average")
    parser.add_argument("--workers", type=positive, default=1, help="worker processes")
    parser.add_argument("--concurrency", type=positive, default=4, help="threads in each")


def measure(given: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    times = Times()
    with (
        bench_server() as server,
        server.migrated() as database,
        gauge_of(server, database) as gauge,
        scene(server, database) as (ear, environment),
        staff_of(server, database, environment) as staff,
        walkers("bare_loop", server, database, gauge, steps=COMMITS.steps) as loop,
        Child("starter", environment, server.folder / "starter.log") as starter,
        server.connect(database) as connection,
    ):
        say("workers")
        staff.hire(given.workers, given.concurrency)
        COMMITS.walked(loop)
        for _ in range(WARM_UPS):
            one_run(starter, ear, connection, Times(), given.pause)
            one_task(starter, ear, Times(), given.pause)
        for number in range(given.runs):
            if number % max(1, given.runs // BLOCKS) == 0:
                say(f"run {number} of {given.runs}")
                times.commit.append(commit_latency(loop))
            one_run(starter, ear, connection, times, given.pause)
            one_task(starter, ear, times, given.pause)
        times.commit.append(commit_latency(loop))
        return document_of(times, given, server.facts())


def one_run(
    starter: Child, ear: Ear, connection: psycopg.Connection, times: Times, pause: float
) -> None:
    rest(pause)
    started = starter.ask({"workflow": "bench.clocked", "input": {}})
    last = ear.hear(started["run"], LONGEST_SECONDS)["at"]
    earlier = connection.execute(REACHED, [started["run"], CLOCKED_STEPS - 1])
    reached = [row[0] for row in earlier] + [last]
    times.start_call.append((started["after"] - started["before"]) * MS)
    times.start_to_first.append((reached[0] - started["before"]) * MS)
    times.step_to_step.extend((second - first) * MS for first, second in pairwise(reached))


def one_task(starter: Child, ear: Ear, times: Times, pause: float) -> None:
    rest(pause)
    sent = starter.ask({})
    reached = ear.hear(sent["run"], LONGEST_SECONDS)["at"]
    times.celery_alone.append((reached - sent["before"]) * MS)


def rest(pause: float) -> None:
    # Never in step with anything that looks at the clock: a poll, the sweep.
    time.sleep(random.uniform(pause / 2, pause * 3 / 2))  # noqa: S311 (no secret)


def commit_latency(loop: Walkers) -> float:
    return MS / COMMITS.rate(COMMITS.walked(loop))


def document_of(times: Times, given: argparse.Namespace, facts: dict[str, Any]) -> dict[str, Any]:
    start_to_first = report.summary_of_many(times.start_to_first)
    step_to_step = report.summary_of_many(times.step_to_step)
    alone = report.summary_of_many(times.celery_alone)
    commit = report.summary(times.commit)
    return {
        "bench": "latency",
        "machine": facts,
        "broker": broker_name(),
        "runs": given.runs,
        "workers": given.workers,
        "concurrency": given.concurrency,
        "pause_seconds": given.pause,
        "start_call_ms": report.summary_of_many(times.start_call),
        "start_to_first_step_ms": start_to_first,
        "celery_alone_ms": alone,
        "step_to_step_ms": step_to_step,
        "commit_ms": commit,
        "start_to_celery_ratio": report.rounded(start_to_first["median"] / alone["median"]),
        "step_to_commit_ratio": report.rounded(step_to_step["median"] / commit["median"]),
    }


def lines(document: dict[str, Any]) -> list[str]:
    titles = {
        "start_to_first_step_ms": "start to first step, ms",
        "start_call_ms": "of which the call that starts it, ms",
        "celery_alone_ms": "a task of Celery alone, ms",
        "step_to_step_ms": "step to step, ms",
        "commit_ms": "one commit of the ceiling, ms",
    }
    rows = [
        [title, *report.spread(document[name]), document[name].get("p95")]
        for name, title in titles.items()
    ]
    return [
        report.measured_on(document["machine"]),
        f"Broker {document['broker']}; {document['runs']} runs, one at a time.",
        "",
        *report.table(["", "median", "lowest", "highest", "p95"], rows),
        "",
        f"start to first step, in tasks of Celery: {document['start_to_celery_ratio']:.4g}",
        f"step to step, in commits: {document['step_to_commit_ratio']:.4g}",
    ]
