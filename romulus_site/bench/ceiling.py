"""`bench ceiling`: the limit of one commit a step, on this very PostgreSQL.

The loop and the reasons for it are in `children.bare_loop`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from romulus_site.bench import report
from romulus_site.bench.costs import Costs, each, gauge_of
from romulus_site.bench.database import bench_server
from romulus_site.bench.options import add_walk_arguments
from romulus_site.bench.steps import NAMES, Shape
from romulus_site.bench.walkers import walkers

HELP = "the most steps a second that one commit a step allows here, without the engine"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_walk_arguments(parser)


def measure(given: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    shapes = [Shape(number, given.runs, given.steps) for number in given.in_flight]
    walks: list[list[Costs]] = []
    options: dict[str, Any] = {"steps": given.steps, "processes": given.workers}
    with (
        bench_server() as server,
        server.database() as database,
        gauge_of(server, database) as gauge,
        walkers("bare_loop", server, database, gauge, **options) as loop,
    ):
        for number in range(given.repeats + 1):
            say(f"repeat {number} of {given.repeats}" if number else "warm-up")
            walks.append([shape.walked(loop) for shape in shapes])
        return {
            "bench": "ceiling",
            "machine": server.facts(),
            "runs": given.runs,
            "steps_per_run": given.steps,
            "repeats": given.repeats,
            "workers": given.workers,
            "in_flight": [
                figures_of(shape, [repeat[place] for repeat in walks[1:]])
                for place, shape in enumerate(shapes)
            ],
        }


def figures_of(shape: Shape, walks: Sequence[Costs]) -> dict[str, Any]:
    return {
        "in_flight": shape.in_flight,
        "ceiling_per_second": report.summary(shape.rate(costs) for costs in walks),
        "ceiling_step": report.summary_of_costs(
            [each(costs, shape.runs * shape.steps) for costs in walks]
        ),
    }


def lines(document: dict[str, Any]) -> list[str]:
    numbers = document["in_flight"]
    rates = [["steps a second", one["in_flight"], *spread(one)] for one in numbers]
    costs = [
        [title, one["in_flight"], *report.spread(one["ceiling_step"][name])]
        for one in numbers
        for name, title in NAMES.items()
    ]
    return [
        report.measured_on(document["machine"]),
        "",
        *report.table(["the bare loop", "in flight", "median", "lowest", "highest"], rates),
        "",
        *report.table(["one step of it", "in flight", "median", "lowest", "highest"], costs),
    ]


def spread(number: dict[str, Any]) -> list[object]:
    return report.spread(number["ceiling_per_second"])
