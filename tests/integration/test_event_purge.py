"""The end of what is kept of events: which bodies go and when, and which a wait still needs."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.utils import timezone
from pytest_django import Settings

from reconciliation.models import AuditEntry, Hold
from tests.events import COUNTING, delivered, driven, source, wait_of, waiting
from workflows.models import Event
from workflows.models.ids import id_at, new_id
from workflows.services import event_purge
from workflows.services.event_items import dismiss, restore
from workflows.services.event_purge import PurgedEvents, purge_due_events

pytestmark = pytest.mark.django_db

RETAIN = timedelta(days=30)
UNCONSUMED = timedelta(days=90)


@pytest.fixture(autouse=True)
def kept_for_a_month() -> None:
    made = source()
    made.retain = RETAIN
    made.save()


def aged(event: UUID, days: float) -> UUID:
    """As if it had come so many days ago: its ID tells the time too. Returns its new ID."""
    at = timezone.now() - timedelta(days=days)
    old = UUID(int=id_at(at).int | (new_id().int & (1 << 80) - 1))
    row = Event.objects.get(pk=event)
    matches = list(row.matches.all())
    changed = Event.objects.filter(pk=event)
    row.pk, row.received_at, row.event_id = old, at, f"{row.event_id} aged"
    row.save(force_insert=True)
    for match in matches:
        match.event_id = old
        match.save()
    Hold.objects.filter(event=event).update(event=old)
    changed.delete()
    return old


def is_kept(event: UUID) -> bool:
    row = Event.objects.get(pk=event)
    assert (row.body is None) == (row.purged_at is not None)
    return row.body is not None


def test_a_body_goes_when_its_time_is_over_and_the_row_stays() -> None:
    run = waiting()
    event = aged(delivered().event, days=31)
    young = delivered("other").event
    dismiss(young, by="user:3 ada", reason="Not ours.")
    driven(run)
    assert purge_due_events() == PurgedEvents(events=1, dismissed=0, bytes=15)
    row = Event.objects.get(pk=event)
    assert (row.state, row.body, row.dismissed_at) == ("matched", None, None)
    assert row.purged_at is not None
    assert is_kept(young)
    assert purge_due_events() == PurgedEvents()


def test_a_source_without_retention_keeps_its_bodies() -> None:
    event = delivered(of=source("for_good")).event
    dismiss(event, by="user:3 ada", reason="Not ours.")
    event = aged(event, days=3650)
    assert purge_due_events() == PurgedEvents()
    assert is_kept(event)


def test_what_a_worker_has_still_to_read_is_kept() -> None:
    run = waiting()
    event = aged(delivered().event, days=31)
    assert run.step == "refunded"
    purge_due_events()
    assert is_kept(event)  # its run is ready, and has not gone on
    driven(run)
    purge_due_events()
    assert not is_kept(event)


def test_an_event_of_a_wait_that_needs_more_is_kept() -> None:
    run = waiting(COUNTING)
    event = aged(delivered().event, days=31)
    purge_due_events()
    assert is_kept(event)
    assert wait_of(run).state == "waiting"


def test_a_dismissed_event_goes_after_the_retention_of_its_source() -> None:
    event = delivered().event
    dismiss(event, by="user:3 ada", reason="Not ours.")
    event = aged(event, days=31)
    purge_due_events()
    assert not is_kept(event)
    assert Event.objects.get(pk=event).dismissed_by == "user:3 ada"


@pytest.mark.parametrize("problem", ["", "no ID at id"])
def test_what_nobody_took_is_kept_for_longer_and_then_dismissed(problem: str) -> None:
    event = aged(delivered(problem=problem).event, days=119)
    purge_due_events()
    assert is_kept(event)
    event = aged(event, days=121)
    assert purge_due_events() == PurgedEvents(events=1, dismissed=1, bytes=15)
    row = Event.objects.get(pk=event)
    assert row.dismissed_reason.startswith("Nobody took it for as long as it is kept")
    assert AuditEntry.objects.filter(object=f"event:{event}", verb="event dismissed").exists()
    # A wait that opens now must not get an event that it cannot read.
    assert waiting().state == "waiting"


def test_how_much_longer_is_a_setting(settings: Settings) -> None:
    settings.ROMULUS_UNCONSUMED_SECONDS = 86400
    event = aged(delivered().event, days=32)
    purge_due_events()
    assert not is_kept(event)


def test_an_event_that_an_open_wait_fits_is_never_purged() -> None:
    runs = [waiting(), waiting()]
    event = aged(delivered().event, days=1000)
    assert Event.objects.get(pk=event).ambiguous_at is not None
    purge_due_events()
    assert is_kept(event)
    assert Hold.objects.get(event=event).state == "open"
    for run in runs:
        wait = wait_of(run)
        wait.correlation = f"{wait.pk}"
        wait.save()
    purge_due_events()
    assert not is_kept(event)
    assert Hold.objects.get(event=event).state == "closed"


def test_a_purged_event_cannot_be_brought_back() -> None:
    event = delivered().event
    dismiss(event, by="user:3 ada", reason="Not ours.")
    event = aged(event, days=31)
    purge_due_events()
    done = restore(event, by="user:3 ada", reason="It was.")
    assert (done.done, done.changed) == (False, False)
    assert "Its body was purged" in done.sentence


def test_many_go_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_purge, "BATCH", 2)
    for number in range(5):
        event = delivered(str(number)).event
        dismiss(event, by="user:3 ada", reason="Not ours.")
        aged(event, days=40)
    assert purge_due_events().events == 5
    assert not Event.objects.filter(purged_at=None).exists()


def test_the_command_says_what_would_go_and_lets_it_go() -> None:
    event = delivered().event
    dismiss(event, by="user:3 ada", reason="Not ours.")
    event = aged(event, days=40)
    assert told("--dry-run")["events"] == {"events": 1, "dismissed": 0, "bytes": 15}
    assert is_kept(event)
    assert told()["events"]["events"] == 1
    assert not is_kept(event)


def told(*arguments: str) -> Any:
    out = io.StringIO()
    call_command("purge", "--json", *arguments, stdout=out)
    return json.loads(out.getvalue())
