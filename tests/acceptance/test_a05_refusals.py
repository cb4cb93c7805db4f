"""Case A05: a refusal that will never change is not sent again; one that passes is, in bounds.

Shrunk: Retry-After is 2 s in place of 10.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciliation.models import Hold, Operation
from tests.acceptance.payfake import (
    all_over,
    console,
    effects,
    ledger,
    order_run,
    payfake,
    requests,
    the_operation,
)
from tests.acceptance.refunding import passages
from tests.destination import RunningDestination
from tests.workers import Crew

pytestmark = pytest.mark.processes

SECONDS = 2.0
FINAL = (
    ("ORD-7005-a", {"status": 402, "type": "card_error", "code": "card_declined"}),
    ("ORD-7005-b", {"status": 400, "type": "invalid_request_error", "code": "amount_too_small"}),
)
PASSING = (
    ("ORD-7005-c", {"status": 429, "type": "rate_limit_error"}),
    ("ORD-7005-d", {"status": 503, "type": "api_error"}),
)


def test_a05_a_final_refusal_is_sent_once_and_its_code_is_shown(
    workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    payfake(destination, timeout_seconds=5)
    for order, answer in FINAL:
        destination.client.arm(
            "error_before", body={"order": order}, path="*refunds", times=None, **answer
        )
    workers.start(threads=2)
    runs = [order_run(tmp_path, order) for order, _ in FINAL]
    all_over(*runs)
    for run, (order, answer) in zip(runs, FINAL, strict=True):
        operation = the_operation(run)
        assert (operation.state, ledger(operation)) == ("rejected", [("first", "rejected")])
        assert len(requests(destination, operation)) == 1
        assert answer["code"] in run.failure["message"]
        assert answer["code"] in console().get(f"/operations/{operation.pk}/").content.decode()
        assert (run.state, run.failure["reason"]) == ("failed", "rejected")
        assert passages(tmp_path, order, "check") == 0
    assert not Operation.objects.filter(step="notify").exists()
    assert not Hold.objects.exists()


def test_a05_a_refusal_that_passes_is_sent_again_not_before_its_time(
    workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    payfake(destination, timeout_seconds=5, look_up=None)
    for order, answer in PASSING:
        told = answer | {"retry_after": SECONDS}
        destination.client.arm("error_before", body={"order": order}, path="*refunds", **told)
    workers.start(threads=2)
    runs = [order_run(tmp_path, order) for order, _ in PASSING]
    all_over(*runs)
    for run in runs:
        operation = the_operation(run)
        assert (run.state, effects(destination, operation)) == ("completed", 1)
        first, second = operation.transmissions.order_by("number")
        assert first.retry_after_at is not None
        assert second.started_at >= first.retry_after_at
        sent = requests(destination, operation)
        assert len({entry.idempotency_key for entry in sent}) == 1
        assert len({entry.attempt for entry in sent}) == 2


def test_a05_the_end_of_the_budget_is_a_state_that_says_so(
    workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    budget = {"transmissions": 3, "first_pause_seconds": 0.01, "longest_pause_seconds": 0.02}
    payfake(destination, timeout_seconds=5, look_up=None, budget=budget)
    for order, answer in PASSING:
        destination.client.arm(
            "error_before", body={"order": order}, path="*refunds", times=None, **answer
        )
    workers.start(threads=2)
    limited, away = runs = [order_run(tmp_path, order) for order, _ in PASSING]
    all_over(*runs)
    assert {run.state for run in runs} == {"held"}
    holds = {hold.run_id: hold for hold in Hold.objects.all()}
    assert holds[limited.pk].reason == "refused_too_often"  # nothing happened there
    assert holds[away.pk].reason == "budget_spent"  # 503 says nothing
    for run in runs:
        operation = the_operation(run)
        assert (len(requests(destination, operation)), effects(destination, operation)) == (3, 0)
