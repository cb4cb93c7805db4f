"""Case A06 (a) and (b): an event that is earlier than the wait that it is for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from tests.acceptance.payfake import (
    HELD_BACK_SECONDS,
    all_over,
    attempts,
    console,
    effects,
    order_run,
    page_of,
    payfake,
    the_operation,
    wait_until_sent,
)
from tests.acceptance.settling import SETTLED
from tests.acceptance.shipfake import Shipfake
from tests.destination import RunningDestination
from tests.workers import Crew
from workflows.models import Event, Run, Wait

pytestmark = pytest.mark.processes

EARLY, UNKNOWN = "ORD-7006", "ORD-7099"


def went_on_at_once(run: Run, event_id: str) -> None:
    """Its wait had what it needed when it opened: the worker has not given the run back."""
    assert run.state == "completed"
    wait = Wait.objects.get(run=run)
    assert (wait.state, attempts(run).count(("settled", "committed"))) == ("resolved", 1)
    event = Event.objects.get(matches__wait=wait)
    assert (event.event_id, event.state) == (event_id, "matched")
    assert event.received_at < wait.started_at
    assert [each.text for each in page_of(run).waits[0].events] == [f"{SETTLED} {event_id}"]


def inbox() -> Any:
    answer = console().get(reverse("events"), {"view": "all"})
    assert answer.status_code == 200
    return answer.content.decode()


def test_a06_an_event_that_comes_while_the_refund_is_open_is_there_when_its_wait_opens(
    workers: Crew, destination: RunningDestination, shipfake: Shipfake, tmp_path: Path
) -> None:
    payfake(destination)
    slowly = {"seconds": HELD_BACK_SECONDS, "path": "*refunds"}
    destination.client.arm("apply_then_delay", body={"order": EARLY}, **slowly)
    workers.start()
    run = order_run(tmp_path, EARLY, "settling")
    operation = wait_until_sent(destination, run)
    assert shipfake.settle(EARLY, "evt_early").status == 202
    assert (Event.objects.get().state, Wait.objects.count()) == ("stored", 0)
    destination.client.release()
    all_over(run)
    went_on_at_once(run, "evt_early")
    assert effects(destination, operation) == 1
    assert effects(destination, the_operation(run, "notify")) == 1


def test_a06_an_event_for_which_no_run_exists_is_kept_and_shown_and_used(
    workers: Crew, destination: RunningDestination, shipfake: Shipfake, tmp_path: Path
) -> None:
    """Shrunk: the run starts as soon as the event was seen to be there, not a minute later."""
    payfake(destination)
    workers.start()
    assert shipfake.settle(UNKNOWN, "evt_unknown").status == 202
    assert Event.objects.get().state == "stored"
    assert UNKNOWN in inbox()
    run = order_run(tmp_path, UNKNOWN, "settling")
    all_over(run)
    went_on_at_once(run, "evt_unknown")
    assert effects(destination, the_operation(run, "notify")) == 1
