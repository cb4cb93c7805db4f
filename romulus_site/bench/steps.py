"""`bench steps`: throughput beside the ceiling, and what one steady step costs.

A walk takes `--runs` runs of `--steps` steps to their end; its throughput has the claims in it, and
not the starts. What a *steady* step costs, without the claim of its run, is the difference between
that walk and one of as many runs of one step, for each further step. Engine and ceiling are walked
in turn, and each ratio is of two walks that followed each other.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from romulus_site.bench import report
from romulus_site.bench.costs import Costs, Gauge, beyond, each, gauge_of
from romulus_site.bench.database import Server, bench_server
from romulus_site.bench.options import add_walk_arguments
from romulus_site.bench.proxy import counting_proxy
from romulus_site.bench.walkers import MS, Walkers, walkers

HELP = "steps a second beside the ceiling, and what a steady step costs"
# Round trips do not vary: a few runs show them.
COUNTED_RUNS = 4

NAMES = {
    "milliseconds": "elapsed, ms",
    "round_trips": "round trips",
    "commits": "commits",
    "wal_bytes": "WAL, bytes",
    "wal_bytes_without_images": "WAL without full-page images, bytes",
    "worker_cpu_ms": "worker CPU, ms",
    "database_cpu_ms": "database CPU, ms",
}


@dataclass(frozen=True)
class Shape:
    """How much one walk is."""

    in_flight: int
    runs: int
    steps: int

    def rate(self, costs: Costs) -> float:
        """Return the steps a second of a walk of this shape."""
        elapsed = costs["milliseconds"]
        assert elapsed is not None
        return self.runs * self.steps / elapsed * MS

    def walked(self, by: Walkers) -> Costs:
        return by.walk(in_flight=self.in_flight, runs=self.runs, steps=self.steps)


@dataclass(frozen=True)
class Repeat:
    """The walks of one repeat, one after the other."""

    shape: Shape
    engine: Costs
    of_one_step: Costs
    ceiling: Costs

    @property
    def steady_step(self) -> Costs:
        return steady(self.shape, self.engine, self.of_one_step)

    @property
    def step_with_claim(self) -> Costs:
        return each(self.engine, self.shape.runs * self.shape.steps)

    @property
    def ceiling_step(self) -> Costs:
        return each(self.ceiling, self.shape.runs * self.shape.steps)


def steady(shape: Shape, whole: Costs, of_one_step: Costs) -> Costs:
    return each(beyond(whole, of_one_step), shape.runs * (shape.steps - 1))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_walk_arguments(parser)


def measure(given: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    with bench_server() as server, server.migrated() as database:
        with gauge_of(server, database) as gauge:
            repeats = walk_in_turn(server, database, gauge, given, say)
            say("round trips")
            trips = round_trips(server, database, gauge, given.steps)
        numbers = [
            figures_of([one for one in repeats if one.shape.in_flight == number], trips)
            for number in given.in_flight
        ]
        return {
            "bench": "steps",
            "machine": server.facts(),
            "runs": given.runs,
            "steps_per_run": given.steps,
            "repeats": given.repeats,
            "workers": given.workers,
            "ratio_to_ceiling": min(number["ratio_to_ceiling"] for number in numbers),
            "in_flight": numbers,
        }


def walk_in_turn(
    server: Server,
    database: str,
    gauge: Gauge,
    given: argparse.Namespace,
    say: Callable[[str], None],
) -> list[Repeat]:
    """Return the repeats that count: the first walks only warm everything up."""
    options: dict[str, Any] = {"steps": given.steps, "processes": given.workers}
    with (
        walkers("engine", server, database, gauge, **options) as engine,
        walkers("bare_loop", server, database, gauge, **options) as ceiling,
    ):
        repeats = []
        for number in range(given.repeats + 1):
            say(f"repeat {number} of {given.repeats}" if number else "warm-up")
            for in_flight in given.in_flight:
                shape = Shape(in_flight, given.runs, given.steps)
                repeats.append(one_repeat(shape, engine, ceiling, ceiling_first=bool(number % 2)))
    return repeats[len(given.in_flight) :]


def one_repeat(shape: Shape, engine: Walkers, ceiling: Walkers, *, ceiling_first: bool) -> Repeat:
    """Walk both, one after the other: who comes second may find the machine in another mood."""
    first = shape.walked(ceiling) if ceiling_first else None
    walked = shape.walked(engine)
    return Repeat(
        shape,
        engine=walked,
        ceiling=first or shape.walked(ceiling),
        of_one_step=Shape(shape.in_flight, shape.runs, steps=1).walked(engine),
    )


def round_trips(server: Server, database: str, gauge: Gauge, steps: int) -> dict[str, float]:
    """Return the round trips of a steady step and of one with its run's claim, one in flight."""
    shape = Shape(in_flight=1, runs=COUNTED_RUNS, steps=steps)
    with (
        counting_proxy(server) as proxy,
        walkers("engine", server, database, gauge, steps=steps, proxy=proxy) as engine,
    ):
        whole = shape.walked(engine)
        of_one_step = Shape(1, COUNTED_RUNS, steps=1).walked(engine)
    counted = {
        "steady_step": steady(shape, whole, of_one_step),
        "step_with_claim": each(whole, shape.runs * shape.steps),
    }
    return {name: costs["round_trips"] or 0.0 for name, costs in counted.items()}


def figures_of(repeats: Sequence[Repeat], trips: dict[str, float]) -> dict[str, Any]:
    """Sum up the repeats of one number in flight."""
    shape = repeats[0].shape
    rates = [shape.rate(one.engine) for one in repeats]
    ceilings = [shape.rate(one.ceiling) for one in repeats]
    ratio = report.ratios(rates, ceilings)
    document: dict[str, Any] = {
        "in_flight": shape.in_flight,
        "steps_per_second": report.summary(rates),
        "ceiling_per_second": report.summary(ceilings),
        "ratio_to_ceiling": ratio["median"],
        "ratio": ratio,
        "ceiling_step": report.summary_of_costs([one.ceiling_step for one in repeats]),
    }
    for name in ("steady_step", "step_with_claim"):
        costs = report.summary_of_costs([getattr(one, name) for one in repeats])
        document[name] = {**costs, "round_trips": report.summary([trips[name]])}
    return document


# --- shown ----------------------------------------------------------------------------------


def lines(document: dict[str, Any]) -> list[str]:
    numbers = document["in_flight"]
    shown = [
        report.measured_on(document["machine"]),
        f"Walks of {document['runs']} runs of {document['steps_per_run']} steps by "
        f"{document['workers']} process(es); {document['repeats']} repeats after a warm-up.",
        "",
        *report.table(["", "in flight", "median", "lowest", "highest"], throughput(numbers)),
    ]
    for number in numbers:
        shown += ["", *report.table(heads(number["in_flight"]), costs_of(number))]
    return shown


def throughput(numbers: Sequence[dict[str, Any]]) -> list[list[object]]:
    titles = {
        "steps_per_second": "steps a second",
        "ceiling_per_second": "ceiling",
        "ratio": "ratio to the ceiling",
    }
    return [
        [title, number["in_flight"], *report.spread(number[name])]
        for number in numbers
        for name, title in titles.items()
    ]


def heads(in_flight: int) -> list[str]:
    return [
        f"one step, {in_flight} in flight",
        *("steady", "lowest", "highest"),
        *("with the claim", "ceiling"),
    ]


def costs_of(number: dict[str, Any]) -> list[list[object]]:
    return [
        [
            title,
            *report.spread(number["steady_step"][name]),
            report.spread(number["step_with_claim"][name])[0],
            report.spread(number["ceiling_step"][name])[0],
        ]
        for name, title in NAMES.items()
    ]
