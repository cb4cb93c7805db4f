"""`bench history`: what finished runs in the tables cost those that are at work.

Two databases of one server, one empty and one filled, are walked in turn: the machine's moods are
in both. Then the plans of the hot statements, on the filled one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from romulus_site.bench import report
from romulus_site.bench.costs import Costs, each, gauge_of
from romulus_site.bench.database import Server, bench_server
from romulus_site.bench.fill import fill
from romulus_site.bench.options import add_walk_arguments
from romulus_site.bench.plans import plans
from romulus_site.bench.steps import NAMES, Shape
from romulus_site.bench.walkers import Walkers, walkers
from workflows.management.base import positive
from workflows.sql import STATEMENTS

HELP = "the same with many finished runs in the tables, and the plans of the hot statements"
# Those that a moody machine changes least.
SHOWN_COSTS = ("commits", "wal_bytes_without_images", "worker_cpu_ms", "database_cpu_ms")
# A twentieth is less than what a moody machine makes of one walk and the next.
REPEATS = 21
SIZE = "SELECT pg_database_size(current_database())"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_walk_arguments(parser, repeats=REPEATS)
    parser.add_argument(
        "--finished", type=positive, default=1_000_000, help="finished runs in the tables"
    )


def measure(given: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    with bench_server() as server, server.migrated() as empty, server.database(empty) as full:
        began = time.monotonic()
        with server.connect(full) as connection:
            fill(connection, given.finished, say)
        filled = {"fill_seconds": report.rounded(time.monotonic() - began)}
        walks = walk_in_turn(server, empty, full, given, say)
        with server.connect(full) as connection:
            (size,) = connection.execute(SIZE).fetchone() or (None,)
            statements = plans(connection, STATEMENTS)
        numbers = [figures_of(shape, *walks[shape]) for shape in walks]
        return {
            "bench": "history",
            "machine": server.facts(),
            "finished": given.finished,
            **filled,
            "database_bytes": size,
            "runs": given.runs,
            "steps_per_run": given.steps,
            "repeats": given.repeats,
            "workers": given.workers,
            "ratio": min(number["ratio"]["median"] for number in numbers),
            "in_flight": numbers,
            "statements": statements,
        }


Walks = dict[Shape, tuple[list[Costs], list[Costs]]]
"""What each walk cost, without and with the finished runs."""


def walk_in_turn(
    server: Server, empty: str, full: str, given: argparse.Namespace, say: Callable[[str], None]
) -> Walks:
    walks: Walks = {Shape(number, given.runs, given.steps): ([], []) for number in given.in_flight}
    with both(server, (empty, full), given) as engines:
        for repeat in range(given.repeats + 1):
            say(f"repeat {repeat} of {given.repeats}" if repeat else "warm-up")
            for shape, kept in walks.items():
                # The one that comes second may find the machine in another mood.
                turns = list(zip(engines, kept, strict=True))[:: -1 if repeat % 2 else 1]
                for engine, costs in turns:
                    walked = shape.walked(engine)
                    if repeat:
                        costs.append(walked)
    return walks


@contextmanager
def both(
    server: Server, databases: tuple[str, str], given: argparse.Namespace
) -> Iterator[list[Walkers]]:
    with ExitStack() as stack:
        engines = []
        for database in databases:
            gauge = stack.enter_context(gauge_of(server, database))
            options: dict[str, Any] = {"steps": given.steps, "processes": given.workers}
            engine = walkers("engine", server, database, gauge, **options)
            engines.append(stack.enter_context(engine))
        yield engines


def figures_of(shape: Shape, without: list[Costs], having: list[Costs]) -> dict[str, Any]:
    rates_without = [shape.rate(costs) for costs in without]
    rates_with = [shape.rate(costs) for costs in having]
    steps = shape.runs * shape.steps
    return {
        "in_flight": shape.in_flight,
        "without_per_second": report.summary(rates_without),
        "with_per_second": report.summary(rates_with),
        "ratio": report.ratios(rates_with, rates_without),
        "ratio_median_between": report.median_between(
            one / other for one, other in zip(rates_with, rates_without, strict=True)
        ),
        "step_without": report.summary_of_costs([each(costs, steps) for costs in without]),
        "step_with": report.summary_of_costs([each(costs, steps) for costs in having]),
    }


# --- shown ----------------------------------------------------------------------------------


def lines(document: dict[str, Any]) -> list[str]:
    titles = {
        "without_per_second": "steps a second, empty",
        "with_per_second": f"with {document['finished']} finished runs",
        "ratio": "ratio",
    }
    rows = [
        [title, number["in_flight"], *report.spread(number[name])]
        for number in document["in_flight"]
        for name, title in titles.items()
    ]
    cost_rows = [
        [NAMES[cost], number["in_flight"], *medians(number, cost)]
        for number in document["in_flight"]
        for cost in SHOWN_COSTS
    ]
    plan_rows = [[plan["statement"], *shown_plan(plan)] for plan in document["statements"]]
    return [
        report.measured_on(document["machine"]),
        f"{document['finished']} finished runs take {document['database_bytes'] / 1e6:.0f} MB.",
        "",
        *report.table(["", "in flight", "median", "lowest", "highest"], rows),
        *(said_of_the_ratio(number) for number in document["in_flight"]),
        "",
        *report.table(["one step, its claim shared", "in flight", "empty", "filled"], cost_rows),
        "",
        *report.table(["statement", "indexes", "whole tables read"], plan_rows),
    ]


def said_of_the_ratio(number: dict[str, Any]) -> str:
    between = number["ratio_median_between"]
    if between is None:
        return f"At {number['in_flight']} in flight: too few repeats to say how sure the ratio is."
    low, high = between
    return (
        f"At {number['in_flight']} in flight the median ratio is between {low} and {high} (95 %)."
    )


def medians(number: dict[str, Any], cost: str) -> list[object]:
    return [report.spread(number[name][cost])[0] for name in ("step_without", "step_with")]


def shown_plan(plan: dict[str, Any]) -> list[object]:
    if plan["error"]:
        return [plan["error"].splitlines()[0], None]
    indexes = (
        f"{index['name']}{' (partial)' if index['partial'] else ''}" for index in plan["indexes"]
    )
    return [", ".join(indexes) or None, ", ".join(plan["sequential_scans"]) or None]
