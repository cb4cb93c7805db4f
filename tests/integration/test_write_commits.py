"""What a write costs: three commits from open to settled, and what each of them holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reconciliation.models import AuditEntry, Evidence, Operation
from reconciliation.services.reconcile import reconcile
from reconciliation.services.write_step import execute_write
from tests.claiming import claim_at_write
from tests.destination import RunningDestination
from tests.factories import (
    advanced,
    ready_provider,
    started_run,
    switched,
    tenant,
    wait_until,
)
from tests.sending import parking_contract, the_operation
from tests.statements import statements
from workflows.core.definitions import END, Workflow
from workflows.core.errors import LostOwnership
from workflows.core.intents import Intent
from workflows.registry import registry
from workflows.services.executor import take
from workflows.services.ownership import Keeper
from workflows.services.results import result_of
from workflows.services.run_view import RunView
from workflows.services.runs import start

READS = 26  # of a write, its step's own and those of the step after it
WRITES = ("INSERT", "UPDATE", "DELETE")


def commits(queries: list[dict[str, str]]) -> Iterator[list[str]]:
    """The tables that each commit writes to; a write outside a transaction is its own."""
    inside: list[str] | None = None
    for query in queries:
        sql = query["sql"]
        if sql == "BEGIN":
            inside = []
        elif sql == "COMMIT":
            assert inside is not None
            yield inside
            inside = None
        elif sql.startswith(WRITES):
            table = sql.split('"')[1].removeprefix("reconciliation_")
            if inside is None:
                yield [table]
            else:
                inside.append(table)


def test_a_write_is_three_commits(committed_db: str, destination: RunningDestination) -> None:
    """Opened and about to be sent; answered; settled with what the check has shown."""
    ready_provider("payments", destination.url)
    claim = claim_at_write(started_run("refund"))
    with CaptureQueriesContext(connection) as made:
        result = execute_write(claim, RunView(claim))
        before_checkpoint = list(commits(made.captured_queries))
        assert the_operation().state == "applied"
        assert result.also is not None
        result.also()
    assert before_checkpoint == [
        ["operation", "transmission"],
        ["transmission", "evidence", "operation"],
    ]
    settling = [table for each in list(commits(made.captured_queries))[2:] for table in each]
    assert settling == ["evidence", "operation"]  # in the checkpoint's own transaction
    assert the_operation().state == "verified"


@pytest.mark.django_db
def test_once_its_effect_is_proven_a_write_asks_no_more_whether_it_may_be_sent(
    destination: RunningDestination,
) -> None:
    """Nor does it read anything else twice that cannot have changed: it costs a round trip each."""
    ready_provider("payments", destination.url)
    claim = claim_at_write(started_run("refund"))
    with statements() as sent:
        take(claim, Keeper())
    assert the_operation().state == "verified"
    assert (
        sum("reconciliation_dispatchstop" in sql for sql in sent) == 2
    )  # decided, and last moment
    assert sum('FROM "reconciliation_reviewqueue"' in sql for sql in sent) == 1
    assert sum(sql.startswith("SELECT") for sql in sent) <= READS


@pytest.mark.django_db
def test_what_the_check_has_shown_is_kept_with_what_follows(
    destination: RunningDestination,
) -> None:
    ready_provider("payments", destination.url)
    run = advanced(started_run("refund"))
    assert run.state == "completed"
    check = Evidence.objects.get(source="result check")
    assert (check.postcondition, check.operation.state) == (True, "verified")


@pytest.mark.django_db
def test_nothing_is_opened_for_a_claim_that_is_lost(destination: RunningDestination) -> None:
    ready_provider("payments", destination.url)
    run = started_run("refund")
    claim = claim_at_write(run)
    type(run).objects.filter(pk=run.pk).update(fence=claim.fence + 1)
    with pytest.raises(LostOwnership):
        execute_write(claim, RunView(claim))
    assert not Operation.objects.exists()
    assert destination.client.journal() == []


@pytest.mark.django_db
def test_while_dispatch_is_off_an_operation_is_opened_and_nothing_sent(
    destination: RunningDestination,
) -> None:
    ready_provider("payments", destination.url, dispatch="off")
    run = advanced(started_run("refund"))
    assert (run.state, the_operation().state) == ("waiting", "intended")
    assert destination.client.journal() == []


def detour(name: str, **options: Any) -> Workflow:
    """A write, and the step that its run takes while dispatch is off."""
    flow = Workflow(f"tests.{name}")

    @flow.write(provider="payments", when_off="tell_desk", then=END, **options)
    def pay(run: RunView) -> Intent:
        refund = {"order": "ORD-1", "amount": 12500, "currency": "USD"}
        return Intent("refunds.create", "order ORD-1", refund, summary="Refund order ORD-1")

    @flow.step()
    def tell_desk(run: RunView) -> str:
        return f"paid: {run.output('pay')}"

    registry.add(flow)
    return flow


@pytest.mark.django_db
def test_while_dispatch_is_off_a_run_takes_the_step_that_is_declared_for_that(
    destination: RunningDestination,
) -> None:
    flow = detour("detour")
    provider = ready_provider("payments", destination.url, dispatch="off")
    run = advanced(start(flow.name, {}, tenant=tenant()))
    operation = the_operation()
    assert (run.state, result_of(run)) == ("completed", "paid: None")
    assert (operation.state, operation.due_at) == ("abandoned", None)
    assert destination.client.journal() == []
    entry = AuditEntry.objects.get(object=f"operation:{operation.pk}")
    assert (entry.verb, entry.detail) == (
        "abandoned: dispatch was off",
        {"goes_on_at": "tell_desk"},
    )
    switched(provider, "paused")
    assert advanced(start(flow.name, {}, tenant=tenant())).state == "waiting"


@pytest.mark.django_db
def test_what_was_sent_is_settled_whatever_is_declared_for_when_dispatch_is_off(
    destination: RunningDestination,
) -> None:
    provider = ready_provider("payments", destination.url, contract_version=parking_contract())
    destination.client.arm("apply_then_drop")
    run = advanced(start(detour("late_detour").name, {}, tenant=tenant()))
    switched(provider, "off")
    due = the_operation().due_at
    assert due is not None
    wait_until(due)
    reconcile(the_operation().pk)
    run = advanced(run)
    assert (run.state, run.step, the_operation().state) == ("waiting", "pay", "unknown")


@pytest.mark.django_db
def test_the_window_begins_with_the_first_send_that_left(destination: RunningDestination) -> None:
    contract = parking_contract()
    ready_provider("payments", "http://127.0.0.1:9", contract_version=contract)
    advanced(started_run("refund"))
    operation = the_operation()
    assert {row.state for row in operation.transmissions.all()} == {"not_sent"}
    assert (operation.first_sent_at, operation.replay_not_after) == (None, None)
