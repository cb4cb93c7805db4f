"""Case A02: the effect is made and the answer is lost; nothing below repeats the write.

Shrunk: payfake's answers end after 2 s, and what is due is paced in hundredths of a second. The
buttons of the console are its decisions; the second run for one order is refused by its start key.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from reconciliation.core.errors import NotAllowed
from reconciliation.core.states import DecisionKind
from reconciliation.models import Transmission
from reconciliation.services.decisions import Answer, record_decision
from tests.acceptance.payfake import (
    action,
    all_over,
    all_sends,
    effects,
    ledger,
    order_run,
    requests,
    sends,
    the_operation,
)
from tests.destination import RunningDestination
from tests.factories import (
    NOTE,
    code_of,
    open_hold_of,
    person,
    quick_contract,
    ready_provider,
    tenant,
)
from tests.waiting import wait_for
from tests.workers import Crew
from workflows.models import Run
from workflows.services.runs import start

pytestmark = pytest.mark.processes

LOST = {
    "reset": ("apply_then_drop", {}),
    "late": ("apply_then_delay", {"seconds": 4}),
    "bad_gateway": ("proxy_502", {}),
}
# The key that payfake wants is sent; the contract promises nothing for it.
SHORT = {"timeout_seconds": 2, "replay": None}


def set_up(destination: RunningDestination, *, look_up: bool, **changes: Any) -> None:
    """A provider whose key guards nothing, with or without a look-up by merchant reference."""
    rule = {"marker": "metadata.operation", "visibility_lag_seconds": 0} if look_up else None
    actions = {
        "refunds.create": action("/keyed/v1/refunds"),
        "notices.create": action("/keyed/v1/credits"),
    }
    ready_provider(
        "payfake",
        destination.url,
        contract_version=quick_contract("keyed", look_up=rule, **SHORT, **changes),
        settings={"actions": actions},
    )


@pytest.mark.parametrize("fault", LOST)
def test_a02_what_a_look_up_finds_completes_the_step_with_one_post(
    fault: str, workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    set_up(destination, look_up=True)
    kind, parameters = LOST[fault]
    destination.client.arm(kind, path="*refunds", **parameters)
    workers.start()
    run = order_run(tmp_path, "ORD-7002")
    all_over(run)
    operation = the_operation(run)
    assert run.state == "completed"
    assert ledger(operation) == [("first", "unknown")]
    (sent,) = requests(destination, operation)
    assert sent.attempt == str(operation.transmissions.get().pk)
    assert effects(destination, operation) == 1
    (effect,) = destination.client.effects(operation=str(operation.pk))
    assert operation.resource == effect.resource_id
    assert requests(destination, operation, "GET"), "it was asked for"


def test_a02_without_a_look_up_it_is_held_and_no_button_or_restart_posts_again(
    workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    set_up(destination, look_up=False)
    destination.client.arm("apply_then_drop", path="*refunds")
    workers.start()
    run = order_run(tmp_path, "ORD-7002")
    all_over(run)
    operation = the_operation(run)
    hold = open_hold_of(operation)
    assert (run.state, hold.reason) == ("held", "unguarded")
    assert hold.queue is not None
    assert list(hold.queue.owners.all()) == [person()]

    answer = Answer(DecisionKind.SEND_AGAIN, NOTE, hold.version, uuid4(), code_of(operation.pk))
    with pytest.raises(NotAllowed, match="no key that guards a second send"):
        record_decision(hold.pk, person(), answer)
    workers.kill_all()
    workers.start()
    quiet = order_run(tmp_path, "ORD-7102")  # somebody is at work again
    all_over(quiet)
    assert (sends(destination, operation), effects(destination, operation)) == (1, 1)


def test_a02_a_second_run_for_the_same_order_is_the_first_one(
    workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    set_up(destination, look_up=True)
    workers.start()
    given = {"order": "ORD-7002", "folder": str(tmp_path)}
    first = order_run_once(given)
    second = order_run_once(given)
    assert first.pk == second.pk
    all_over(first)
    assert len([entry for entry in all_sends(destination) if "refunds" in entry.path]) == 1


def order_run_once(given: dict[str, str]) -> Run:
    return start("refunding", given, tenant=tenant(), start_key=given["order"])


def test_a02_a_refused_connection_is_tried_again(
    workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    patient = {"not_sent": 1000, "first_pause_seconds": 0.2, "longest_pause_seconds": 0.2}
    set_up(destination, look_up=False, budget=patient)
    destination.kill()
    try:
        workers.start()
        run = order_run(tmp_path, "ORD-7002")
        in_vain = Transmission.objects.filter(operation__run=run, state="not_sent")
        wait_for(in_vain.exists, "it was tried in vain")
    finally:
        destination.restart()
    all_over(run)
    operation = the_operation(run)
    assert run.state == "completed"
    assert {state for _, state in ledger(operation)} == {"not_sent", "acknowledged"}
    assert (sends(destination, operation), effects(destination, operation)) == (1, 1)
