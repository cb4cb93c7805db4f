"""`bench events`: how soon a run goes on with its event, and how fast events are taken.

- Latency: real workers and the real broker, at rest. A run waits; an event is stored; the step
  after the wait tells the time. The clock starts before the event is stored.
- Ingress: the product's web server, deliveries signed by Standard Webhooks. Beside them, on the
  same server and in turn, a bare view that keeps the body in one row. Deliveries that find nothing
  that waits for them, and deliveries each of which finds an open wait and makes its run ready.
- Memory: what the web server's largest process has had at most, before and after bodies of 60 MB
  that it has to refuse.

All of it on two databases of one server, an empty one and one with many stored events and open
waits, in turn. Then the plans of the statements, on the filled one.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from romulus_site.bench import report
from romulus_site.bench.database import Server, bench_server
from romulus_site.bench.fill_events import fill_events, fill_waits, fresh_prefix, settle
from romulus_site.bench.history import shown_plan
from romulus_site.bench.ingress import BARE, HOOK, WebServer, answers_of, web_server
from romulus_site.bench.plans import plans
from romulus_site.bench.talk import Child
from romulus_site.bench.urls import TABLE
from romulus_site.bench.walkers import MS
from romulus_site.bench.workers import Ear, Silence, broker_name, scene, staff_of
from workflows.management.base import positive
from workflows.sql import STATEMENTS

HELP = "how soon an event moves its run, and how fast events are taken"
WARM_UPS = 3
LONGEST_SECONDS = 30.0
LARGE_BYTES = 60_000_000
LARGE_AT_ONCE = 4
ACCEPTED = "202"
STATEMENTS_OF_EVENTS = (
    *("lock_matching", "open_waits", "store_event", "lock_waits", "give_event"),
    *("open_wait", "latest_wait", "take_events", "missed_events"),
)


@dataclass
class Figures:
    """What was measured on one database."""

    event_to_step_ms: list[float] = field(default_factory=list)
    stored_to_step_ms: list[float] = field(default_factory=list)
    bare_per_second: list[float] = field(default_factory=list)
    unmatched_per_second: list[float] = field(default_factory=list)
    matched_per_second: list[float] = field(default_factory=list)
    memory: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Side:
    """One of the databases, with all that is at work on it."""

    name: str
    server: Server
    database: str
    ear: Ear
    sender: Child
    poster: Child
    web: WebServer
    figures: Figures = field(default_factory=Figures)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=positive, default=100, help="events that move a run")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between two, on average")
    parser.add_argument("--deliveries", type=positive, default=1000, help="of each burst over HTTP")
    parser.add_argument("--connections", type=positive, default=8, help="that deliver at once")
    parser.add_argument("--repeats", type=positive, default=5, help="bursts that count")
    parser.add_argument("--events", type=positive, default=1_000_000, help="stored events")
    parser.add_argument("--waits", type=positive, default=100_000, help="open waits")
    parser.add_argument("--concurrency", type=positive, default=4, help="threads of the worker")


def measure(given: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    with (
        bench_server() as server,
        server.migrated() as empty,
        prepared(server, empty) as filled,
        ExitStack() as stack,
    ):
        fill(server, filled, given, say)
        say("workers and web servers")
        sides = [
            stack.enter_context(side_of(name, server, database, given))
            for name, database in (("empty", empty), ("filled", filled))
        ]
        latencies(sides, given, say)
        rates(sides, given, say)
        for side in sides:
            side.figures.memory = memory(side, say)
        with server.connect(filled) as connection:
            ours = {name: STATEMENTS[name] for name in STATEMENTS_OF_EVENTS}
            statements = plans(connection, ours)
        return document_of(sides, statements, given, server.facts())


# --- the scene ----------------------------------------------------------------------------------


@contextmanager
def prepared(server: Server, database: str) -> Iterator[str]:
    """Set up the source of the bench and the table of the bare view; give a second such one."""
    with server.connect(database) as connection:
        connection.execute(TABLE.encode())
    with child("sender", server, server.environment_of(database)):
        pass
    with server.database(database) as second:
        yield second


def fill(
    server: Server, database: str, given: argparse.Namespace, say: Callable[[str], None]
) -> None:
    with server.connect(database) as connection:
        fill_events(connection, given.events, say)
        fill_waits(connection, given.waits, "old-wait", say)
        settle(connection, say)


@contextmanager
def child(name: str, server: Server, environment: dict[str, str]) -> Iterator[Child]:
    with Child(name, environment, server.folder / f"{name}.log") as started:
        started.hear()
        yield started


@contextmanager
def side_of(name: str, server: Server, database: str, given: argparse.Namespace) -> Iterator[Side]:
    folder = server.folder / name
    folder.mkdir()
    own = replace(server, folder=folder)
    with (
        scene(own, database) as (ear, environment),
        staff_of(own, database, environment) as staff,
        child("sender", own, environment) as sender,
        child("poster", own, environment) as poster,
        web_server(environment, folder) as web,
    ):
        staff.hire(1, given.concurrency)
        yield Side(name, own, database, ear, sender, poster, web)


# --- latency ------------------------------------------------------------------------------------


def latencies(sides: list[Side], given: argparse.Namespace, say: Callable[[str], None]) -> None:
    for number in range(-WARM_UPS, given.runs):
        if number >= 0 and number % max(1, given.runs // 5) == 0:
            say(f"event {number} of {given.runs}")
        for side in in_turn(sides, number):
            one_event(side, side.figures if number >= 0 else Figures(), given.pause)


def in_turn(sides: list[Side], number: int) -> list[Side]:
    """The one that comes second may find the machine in another mood."""
    return sides[:: -1 if number % 2 else 1]


def one_event(side: Side, figures: Figures, pause: float) -> None:
    correlation = fresh_prefix()
    run = side.sender.ask({"what": "start", "correlation": correlation})["run"]
    # Never in step with anything that looks at the clock: a poll, the sweep.
    time.sleep(random.uniform(pause / 2, pause * 3 / 2))  # noqa: S311 (no secret)
    sent = side.sender.ask({"what": "send", "correlation": correlation})
    at = side.ear.hear(run, LONGEST_SECONDS)["at"]
    figures.event_to_step_ms.append((at - sent["before"]) * MS)
    figures.stored_to_step_ms.append((at - sent["after"]) * MS)


# --- ingress ------------------------------------------------------------------------------------


def rates(sides: list[Side], given: argparse.Namespace, say: Callable[[str], None]) -> None:
    for repeat in range(given.repeats + 1):
        say(f"repeat {repeat} of {given.repeats}" if repeat else "warm-up")
        for side in in_turn(sides, repeat):
            kept = side.figures if repeat else Figures()
            kept.bare_per_second.append(burst(side, given, BARE, fresh_prefix()))
            kept.unmatched_per_second.append(burst(side, given, HOOK, fresh_prefix()))
            kept.matched_per_second.append(burst(side, given, HOOK, waiting_ones(side, given)))


def waiting_ones(side: Side, given: argparse.Namespace) -> str:
    """Let as many runs wait as are delivered to; return the prefix of their correlations."""
    prefix = fresh_prefix()
    with side.server.connect(side.database) as connection:
        fill_waits(connection, given.deliveries, prefix, lambda _: None)
    return prefix


def burst(side: Side, given: argparse.Namespace, path: str, prefix: str) -> float:
    """Deliver a burst of events; return how many were taken a second."""
    answer = side.poster.ask(
        {
            "port": side.web.port,
            "path": path,
            "prefix": prefix,
            "number": given.deliveries,
            "connections": given.connections,
        }
    )
    if answer["answers"] != {ACCEPTED: given.deliveries}:
        raise Silence(f"{path} did not take all deliveries: {answers_of(answer)}")
    return float(given.deliveries / answer["seconds"])


def memory(side: Side, say: Callable[[str], None]) -> dict[str, Any]:
    say(f"bodies of {LARGE_BYTES // 1_000_000} MB")
    before = side.web.peak_bytes()
    order = {"port": side.web.port, "bytes": LARGE_BYTES, "connections": LARGE_AT_ONCE}
    answer = side.poster.ask(order)
    after = side.web.peak_bytes()
    known = before is not None and after is not None
    return {
        "answers": answer["answers"],
        "peak_mb_before": report.rounded(before / 1e6) if before is not None else None,
        "peak_mb_after": report.rounded(after / 1e6) if after is not None else None,
        "grown_mb": report.rounded((after - before) / 1e6) if known else None,  # type: ignore[operator]
    }


# --- what is told -------------------------------------------------------------------------------


def document_of(
    sides: list[Side],
    statements: list[dict[str, Any]],
    given: argparse.Namespace,
    facts: dict[str, Any],
) -> dict[str, Any]:
    empty, filled = (summed(side.figures) for side in sides)
    return {
        "bench": "events",
        "machine": facts,
        "broker": broker_name(),
        "runs": given.runs,
        "deliveries": given.deliveries,
        "connections": given.connections,
        "repeats": given.repeats,
        "events": given.events,
        "waits": given.waits,
        "empty": empty,
        "filled": filled,
        "filled_to_empty": {
            name: report.rounded(filled[name]["median"] / empty[name]["median"])
            for name in ("event_to_step_ms", "unmatched_per_second", "matched_per_second")
        },
        "statements": statements,
    }


def summed(figures: Figures) -> dict[str, Any]:
    return {
        "event_to_step_ms": report.summary_of_many(figures.event_to_step_ms),
        "stored_to_step_ms": report.summary_of_many(figures.stored_to_step_ms),
        "bare_per_second": report.summary(figures.bare_per_second),
        "unmatched_per_second": report.summary(figures.unmatched_per_second),
        "matched_per_second": report.summary(figures.matched_per_second),
        "unmatched_to_bare": report.ratios(figures.unmatched_per_second, figures.bare_per_second),
        "matched_to_bare": report.ratios(figures.matched_per_second, figures.bare_per_second),
        "memory": figures.memory,
    }


def lines(document: dict[str, Any]) -> list[str]:
    titles = {
        "event_to_step_ms": "event to its run's next step, ms",
        "stored_to_step_ms": "of which after it was committed, ms",
        "bare_per_second": "bare view, deliveries a second",
        "unmatched_per_second": "events that nobody waits for, a second",
        "matched_per_second": "events that move a run, a second",
        "unmatched_to_bare": "ratio to the bare view",
        "matched_to_bare": "ratio to the bare view, moving a run",
    }
    rows = [
        [title, side, *report.spread(document[side][name]), document[side][name].get("p95")]
        for name, title in titles.items()
        for side in ("empty", "filled")
    ]
    plan_rows = [[plan["statement"], *shown_plan(plan)] for plan in document["statements"]]
    return [
        report.measured_on(document["machine"]),
        f"Broker {document['broker']}; filled: {document['events']} stored events, "
        f"{document['waits']} open waits.",
        "",
        *report.table(["", "tables", "median", "lowest", "highest", "p95"], rows),
        "",
        *(memory_line(side, document[side]["memory"]) for side in ("empty", "filled")),
        "",
        *report.table(["statement", "indexes", "whole tables read"], plan_rows),
    ]


def memory_line(side: str, found: dict[str, Any]) -> str:
    return (
        f"{LARGE_AT_ONCE} bodies of {LARGE_BYTES // 1_000_000} MB at once ({side}): answered "
        f"{answers_of(found)}; the web server's peak {found['peak_mb_before']} MB before, "
        f"{found['peak_mb_after']} MB after."
    )
