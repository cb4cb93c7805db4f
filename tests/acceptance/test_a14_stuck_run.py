"""Case A14: the only worker is killed, and its runs do not say "running" for ever.

Shrunk: a lease of 3 s instead of 15, a sweep each 0.2 s, and the second worker comes at once when
the leases have run out instead of after a minute.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm

from reconciliation.models import Operation
from tests.acceptance.payfake import (
    all_over,
    attempts,
    console,
    effects,
    explained,
    ledger,
    order_run,
    page_of,
    payfake,
    requests,
    sends,
    wait_until_sent,
)
from tests.acceptance.refunding import passages
from tests.destination import RunningDestination
from tests.factories import person, tenant
from tests.waiting import wait_for
from tests.workers import Crew
from workflows.models import Run
from workflows.services.clock import database_now

pytestmark = pytest.mark.processes


def close_gate(folder: Path, order: str) -> Path:
    gate = folder / f"{order}.prepare.gate"
    gate.touch()
    return gate


def in_prepare(folder: Path, order: str) -> None:
    wait_for(lambda: passages(folder, order, "prepare"), f"{order} is in its first step")


def operator() -> Client:
    user = person("operator_1")
    for right in ("view_tenant", "control_runs"):
        assign_perm(f"workflows.{right}", user, tenant())
    return console("operator_1")


def press_cancel(client: Client, run: Run) -> None:
    answer = client.post(reverse("run_cancel", args=[run.pk]), {"reason": "Nobody works on it."})
    assert (answer.status_code, answer.headers["Location"]) == (303, reverse("run", args=[run.pk]))
    run.refresh_from_db()


def test_a14_runs_of_a_killed_worker_go_on_and_can_be_cancelled_without_any(
    workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    payfake(destination)
    destination.client.arm("apply_then_delay", seconds=60, body={"order": "ORD-7015"})
    gates = [close_gate(tmp_path, order) for order in ("ORD-7014", "ORD-7017")]
    doomed = workers.start(threads=4, failpoint="after_checkpoint@prepare*2")

    pure, interrupted = (order_run(tmp_path, order) for order in ("ORD-7014", "ORD-7017"))
    for order in ("ORD-7014", "ORD-7017"):
        in_prepare(tmp_path, order)
    calling = order_run(tmp_path, "ORD-7015")
    operation = wait_until_sent(destination, calling)
    wait_for(lambda: effects(destination, operation), "the refund is made, and not answered")
    committing = order_run(tmp_path, "ORD-7016")
    doomed.wait_until_dead()
    untouched = order_run(tmp_path, "ORD-7018")

    left = [pure, calling, committing, interrupted]
    name = doomed.identity.name
    wait_for(lambda: all(lease_is_over(run) for run in left), "the leases have run out")
    client = operator()
    for run in left:
        assert_shown_as_lost(run, name, client)

    # Cancelling needs no worker: neither for what was started since, nor for what was under way.
    for run in (untouched, interrupted):
        press_cancel(client, run)
        assert (run.state, run.lease_owner) == ("cancelled", None)
        assert explained(run)["cause"] == "finished"
    assert attempts(interrupted) == [("prepare", "lost")]

    for gate in gates:
        gate.unlink()
    workers.start()
    all_over(pure, calling, committing)
    assert {run.state for run in (pure, calling, committing)} == {"completed"}

    assert attempts(pure)[:2] == [("prepare", "lost"), ("prepare", "committed")]
    assert passages(tmp_path, "ORD-7014", "prepare") == 2
    assert attempts(committing)[:3] == [
        ("prepare", "committed"),
        ("refund", "lost"),
        ("refund", "committed"),
    ]
    assert passages(tmp_path, "ORD-7016", "prepare") == 1  # its checkpoint was made
    assert ledger(operation) == [("first", "unknown")]
    assert (sends(destination, operation), effects(destination, operation)) == (1, 1)
    assert requests(destination, operation, "GET")  # it was asked for, not sent again
    for operation in Operation.objects.all():
        assert (operation.state, effects(destination, operation)) == ("verified", 1)
    for run in (untouched, interrupted):
        run.refresh_from_db()
        assert run.state == "cancelled"
        assert not Operation.objects.filter(run=run).exists()


def lease_is_over(run: Run) -> bool:
    run.refresh_from_db()
    return run.lease_expires_at is not None and run.lease_expires_at < database_now()


def assert_shown_as_lost(run: Run, worker: str, client: Client) -> None:
    """The lease that ran out is what is said, not that somebody works on it."""
    why = explained(run)
    assert why["cause"] == "no_worker"
    assert f"Worker {worker} went quiet" in why["sentence"]
    assert why["owner"] == "whoever runs the workers"
    page = page_of(run, client)
    assert f"Worker {worker} went quiet" in page.why.lead
    expired = next(fact.at for fact in page.why.facts if fact.term == "lease expires at")
    assert expired < database_now()
