"""Case A22: dispatch is turned off, and a run cancelled, while steps are still at work.

Shrunk: payfake answers when dispatch is off, or the run cancelled; the two minutes of waiting are
the time until every operation that waits was looked at again after the restart, for which its next
look is brought forward.

Left for its issue: what is approved and not yet dispatched (approvals): here a run that comes to
its write after the switch stands for it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now
from django.urls import reverse
from guardian.shortcuts import assign_perm

from reconciliation.core.facts import Dispatch
from reconciliation.models import AuditEntry, Operation, Provider
from reconciliation.services.dispatch import set_dispatch
from tests.acceptance.payfake import (
    HELD_BACK_SECONDS,
    all_over,
    all_sends,
    console,
    effects,
    explained,
    ledger,
    order_run,
    page_of,
    payfake,
    sends,
    the_operation,
    wait_until_sent,
)
from tests.acceptance.refunding import passages
from tests.acceptance.shipfake import Shipfake
from tests.destination import RunningDestination
from tests.factories import administrator, person, tenant
from tests.waiting import wait_for
from tests.workers import Crew
from workflows.models import Event, Match, Run, Wait
from workflows.services.clock import database_now

pytestmark = pytest.mark.processes

REASON = "The provider pays twice, says its status page."
BACKOFF_SECONDS = 10  # dispatch is off long before
SLOW, BACKING_OFF, COMING = "ORD-7022", "ORD-7023", "ORD-7024"
UNKNOWN = "ORD-7099"


def operator(provider: Provider) -> Any:
    user = person("operator_1")
    assign_perm("reconciliation.pause_dispatch", user, provider)
    for right in ("view_tenant", "control_runs"):
        assign_perm(f"workflows.{right}", user, tenant())
    return user


def waits_for_dispatch(run: Run) -> bool:
    run.refresh_from_db()
    return run.state == "waiting" and run.failure["reason"] == "dispatch"


def looked_at_again(operations: list[Operation]) -> None:
    """Bring the next look at each forward, and wait until a worker has looked at all of them."""
    pks = [operation.pk for operation in operations]
    asked_at = database_now()
    assert Operation.objects.filter(pk__in=pks).update(due_at=Now()) == len(pks)
    later = Operation.objects.filter(pk__in=pks, due_at__gt=asked_at)
    # A process that has taken one leaves it for a minute, and then it is looked at.
    wait_for(lambda: later.count() == len(pks), "each was looked at again")


def test_a22_what_was_under_way_does_not_turn_dispatch_on_again(
    workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    provider = payfake(destination)
    user = operator(provider)
    client = destination.client
    slowly = {"seconds": HELD_BACK_SECONDS, "path": "*refunds"}
    client.arm("apply_then_delay", body={"order": SLOW}, **slowly)
    refused = {"status": 429, "type": "rate_limit_error", "retry_after": BACKOFF_SECONDS}
    client.arm("error_before", body={"order": BACKING_OFF}, path="*refunds", **refused)
    gate = tmp_path / f"{COMING}.prepare.gate"
    gate.touch()
    workers.start(threads=4)
    slow, backing_off, coming = runs = [
        order_run(tmp_path, order) for order in (SLOW, BACKING_OFF, COMING)
    ]
    operation = wait_until_sent(destination, slow)
    wait_for(lambda: effects(destination, operation), "the slow refund is made")
    limited = wait_until_sent(destination, backing_off)
    wait_for(lambda: ledger(limited) == [("first", "rejected")], "the other is refused for now")
    wait_for(lambda: passages(tmp_path, COMING, "prepare"), "a third comes to its write")

    assert set_dispatch(provider, Dispatch.OFF, user, REASON)
    before = all_sends(destination)
    assert len(before) == 2
    client.release()
    gate.unlink()
    for run in runs:
        wait_for(partial(waits_for_dispatch, run), f"run {run.pk} waits")
    operation.refresh_from_db()
    assert (operation.state, ledger(operation)) == ("verified", [("first", "acknowledged")])
    assert slow.step == "notify"  # it went on with what it had, up to its next write

    workers.kill_all()
    workers.start(threads=4)
    waiting = [
        the_operation(slow, "notify"),
        the_operation(backing_off),
        the_operation(coming),
    ]
    looked_at_again(waiting)
    assert all(waits_for_dispatch(run) for run in runs)
    assert all_sends(destination) == before
    assert_switch_is_off(provider, runs)

    assert set_dispatch(provider, Dispatch.ON, user, "The provider says that it is mended.")
    all_over(*runs)
    assert {run.state for run in runs} == {"completed"}
    assert Operation.objects.count() == 2 * len(runs)
    for each in Operation.objects.all():
        assert (each.state, effects(destination, each)) == ("verified", 1)
        assert sends(destination, each) == (2 if each == limited else 1)


def test_a22_an_event_that_comes_while_dispatch_is_off_is_stored_and_taken_and_nothing_is_sent(
    workers: Crew, destination: RunningDestination, shipfake: Shipfake, tmp_path: Path
) -> None:
    provider = payfake(destination)
    user = operator(provider)
    workers.start()
    run = order_run(tmp_path, COMING, "settling")
    wait_for(Wait.objects.filter(run=run, state="waiting").exists, "it waits for its event")
    assert set_dispatch(provider, Dispatch.OFF, user, REASON)
    before = all_sends(destination)
    assert len(before) == 1

    assert shipfake.settle(COMING, "evt_coming").status == 202
    event = Event.objects.get()
    wait_for(lambda: waits_for_dispatch(run), "it comes to its next write")
    assert (event.state, run.step) == ("matched", "notify")
    workers.kill_all()
    workers.start()
    looked_at_again([the_operation(run, "notify")])
    assert waits_for_dispatch(run)
    # What comes now is stored too, and moves nothing.
    assert shipfake.settle(COMING, "evt_coming").status == 200
    assert shipfake.settle(UNKNOWN, "evt_unknown").status == 202
    assert all_sends(destination) == before
    assert_switch_is_off(provider, [run])

    assert set_dispatch(provider, Dispatch.ON, user, "The provider says that it is mended.")
    all_over(run)
    assert run.state == "completed"
    assert Match.objects.get().event == event
    for each in Operation.objects.all():
        assert (each.state, effects(destination, each)) == ("verified", 1)
        assert sends(destination, each) == 1
    assert Event.objects.get(correlation=UNKNOWN).state == "stored"


def assert_switch_is_off(provider: Provider, runs: list[Run]) -> None:
    """It stays off, and it is said who did it, when and why."""
    provider.refresh_from_db()
    assert provider.dispatch == "off"
    entry = AuditEntry.objects.get(verb="set dispatch")
    assert entry.actor.endswith("operator_1")
    assert entry.detail == {"from": "on", "to": "off", "reason": REASON}
    assert entry.at < database_now()
    administrator()
    record = reverse("admin:reconciliation_auditentry_changelist")
    shown = console("admin_1").get(record, {"q": f"provider:{provider.slug}"}).content.decode()
    assert "operator_1" in shown
    for run in runs:
        why = explained(run)
        assert (why["cause"], why["moves"]) == ("dispatch", "Turning dispatch on.")
        causes = {cause.name: cause for cause in page_of(run).why.causes}
        said = causes["Dispatch"].text
        assert said.startswith("yes: dispatch to Payfake is off, by operator_1 since ")
        assert said.endswith(REASON)


def test_a22_a_run_that_is_cancelled_in_mid_call_stays_so_and_keeps_the_late_result(
    workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    operator(payfake(destination))
    destination.client.arm("apply_then_delay", seconds=HELD_BACK_SECONDS, path="*refunds")
    workers.start()
    run = order_run(tmp_path, SLOW)
    operation = wait_until_sent(destination, run)
    wait_for(lambda: effects(destination, operation), "the refund is made")

    client = console("operator_1")
    answer = client.post(reverse("run_cancel", args=[run.pk]), {"reason": "Sent back."})
    assert answer.status_code == 303
    why = explained(run)
    assert why["cause"] == "cancelling"
    assert "Refund USD 125.00 to order ORD-7022" in why["sentence"]

    destination.client.release()
    all_over(run)
    assert (run.state, run.step) == ("cancelled", "check")  # where it would have gone on
    operation.refresh_from_db()
    assert (sends(destination, operation), effects(destination, operation)) == (1, 1)
    assert ledger(operation) == [("first", "acknowledged")]
    late = operation.evidence.get(kind="receipt")
    assert (late.completes, late.resource) == (True, operation.resource)
    assert operation.state == "verified"
    assert passages(tmp_path, SLOW, "check") == 0
    assert len(all_sends(destination)) == 1
    assert "cancelled by operator_1" in explained(run)["sentence"]
    assert page_of(run, client).state == "cancelled"
