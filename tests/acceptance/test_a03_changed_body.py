"""Case A03: the source changes between a lost send and its repeat; one key never has two bodies.

Shrunk: a send may take 2 s. The amount is read from a file that somebody edits.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.payfake import (
    all_over,
    effects,
    ledger,
    order_run,
    payfake,
    requests,
    the_operation,
    wait_for_operation,
)
from tests.destination import RunningDestination
from tests.factories import open_hold_of
from tests.sending import shipped
from tests.waiting import wait_for
from tests.workers import Crew

pytestmark = pytest.mark.processes

ORDER = "ORD-7003"
MISMATCH = {"status": 400, "type": "idempotency_error"}


def keyed_only(destination: RunningDestination) -> None:
    """A lost write is repeated only when it can no longer be on its way."""
    replay = shipped("keyed")["replay"] | {"overlaps": False}
    payfake(destination, timeout_seconds=2, look_up=None, replay=replay)


def test_a03_the_repeat_sends_the_same_bytes_though_the_order_has_changed(
    workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    keyed_only(destination)
    destination.client.arm("drop_before", path="*refunds")
    workers.start()
    run = order_run(tmp_path, ORDER)
    operation = wait_for_operation(run)
    wait_for(lambda: ledger(operation) == [("first", "unknown")], "the first one is lost")
    (tmp_path / f"{ORDER}.amount").write_text("130.00")
    all_over(run)

    assert run.state == "completed"
    first, second = requests(destination, operation)
    assert first.body == second.body
    assert json.loads(second.body)["amount"] == 12500
    assert first.idempotency_key == second.idempotency_key == operation.idempotency_key
    assert first.attempt != second.attempt
    assert effects(destination, operation) == 1


def test_a03_a_key_that_is_said_to_have_other_parameters_is_for_the_owner(
    workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    keyed_only(destination)
    destination.client.arm("drop_before", path="*refunds")
    destination.client.arm("error_before", path="*refunds", **MISMATCH)
    workers.start()
    run = order_run(tmp_path, ORDER)
    all_over(run)

    operation = the_operation(run)
    hold = open_hold_of(operation)
    assert (run.state, operation.state, hold.reason) == ("held", "held", "key_mismatch")
    assert ledger(operation) == [("first", "unknown"), ("replay", "unknown")]
    assert len(requests(destination, operation)) == 2
    assert not operation.evidence.filter(completes=True).exists()
    assert not operation.evidence.filter(kind="rejection").exists()
