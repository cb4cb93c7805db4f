"""Case A04: the key's window is over before the repeat; nothing is posted after it.

Shrunk: the window is 12 s less 4 s of margin; the stop of three minutes is the time until it is
over. A backoff that would land behind its end is in tests/unit/test_decide.py.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reconciliation.models import Operation
from tests.acceptance.payfake import (
    MARKER,
    all_over,
    effects,
    order_run,
    payfake,
    sends,
    the_operation,
    wait_until_sent,
)
from tests.destination import RunningDestination
from tests.factories import open_hold_of
from tests.sending import shipped
from tests.waiting import wait_for
from tests.workers import Crew
from workflows.services.clock import database_now

pytestmark = pytest.mark.processes

ORDER = "ORD-7004"


def short_window(destination: RunningDestination, **changes: Any) -> None:
    replay = shipped("keyed")["replay"] | {"retention_floor_seconds": 12, "margin_seconds": 4}
    payfake(destination, timeout_seconds=2, replay=replay, **changes)


def is_over(operation: Operation) -> bool:
    operation.refresh_from_db()
    ends = operation.replay_not_after
    return ends is not None and database_now() > ends


@pytest.mark.parametrize("look_up", [None, MARKER], ids=["no look-up", "look-up"])
def test_a04_workers_that_come_back_after_the_window_post_nothing(
    look_up: dict[str, Any] | None,
    workers: Crew,
    destination: RunningDestination,
    tmp_path: Path,
) -> None:
    short_window(destination, look_up=look_up)
    destination.client.arm("apply_then_drop", path="*refunds")
    doomed = workers.start(failpoint="after_answer@refund")
    run = order_run(tmp_path, ORDER)
    doomed.wait_until_dead()
    operation = the_operation(run)
    key = operation.idempotency_key
    wait_for(partial(is_over, operation), "its window is over")

    workers.start()
    all_over(run)
    operation.refresh_from_db()
    assert (sends(destination, operation), effects(destination, operation)) == (1, 1)
    assert operation.idempotency_key == key
    assert Operation.objects.filter(run=run, step="refund").count() == 1
    if look_up:
        assert run.state == "completed"
    else:
        hold = open_hold_of(operation)
        assert (run.state, hold.reason) == ("held", "window_over")
        assert "The key may be gone" in hold.message


def test_a04_a_provider_that_is_away_through_the_window_gets_nothing_after_it(
    workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    patient = {"not_sent": 1000, "first_pause_seconds": 0.5, "longest_pause_seconds": 0.5}
    short_window(destination, look_up=None, budget=patient)
    destination.client.arm("apply_then_delay", seconds=4, path="*refunds")
    workers.start()
    run = order_run(tmp_path, ORDER)
    operation = wait_until_sent(destination, run)
    wait_for(lambda: effects(destination, operation), "the refund is made")
    destination.kill()
    try:
        all_over(run)
    finally:
        destination.restart()
    hold = open_hold_of(operation)
    assert (run.state, hold.reason) == ("held", "window_over")
    assert (sends(destination, operation), effects(destination, operation)) == (1, 1)
