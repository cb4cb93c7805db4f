"""Case A15: clean-up, workers, cancellations and starts at the same rows at the same time.

8 worker processes whose sweeps come by five times a second; the clean-up runs all the while,
instead of once a minute.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm
from pytest_django import Settings

from reconciliation.models import Operation
from romulus_site.embedded import EmbeddedPostgres
from tests.acceptance.forks import forked_workers
from tests.acceptance.payfake import (
    OVER,
    all_over,
    console,
    effects,
    order_run,
    payfake,
    sends,
    states_of,
)
from tests.acceptance.refunding import passages
from tests.destination import RunningDestination
from tests.factories import person, tenant
from tests.racing import beside, with_own_connection
from tests.waiting import wait_for
from tests.workers import Crew
from workflows.models import Attempt, Run
from workflows.services.purge import purge_due
from workflows.services.runs import Start, start_many
from workflows.services.stopping import pause_run

pytestmark = pytest.mark.processes

WORKERS, ACTIVE, REFUNDS, BURST = 8, 500, 40, 200
PATIENCE = 600  # seconds: far beyond need, also on a machine with other work
HANDS = 4  # so many people cancel at once
STEPS = {
    "counted": ["one", "two", "three"],
    "refunding": ["prepare", "refund", "check", "notify"],
}


def many(folder: Path, workflow: str, first: int, number: int) -> list[Run]:
    inputs = ({"order": f"ORD-{n}", "folder": str(folder)} for n in range(first, first + number))
    return start_many(workflow, [Start(each) for each in inputs], tenant=tenant())


def operator() -> Client:
    user = person("operator_1")
    for right in ("view_tenant", "control_runs"):
        assign_perm(f"workflows.{right}", user, tenant())
    return console("operator_1")


def cancel_all(client: Client, runs: list[Run]) -> Counter[int]:
    """Press cancel for each; give what the console has answered."""
    urls = [reverse("run_cancel", args=[run.pk]) for run in runs]
    return Counter(client.post(url, {"reason": "Too many."}).status_code for url in urls)


@contextmanager
def again_and_again(act: Callable[[], Any]) -> Iterator[Future[int]]:
    """Do `act` beside the test until the block is left; give how often it was done."""
    left = threading.Event()

    def loop() -> int:
        times = 0
        while not left.is_set():
            act()
            times += 1
        return times

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(with_own_connection, loop)
        try:
            yield done
        finally:
            left.set()


def deadlocks() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_stat_force_next_flush(), deadlocks FROM pg_stat_database "
            "WHERE datname = current_database()"
        )
        return int(cursor.fetchone()[1])


def test_a15_clean_up_workers_cancellations_and_starts_do_not_lock_each_other_out(
    workers: Crew,
    destination: RunningDestination,
    database_server: EmbeddedPostgres | None,
    tmp_path: Path,
    settings: Settings,
) -> None:
    # Its own sessions: six threads share one interpreter, and none of them is a worker.
    settings.ROMULUS_LEASE_SECONDS = 60.0
    payfake(destination)
    clients = [operator() for _ in range(HANDS)]
    log = database_server.log if database_server else None
    said_before = log.stat().st_size if log else 0
    runs = many(tmp_path, "refunding", 0, REFUNDS)
    runs += many(tmp_path, "counted", REFUNDS, ACTIVE - REFUNDS)
    # Whatever the workers' pace, some are not over when their end is asked for.
    assert all(pause_run(run.pk, by="operator_1") for run in runs[-HANDS:])
    with forked_workers(workers, WORKERS) as family, again_and_again(purge_due) as purges:
        wait_for(lambda: states_of(runs).get("completed"), "steps finish in bulk")
        # The last ones, and every other refund.
        doomed = [*runs[: REFUNDS // 2], *runs[-(BURST - REFUNDS // 2) :]]
        with beside() as do:
            looks = do(partial(look, clients[0]))
            burst = do(partial(many, tmp_path, "counted", 1000, BURST))
            pressed = [do(partial(cancel_all, clients[n], doomed[n::HANDS])) for n in range(HANDS)]
            answers = sum((each.result(timeout=PATIENCE) for each in pressed), Counter())
            runs += burst.result(timeout=PATIENCE)
            assert looks.result(timeout=PATIENCE) == {200}
        all_over(*runs)
        afterwards = order_run(tmp_path, "ORD-afterwards")
        all_over(afterwards)
        assert family.errors() == []
    assert purges.result(timeout=PATIENCE) > 0
    # Done, or over already when it was pressed.
    assert set(answers) <= {303, 409}
    assert answers[303] >= HANDS
    assert afterwards.state == "completed"
    assert_whole(runs, tmp_path)
    assert_one_effect_at_most(destination)
    assert deadlocks() == 0
    if log is not None:
        said = log.read_text(errors="replace")[said_before:]
        assert "deadlock" not in said
        assert "ERROR" not in said


def look(client: Client) -> set[int]:
    """What somebody sees who has the console open meanwhile."""
    pages = [reverse("runs"), reverse("review")] * 10
    return {client.get(page).status_code for page in pages}


def assert_whole(runs: list[Run], folder: Path) -> None:
    """No run is lost, doubled or half moved: each has passed its steps in order, once."""
    passed: dict[Any, list[str]] = {run.pk: [] for run in runs}
    committed = Attempt.objects.filter(state="committed", output_form__isnull=False)
    for run, step in committed.order_by("run", "fence").values_list("run", "step"):
        if run in passed:
            passed[run].append(step)
    states = dict(Run.objects.filter(pk__in=passed).values_list("pk", "state"))
    assert len(states) == len(runs)
    for run in runs:
        steps = STEPS[run.workflow]
        assert states[run.pk] in ("completed", "cancelled")
        if states[run.pk] == "completed":
            assert passed[run.pk] == steps
        else:
            assert passed[run.pk] == steps[: len(passed[run.pk])]
    assert set(states.values()) <= set(OVER)
    assert not Run.objects.filter(attempts__claimed_at__gt=F("attempts__ended_at")).exists()
    assert all(passages(folder, f"ORD-{n}", "three") == 1 for n in range(1000, 1000 + BURST))


def assert_one_effect_at_most(destination: RunningDestination) -> None:
    """Nothing happened twice, and what was sent and then cancelled is settled, not forgotten."""
    for operation in Operation.objects.all():
        expected = {"verified": 1, "abandoned": 0}[operation.state]
        assert effects(destination, operation) == expected
        assert bool(sends(destination, operation)) == bool(expected)
