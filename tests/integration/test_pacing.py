"""When many writes of a provider are unknown at once, it is asked at its pace, in turns."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models.functions import Now

from reconciliation.core.facts import Wait, WaitReason
from reconciliation.core.pacing import ROOM
from reconciliation.models import LookUpPace, Operation, Provider
from reconciliation.services.pacing import leave_alone, use_turn
from reconciliation.services.reconcile import ask_again, follow, load, reconcile
from tests.destination import RunningDestination
from tests.factories import advanced, quick_contract, ready_provider, settled, started_run
from tests.sending import shipped
from workflows.models import Run
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

APART = timedelta(seconds=100)  # at the slowest rate there is: no test ever comes to the next turn


def slow_machines(destination: RunningDestination, **contract: Any) -> Provider:
    """A provider that is asked once in 100 seconds, and that settles by look-up alone."""
    version = quick_contract("lookup", **({"verifies": False} | contract))
    return ready_provider(
        "machines", destination.url, look_ups_per_second=0.01, contract_version=version
    )


def lost(destination: RunningDestination, number: int) -> list[Operation]:
    """Writes that took effect and whose answers were lost, in the order in which they were."""
    destination.client.arm("apply_then_drop", times=number)
    runs = [advanced(started_run("replacement_worker", name=f"w{n}")) for n in range(number)]
    return [Operation.objects.get(run=run) for run in runs]


def asked_about(destination: RunningDestination) -> list[str | None]:
    """The operations that the destination was asked about, each time, in that order."""
    return [entry.operation for entry in destination.client.journal() if entry.method == "GET"]


def busy(provider: Provider) -> datetime:
    """Let others have the next turns; returns when the first free one is."""
    pace, _ = LookUpPace.objects.update_or_create(
        provider=provider, defaults={"next_at": database_now() + 10 * APART}
    )
    return pace.next_at


def come(operation: Operation, **ago: float) -> None:
    """Let the turn of an operation have come, as if its time had passed."""
    at = database_now() - timedelta(**ago)
    Operation.objects.filter(pk=operation.pk).update(due_at=at, turn_at=at)


def test_of_many_that_are_unknown_at_once_each_has_a_turn(destination: RunningDestination) -> None:
    slow_machines(destination)
    operations = lost(destination, 4)
    first, *others = operations
    assert asked_about(destination) == [str(first.pk)]
    assert first.run.state == "completed"
    turns = [other.turn_at for other in others]
    assert [other.due_at for other in others] == turns
    assert [later - earlier for earlier, later in pairwise(turns)] == [APART] * 2  # type: ignore[operator]
    # Each is asked about when its turn has come, once, and none is lost.
    for other in others:
        reconcile(other.pk)
        assert str(other.pk) not in asked_about(destination)
        come(other)
        reconcile(other.pk)
        reconcile(other.pk)
        assert advanced(other.run).state == "completed"
    assert asked_about(destination) == [str(each.pk) for each in operations]


def test_whoever_waits_for_a_turn_is_told_when_it_is(destination: RunningDestination) -> None:
    free = busy(slow_machines(destination))
    (operation,) = lost(destination, 1)
    assert (operation.due_at, operation.turn_at) == (free, free)
    run = Run.objects.get()
    assert run.failure["reason"] == "at_pace"
    assert f"Its turn is at {free:%H:%M:%S} UTC." in run.failure["message"]


def test_a_turn_ahead_is_kept(destination: RunningDestination) -> None:
    """Something is known anew, and what is known does not settle it."""
    free = busy(slow_machines(destination))
    (operation,) = lost(destination, 1)
    Operation.objects.update(due_at=Now())
    reconcile(operation.pk)
    operation.refresh_from_db()
    assert (operation.due_at, operation.turn_at) == (free, free)
    assert LookUpPace.objects.get().next_at == free + APART
    assert asked_about(destination) == []


def test_a_turn_that_was_missed_long_ago_is_taken_anew(destination: RunningDestination) -> None:
    """After an hour without workers not all that had a turn ask at once."""
    free = busy(slow_machines(destination))
    (operation,) = lost(destination, 1)
    come(operation, hours=1)
    reconcile(operation.pk)
    operation.refresh_from_db()
    assert operation.turn_at == free + APART
    assert asked_about(destination) == []


def test_a_turn_is_used_once(destination: RunningDestination) -> None:
    busy(slow_machines(destination))
    (operation,) = lost(destination, 1)
    come(operation)
    loaded, again = load(operation.pk), load(operation.pk)
    assert use_turn(loaded, database_now())
    assert not use_turn(again, database_now())


def test_a_provider_that_was_asked_too_often_is_asked_about_nothing_for_a_while(
    destination: RunningDestination,
) -> None:
    provider = slow_machines(destination)
    destination.client.arm("lookup_unavailable", retry_after=200)
    asked, other = lost(destination, 2)
    pause = LookUpPace.objects.get().paused_until
    assert pause is not None
    assert pause > database_now() + timedelta(seconds=100)
    come(other)
    reconcile(other.pk)
    other.refresh_from_db()
    assert other.turn_at is not None
    assert other.turn_at >= pause
    assert asked_about(destination) == [str(asked.pk)]
    # A shorter pause does not cut it short.
    leave_alone(provider, None)
    assert LookUpPace.objects.get().paused_until == pause


def test_what_ends_before_its_turn_is_asked_about_in_time(destination: RunningDestination) -> None:
    budget = shipped("lookup")["budget"] | {"elapsed_seconds": 600}
    free = busy(slow_machines(destination, budget=budget))
    later, urgent = lost(destination, 2)
    assert later.due_at is not None
    Operation.objects.filter(pk=later.pk).update(due_at=free)
    began = urgent.transmissions.get().started_at
    timeout = urgent.contract_version.contract.timeout
    assert urgent.due_at == began + timedelta(seconds=600) - timeout - ROOM
    assert urgent.due_at < free
    come(urgent)
    reconcile(urgent.pk)
    assert asked_about(destination) == [str(urgent.pk)]


def test_what_is_about_to_end_is_asked_about_at_once(destination: RunningDestination) -> None:
    budget = shipped("lookup")["budget"] | {"elapsed_seconds": 6}
    busy(slow_machines(destination, budget=budget))
    (operation,) = lost(destination, 1)
    assert asked_about(destination) == [str(operation.pk)]
    assert operation.run.state == "completed"


def test_a_person_s_question_waits_for_no_turn_and_counts_as_one(
    destination: RunningDestination,
) -> None:
    free = busy(slow_machines(destination))
    (operation,) = lost(destination, 1)
    ask_again(operation.pk)
    assert asked_about(destination) == [str(operation.pk)]
    assert LookUpPace.objects.get().next_at == free + 2 * APART
    assert advanced(Run.objects.get()).state == "completed"


def test_what_a_held_one_waits_for_is_still_asked(destination: RunningDestination) -> None:
    slow_machines(destination)
    destination.client.arm("lookup_unavailable", times=None)
    destination.client.arm("apply_then_drop")
    Provider.objects.update(look_ups_per_second=1000)
    run = settled(started_run("replacement_worker"))
    turn = database_now() + APART
    follow(load(Operation.objects.get(run=run).pk), Wait(turn, WaitReason.AT_PACE), ())
    assert Operation.objects.get().due_at == turn


def test_an_audit_takes_turns_too(destination: RunningDestination) -> None:
    provider = slow_machines(destination)
    (operation,) = lost(destination, 1)
    assert Run.objects.get().state == "completed"
    free = database_now() - APART
    LookUpPace.objects.update(next_at=free)
    call_command("find_duplicates", provider.slug, "--per-second=1000")
    assert asked_about(destination) == [str(operation.pk)] * 2
    assert LookUpPace.objects.get().next_at > free + APART


def test_a_write_that_is_answered_takes_no_turn(destination: RunningDestination) -> None:
    """Its result check is part of the write: it costs no statement more."""
    ready_provider("payments", destination.url)
    assert settled(started_run("refund")).state == "completed"
    assert not LookUpPace.objects.exists()
