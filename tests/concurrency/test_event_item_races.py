"""Two people, or a person and the rules, act on one event at the same moment: one of them does."""

from __future__ import annotations

import pytest

from reconciliation.models import AuditEntry
from tests.events import delivered, driven, wait_of, waiting
from tests.factories import tenant
from tests.racing import at_once
from workflows.models import Event, Match
from workflows.services.event_items import Done, attach, dismiss
from workflows.services.stopping import cancel_run

pytestmark = pytest.mark.usefixtures("committed_db")

ROUNDS = 8


def test_of_two_who_attach_one_event_one_does_and_the_other_is_told() -> None:
    tenant()
    for number in range(ROUNDS):
        runs = [waiting(correlation=f"{number} {each}") for each in "ab"]
        event = delivered(f"{number}").event
        waits = [wait_of(run).pk for run in runs]
        first, second = at_once(
            lambda event=event, wait=waits[0]: attach(event, wait, by="ada", reason="Mine."),
            lambda event=event, wait=waits[1]: attach(event, wait, by="bo", reason="Mine."),
        )
        assert isinstance(first, Done)
        assert isinstance(second, Done)
        assert sorted([first.changed, second.changed]) == [False, True]
        loser, winner = (first, "bo") if second.changed else (second, "ada")
        assert loser.sentence.startswith(f"{winner} attached it to ")
        assert Match.objects.filter(event=event).count() == 1
        assert sorted(wait_of(run).state for run in runs) == ["resolved", "waiting"]


def test_attaching_against_dismissing_and_against_a_cancellation() -> None:
    tenant()
    for number in range(ROUNDS):
        run = waiting(correlation=f"{number} a")
        event = delivered(f"{number}").event
        wait = wait_of(run).pk
        attached, dismissed, _ = at_once(
            lambda event=event, wait=wait: attach(event, wait, by="ada", reason="Mine."),
            lambda event=event: dismiss(event, by="bo", reason="Not ours."),
            lambda run=run: cancel_run(run.pk, by="cy"),
        )
        found = Event.objects.get(pk=event)
        assert not (attached.changed and dismissed.changed)
        assert attached.changed == (found.state == "matched")
        assert dismissed.changed == (found.dismissed_at is not None)
        assert wait_of(run).state in ("resolved", "cancelled")


def test_an_event_that_arrives_beside_one_that_is_attached_is_not_swallowed() -> None:
    """The wait takes one of the two; the other is kept, and is nobody's."""
    tenant()
    for number in range(ROUNDS):
        run = waiting(correlation=f"{number} a")
        event = delivered(f"{number}").event
        wait = wait_of(run).pk
        at_once(
            lambda event=event, wait=wait: attach(event, wait, by="ada", reason="Mine."),
            lambda number=number: delivered(f"{number} a"),
        )
        assert Match.objects.filter(wait=wait).count() == 1
        others = Event.objects.exclude(matches__wait=wait).exclude(state="matched")
        assert others.filter(state__in=["stored", "late"]).count() >= 1
        assert driven(run).state == "completed"
    assert AuditEntry.objects.filter(verb="event attached").count() <= ROUNDS
