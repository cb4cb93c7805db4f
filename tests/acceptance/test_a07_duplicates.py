"""Case A07: one event is delivered many times, at once and in turn, and what only looks like it.

Over real HTTP to a real console.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.acceptance.payfake import (
    all_over,
    all_sends,
    effects,
    order_run,
    payfake,
    the_operation,
    wait_until_sent,
)
from tests.acceptance.shipfake import Shipfake, producer, settlement
from tests.destination import RunningDestination
from tests.factories import tenant
from tests.waiting import wait_for
from tests.workers import Crew
from workflows.models import Event, Match, Run, Wait

pytestmark = pytest.mark.processes

ORDER, ID = "ORD-7007", "evt_7007"
COPIES, AT_ONCE = 20, 10


def test_a07_copies_are_one_event_and_what_looks_like_it_is_another(
    workers: Crew, destination: RunningDestination, shipfake: Shipfake, tmp_path: Path
) -> None:
    payfake(destination)
    southbay = tenant("southbay")
    producer("other-ship")
    producer("south-ship", southbay)
    workers.start()
    run = order_run(tmp_path, ORDER, "settling")
    wait_until_sent(destination, run)
    wait_for(Wait.objects.filter(run=run, state="waiting").exists, "it waits for the event")

    # Signed one by one, as a producer does that delivers again.
    copies = [settlement(ORDER, ID) for _ in range(COPIES)]
    with ThreadPoolExecutor(AT_ONCE) as senders:
        statuses = [answer.status for answer in senders.map(shipfake.send, copies[:AT_ONCE])]
    statuses += [shipfake.send(copy).status for copy in copies[AT_ONCE:]]
    assert Counter(statuses) == {202: 1, 200: COPIES - 1}
    entry = Event.objects.get()
    assert entry.duplicates == COPIES - 1

    all_over(run)
    assert run.state == "completed"
    like_it = [
        settlement(ORDER, f"{ID}_again"),
        settlement(ORDER, ID, "other-ship"),
        settlement(ORDER, ID, "south-ship"),
    ]
    assert [shipfake.send(each).status for each in like_it] == [202, 202, 202]
    assert_taken_once(run, entry)
    kept = Event.objects.exclude(pk=entry.pk).order_by("id")
    assert [(each.event_id, each.source.slug, each.state) for each in kept] == [
        (f"{ID}_again", "shipfake", "late"),
        (ID, "other-ship", "late"),
        (ID, "south-ship", "stored"),
    ]
    assert [each.tenant for each in kept] == [run.tenant, run.tenant, southbay]
    assert Event.objects.filter(duplicates__gt=0).get() == entry
    # They have started nothing.
    assert Run.objects.count() == 1
    assert effects(destination, the_operation(run, "notify")) == 1
    assert len(all_sends(destination)) == 2
    assert "Traceback" not in shipfake.hooks.log.read_text()


def assert_taken_once(run: Run, entry: Event) -> None:
    match = Match.objects.get()
    assert (match.event_id, match.wait.run_id, match.wait.state) == (entry.pk, run.pk, "resolved")
