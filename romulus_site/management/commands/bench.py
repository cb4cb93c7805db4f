"""`manage.py bench`: how fast steps are, beside the most that this very database allows.

Figures of one run only are comparable, so the engine and the ceiling are measured in turn, and the
ratio counts. On the embedded PostgreSQL a server of its own is started in a temporary folder, with
the product's own durability; with `DATABASE_URL`, a database of its own is made on that server.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from celery import current_app
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connection, connections

from romulus_site.embedded import EmbeddedPostgres, database_settings
from workflows.core.definitions import Workflow
from workflows.models import Tenant
from workflows.registry import registry
from workflows.services.executor import advance
from workflows.services.ownership import Keeper
from workflows.services.run_view import RunView
from workflows.services.runs import start

BENCH_DATABASE = "romulus_bench"
STEPS = 10


def bench_workflow() -> Workflow:
    workflow = Workflow("bench", version=1)
    for number in range(STEPS):

        def step(_run: RunView) -> int:
            return 1

        step.__name__ = f"step_{number}"
        workflow.step()(step)
    return workflow


class Command(BaseCommand):
    help = "Measure steps a second, and the ratio to a bare loop of one statement and one commit."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--runs", type=int, default=40, help="runs of 10 steps each, a repeat")
        parser.add_argument("--threads", type=int, default=4, help="runs in flight")
        parser.add_argument("--repeats", type=int, default=3)
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        # Hints would find no worker here: what is measured is the worker's own part.
        current_app.conf.update(broker_url="memory://", broker_transport_options={})
        with bench_database():
            registry.add(bench_workflow())
            result = measure(options["runs"], options["threads"], options["repeats"])
        if options["json"]:
            self.stdout.write(json.dumps(result))
            return
        self.stdout.write(f"{'':<10}{'median':>10}{'lowest':>10}{'highest':>10}  steps/s")
        for name in ("steps", "ceiling"):
            figures = result[name]
            self.stdout.write(
                f"{name:<10}{statistics.median(figures):>10.0f}{min(figures):>10.0f}"
                f"{max(figures):>10.0f}"
            )
        self.stdout.write(f"ratio to the ceiling: {result['ratio_to_ceiling']:.2f}")


def measure(runs: int, threads: int, repeats: int) -> dict[str, Any]:
    """Measure engine and ceiling in turn, after one warm-up of each."""
    figures: dict[str, list[float]] = {"steps": [], "ceiling": []}
    for repeat in range(repeats + 1):
        for name, once in (("steps", engine), ("ceiling", ceiling)):
            rate = once(runs, threads)
            if repeat:
                figures[name].append(rate)
    ratio = statistics.median(figures["steps"]) / statistics.median(figures["ceiling"])
    return {"threads": threads, **figures, "ratio_to_ceiling": ratio}


def engine(runs: int, threads: int) -> float:
    tenant, _ = Tenant.objects.get_or_create(slug="bench", defaults={"name": "Bench"})
    started = [start("bench", {}, tenant=tenant).pk for _ in range(runs)]
    keeper = Keeper()

    def work(mine: list[UUID]) -> None:
        for run in mine:
            advance(run, keeper)

    return runs * STEPS / timed(threads, lambda number: work(started[number::threads]))


def ceiling(runs: int, threads: int) -> float:
    """One insert, one update and one commit a step in one statement, without any of our code."""
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS bench_output, bench_run")
        cursor.execute("CREATE TABLE bench_run (id int PRIMARY KEY, step int, fence bigint)")
        cursor.execute("CREATE TABLE bench_output (run int, step int, value jsonb)")
        cursor.execute("INSERT INTO bench_run SELECT n, 0, 0 FROM generate_series(1, %s) n", [runs])
    statement = """
        WITH moved AS (
            UPDATE bench_run SET step = step + 1, fence = fence + 1 WHERE id = %s RETURNING id, step
        )
        INSERT INTO bench_output SELECT id, step, '1' FROM moved
    """

    def work(mine: range) -> None:
        with connection.cursor() as cursor:
            for run in mine:
                for _ in range(STEPS):
                    cursor.execute(statement, [run])

    every = range(1, runs + 1)
    return runs * STEPS / timed(threads, lambda number: work(every[number::threads]))


def timed(threads: int, work: Callable[[int], None]) -> float:
    """Return the seconds that `threads` threads take, each with a connection of its own."""

    def one(number: int) -> None:
        try:
            work(number)
        finally:
            connection.close()

    crew = [threading.Thread(target=one, args=(number,)) for number in range(threads)]
    began = time.perf_counter()
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    return time.perf_counter() - began


@contextmanager
def bench_database() -> Iterator[None]:
    """Point this process at a migrated database that is dropped after."""
    if settings.ROMULUS_EMBEDDED:
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "data"
            with EmbeddedPostgres(data):
                connection.settings_dict.update(database_settings(data))
                call_command("migrate", verbosity=0, interactive=False)
                yield
                connections.close_all()
        return
    creation = connection.creation
    connection.settings_dict.setdefault("TEST", {})["NAME"] = BENCH_DATABASE
    creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        yield
    finally:
        creation.destroy_test_db(connection.settings_dict["NAME"], verbosity=0)
