"""Case A12: the refund is made, and what the step after it gives cannot be stored.

Shrunk: the size limit is 10 MiB instead of 64, so that a text of 12 MB is over it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciliation.models import Hold, ReviewQueue
from tests.acceptance.payfake import (
    all_over,
    attempts,
    console,
    effects,
    explained,
    order_run,
    page_of,
    payfake,
    sends,
    the_operation,
)
from tests.acceptance.refunding import passages
from tests.destination import RunningDestination
from tests.factories import owner_of
from tests.workers import Crew
from workflows.models import Run

pytestmark = pytest.mark.processes

LIMIT = 10 * 1024 * 1024
KINDS = ["datetime", "Decimal", "bytes", "set", "Unknown"]
ORDERS = {kind: f"ORD-{7120 + number}" for number, kind in enumerate([*KINDS, "text"])}


def test_a12_work_whose_result_cannot_be_stored_is_held_and_never_repeated(
    workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    payfake(destination)
    owner_of(ReviewQueue.objects.create(slug="runs", name="Runs"))
    runs = {
        kind: order_run(tmp_path, order, "reporting", gives=kind) for kind, order in ORDERS.items()
    }
    workers.start(ROMULUS_MAX_OUTPUT_BYTES=str(LIMIT))
    all_over(*runs.values())

    for kind in KINDS:
        assert_set_aside(runs[kind], destination, f"at $: {kind} has no JSON form")
    assert_set_aside(runs["text"], destination, "12,582,914 bytes, and the limit is 10,485,760")
    for order in ORDERS.values():
        assert (passages(tmp_path, order, "report"), passages(tmp_path, order, "close")) == (1, 0)


def assert_set_aside(run: Run, destination: RunningDestination, says: str) -> None:
    """One effect, whose reference is kept; the run says what could not be stored, and why."""
    operation = the_operation(run, "refund_first")
    assert (sends(destination, operation), effects(destination, operation)) == (1, 1)
    receipt = run.attempts.outputs().get(step="refund_first").output
    assert receipt == {"operation": str(operation.pk), "resource": operation.resource}
    assert operation.state == "verified"

    assert (run.state, run.lease_owner, run.failure["reason"]) == (
        "held",
        None,
        "output_not_storable",
    )
    assert run.failure["message"].startswith("output of step report: ")
    assert says in run.failure["message"]
    assert attempts(run) == [("refund_first", "committed"), ("report", "committed")]
    assert not run.attempts.outputs().filter(step="report").exists()
    assert Hold.objects.get(run=run).reason == "output_not_storable"

    why = explained(run)
    assert says in why["sentence"]
    assert why["owner"] == "reviewer_1"
    page = page_of(run)
    assert says in f"{page.why.lead} {page.why.text}"
    assert [output.step for output in page.outputs] == ["refund_first"]
    assert console().get(page.why.links[0].url).status_code == 200
