"""`bench console`: what each page and each poll of the console costs the server.

Two databases of one server, a small one and one with a long history, are visited in turn by one
person who has a right on every queue and tenant: queries, time, processor time, compressed size.
A poll is asked as the page itself asks it, when nothing has changed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from romulus_site.bench import report
from romulus_site.bench.database import Server, bench_server
from romulus_site.bench.fill_console import fill_console
from romulus_site.bench.talk import Child
from workflows.management.base import positive

HELP = "what each page of the console costs, with few operations and with many"
WARM_UPS = 3
FEW_OPERATIONS, FEW_HOLDS = 1000, 50


@dataclass
class Side:
    """One of the databases, and who visits the pages on it."""

    child: Child
    ledger_rows: int
    visits: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--operations", type=positive, default=1_000_000)
    parser.add_argument("--holds", type=positive, default=5_000, help="of them, open")
    parser.add_argument("--people", type=positive, default=200)
    parser.add_argument("--queues", type=positive, default=50)
    parser.add_argument("--visits", type=positive, default=30, help="visits of each page")


def measure(given: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    with ExitStack() as stack:
        server = stack.enter_context(bench_server())
        empty = stack.enter_context(server.migrated())
        few = (min(FEW_OPERATIONS, given.operations), min(FEW_HOLDS, given.holds))
        sizes = {"few": few, "many": (given.operations, given.holds)}
        sides = {
            name: stack.enter_context(side_of(name, server, empty, size, given, say))
            for name, size in sizes.items()
        }
        for number in range(-WARM_UPS, given.visits):
            if number >= 0 and number % max(1, given.visits // 5) == 0:
                say(f"visit {number} of {given.visits}")
            for side in list(sides.values())[:: -1 if number % 2 else 1]:
                visit(side, kept=number >= 0)
        return document_of(sides, given, server.facts())


@contextmanager
def side_of(
    name: str,
    server: Server,
    empty: str,
    size: tuple[int, int],
    given: argparse.Namespace,
    say: Callable[[str], None],
) -> Iterator[Side]:
    with (
        server.database(empty) as database,
        Child("visitor", server.environment_of(database), server.folder / f"{name}.log") as child,
    ):
        child.hear()
        known = child.ask({"what": "set up", "people": given.people, "queues": given.queues})
        with server.connect(database) as connection:
            rows = fill_console(connection, *size, known, say)
        child.ask({"what": "open"})
        yield Side(child, rows)


def visit(side: Side, *, kept: bool) -> None:
    for page, cost in side.child.ask({"what": "visit"})["visits"].items():
        if kept:
            side.visits.setdefault(page, []).append(cost)


# --- what is told -------------------------------------------------------------------------------


def document_of(
    sides: dict[str, Side], given: argparse.Namespace, facts: dict[str, Any]
) -> dict[str, Any]:
    pages = {
        page: page_of(page, {name: side.visits.get(page, []) for name, side in sides.items()})
        for page in sides["many"].visits
    }
    return {
        "bench": "console",
        "machine": facts,
        "operations": given.operations,
        "holds": given.holds,
        "people": given.people,
        "queues": given.queues,
        "visits": given.visits,
        "ledger_rows": {name: side.ledger_rows for name, side in sides.items()},
        "most_queries": max(page["queries"] for page in pages.values()),
        "slowest_p95_ms": max(page["many"]["ms"]["p95"] for page in pages.values()),
        "pages": pages,
    }


def page_of(page: str, visits: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    every = [cost for costs in visits.values() for cost in costs]
    return {
        "is_poll": page.startswith("poll: "),
        "queries": max(cost["queries"] for cost in every),
        "statuses": sorted({cost["status"] for cost in every}),
        "kb": report.rounded(max(cost["kb"] for cost in every)),
        **{name: times_of(costs) for name, costs in visits.items() if costs},
        "ratio": report.ratios(*[[cost["ms"] for cost in visits[name]] for name in ("many", "few")])
        if len(visits["few"]) == len(visits["many"])
        else None,
    }


def times_of(costs: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: report.summary_of_many(cost[name] for cost in costs) for name in ("ms", "cpu_ms")}


def lines(document: dict[str, Any]) -> list[str]:
    rows = [
        [
            name,
            "/".join(map(str, page["statuses"])),
            page["queries"],
            page["few"]["ms"]["p95"] if "few" in page else None,
            page["many"]["ms"]["median"],
            page["many"]["ms"]["p95"],
            page["ratio"]["median"] if page["ratio"] else None,
            page["many"]["cpu_ms"]["median"],
            page["kb"],
        ]
        for name, page in document["pages"].items()
    ]
    heads = ["page", "answer", "queries", "few, p95 ms", "many, ms", "many, p95 ms"]
    heads += ["many/few", "CPU, ms", "kB"]
    return [
        report.measured_on(document["machine"]),
        f"{document['operations']} operations, {document['ledger_rows']['many']} rows of the "
        f"ledger, {document['holds']} open holds, {document['people']} people, "
        f"{document['queues']} queues; beside them {FEW_OPERATIONS} operations.",
        "",
        *report.table(heads, rows),
    ]
