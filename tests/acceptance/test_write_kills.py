"""Promises P3 to P5 with real processes: workers killed around a send, on each kind of provider.

Each test compares three records: the run, the ledger, and what the destination really holds.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciliation.models import Operation
from tests.acceptance.test_checkpoint_kills import ended
from tests.destination import RunningDestination
from tests.factories import open_hold_of, ready_provider, started_run
from tests.workers import Crew

pytestmark = pytest.mark.processes


def ledger(operation: Operation) -> list[tuple[str, str]]:
    rows = operation.transmissions.order_by("number")
    return list(rows.values_list("purpose", "state"))


def effects(destination: RunningDestination, operation: Operation) -> list[str]:
    found = destination.client.effects(operation=str(operation.pk))
    return [effect.resource_id for effect in found]


def sends(destination: RunningDestination, operation: Operation) -> int:
    journal = destination.client.journal(operation=str(operation.pk))
    return sum(entry.method == "POST" for entry in journal)


def assert_told(log: Path, event: str, **named: str) -> None:
    """A worker tells what it does: one event a line, with the IDs of what it is about."""
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    (told,) = [line for line in lines if line["event"] == event]
    assert {name: told[name] for name in named} == named


def test_killed_after_apply_and_before_record_there_is_one_effect(
    workers: Crew, destination: RunningDestination
) -> None:
    ready_provider("payments", destination.url)
    doomed = workers.start(failpoint="after_answer@create_refund")
    run = started_run("refund")
    doomed.wait_until_dead()
    operation = Operation.objects.get(run=run)
    assert (operation.state, len(effects(destination, operation))) == ("sending", 1)
    assert_told(doomed.log, "operation.opened", run=str(run.pk), operation=str(operation.pk))

    workers.start()
    assert ended(run).state == "completed"
    operation.refresh_from_db()
    assert ledger(operation) == [("first", "unknown"), ("replay", "acknowledged")]
    assert (operation.state, [operation.resource]) == (
        "verified",
        effects(destination, operation),
    )
    keys = {
        entry.idempotency_key
        for entry in destination.client.journal(operation=str(operation.pk))
        if entry.method == "POST"
    }
    assert keys == {operation.idempotency_key}


def test_killed_before_a_byte_left_a_keyed_write_is_sent_again(
    workers: Crew, destination: RunningDestination
) -> None:
    ready_provider("payments", destination.url)
    doomed = workers.start(failpoint="after_dispatch@create_refund")
    run = started_run("refund")
    doomed.wait_until_dead()
    operation = Operation.objects.get(run=run)
    assert effects(destination, operation) == []

    workers.start()
    assert ended(run).state == "completed"
    operation.refresh_from_db()
    assert effects(destination, operation) == [operation.resource]


def test_killed_after_apply_a_look_up_finds_it_and_nothing_is_sent_again(
    workers: Crew, destination: RunningDestination
) -> None:
    ready_provider("machines", destination.url)
    doomed = workers.start(failpoint="after_answer@create_machine")
    run = started_run("replacement_worker")
    doomed.wait_until_dead()

    workers.start()
    assert ended(run).state == "completed"
    operation = Operation.objects.get(run=run)
    assert effects(destination, operation) == [operation.resource]
    assert sends(destination, operation) == 1


def test_killed_before_a_byte_left_without_a_key_nothing_is_sent_again(
    workers: Crew, destination: RunningDestination
) -> None:
    ready_provider("machines", destination.url)
    doomed = workers.start(failpoint="after_dispatch@create_machine")
    run = started_run("replacement_worker")
    doomed.wait_until_dead()

    workers.start()
    assert ended(run).state == "held"
    operation = Operation.objects.get(run=run)
    assert open_hold_of(operation).reason == "absence_not_proof"
    assert sends(destination, operation) == 0


def test_killed_after_apply_with_look_up_away_it_is_held_and_never_sent_again(
    workers: Crew, destination: RunningDestination
) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("lookup_unavailable", times=None)
    doomed = workers.start(failpoint="after_answer@create_machine")
    run = started_run("replacement_worker")
    doomed.wait_until_dead()

    workers.start()
    assert ended(run).state == "held"
    operation = Operation.objects.get(run=run)
    assert open_hold_of(operation).reason == "look_up_unavailable"
    assert (sends(destination, operation), len(effects(destination, operation))) == (1, 1)


def test_killed_at_a_provider_with_neither_key_nor_look_up_a_person_is_asked(
    workers: Crew, destination: RunningDestination
) -> None:
    ready_provider("desk", destination.url)
    doomed = workers.start(failpoint="after_answer@note_in_desk")
    run = started_run("ticket_triage")
    doomed.wait_until_dead()

    workers.start()
    assert ended(run).state == "held"
    operation = Operation.objects.get(run=run)
    assert open_hold_of(operation).reason == "unguarded"
    assert (sends(destination, operation), len(effects(destination, operation))) == (1, 1)
    assert not run.attempts.outputs().filter(step="tell_requester").exists()
