"""Case A09: the deadline comes, and the event comes too: each run takes one way, and says which.

Shrunk by the input of the runs: the deadlines lie seconds ahead and one after the other, not 30 s
and together; that of the first lies 30 s ahead, and its event is sent at once. What is asserted is
read from the rows, by the rule of the documentation: an event that was received until the deadline
wins, whoever comes by first. So it holds on a slow machine, too.
"""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from guardian.shortcuts import assign_perm

from tests.acceptance.payfake import all_over, attempts, console, order_run, page_of
from tests.acceptance.settling import SETTLED
from tests.acceptance.shipfake import Delivery, Shipfake, settlement
from tests.factories import person, tenant
from tests.waiting import wait_for
from tests.workers import Crew
from workflows.models import Event, Match, Run, Wait
from workflows.services.clock import database_now
from workflows.services.results import result_of
from workflows.services.runs import Start, start_many

pytestmark = pytest.mark.processes

RUNS, SENDERS = 200, 6
LEAD, APART = timedelta(seconds=4), timedelta(milliseconds=10)
FAR = timedelta(seconds=30)
# Around the deadlines, from 200 ms before to 200 ms after, in no order.
OFFSETS = [timedelta(milliseconds=(37 * number) % 401 - 200) for number in range(RUNS)]
REMINDED = "reminded"


def order_of(number: int) -> str:
    return f"ORD-{9000 + number}"


def event_of(number: int) -> str:
    return f"evt_{9000 + number}"


def test_a09_every_run_takes_the_way_that_its_event_or_its_deadline_says(
    workers: Crew, shipfake: Shipfake, tmp_path: Path
) -> None:
    workers.start(threads=2)
    now = database_now()
    deadlines = [now + FAR, *(now + LEAD + APART * number for number in range(1, RUNS))]
    runs = started(tmp_path, deadlines)
    aims = [now, *(deadlines[number] + OFFSETS[number] for number in range(1, RUNS))]
    deliveries = [settlement(order_of(number), event_of(number)) for number in range(RUNS)]
    in_turn = sorted(zip(aims, deliveries, strict=True), key=lambda pair: pair[0])
    with ThreadPoolExecutor(SENDERS) as senders:
        statuses = list(senders.map(lambda pair: sent(shipfake, *pair), in_turn))
    assert set(statuses) == {202}
    all_over(*runs)

    assert sorted(Wait.objects.values_list("run_id", flat=True)) == sorted(r.pk for r in runs)
    waits = Wait.objects.select_related("run").prefetch_related("run__attempts")
    events = {each.correlation: each for each in Event.objects.prefetch_related("matches")}
    sides = Counter(side_of(wait, events[wait.correlation], tmp_path) for wait in waits)
    assert min(sides["event"], sides["deadline"]) > 0
    assert Match.objects.count() == Wait.objects.filter(state="resolved").count() == sides["event"]
    assert not Wait.objects.filter(state="waiting").exists()
    assert_says_which(runs)


def started(folder: Path, deadlines: list[datetime]) -> list[Run]:
    starts = [
        Start({"order": order_of(number), "folder": str(folder), "until": deadline.isoformat()})
        for number, deadline in enumerate(deadlines)
    ]
    return list(start_many("dated", starts, tenant=tenant()))


def sent(shipfake: Shipfake, aim: datetime, delivery: Delivery) -> int:
    """The clock of the database is this machine's."""
    wait_for(lambda: time.time() >= aim.timestamp(), "the time that it is aimed at")
    return shipfake.send(delivery).status


def side_of(wait: Wait, event: Event, folder: Path) -> str:
    """Who won; everything that is on record of the run says the same."""
    run = wait.run
    in_time = wait.deadline is not None and event.received_at <= wait.deadline
    way = "go_on" if in_time else "remind"
    assert (run.state, run.step) == ("completed", way)
    assert result_of(run) == (event.event_id if in_time else REMINDED)
    assert wait.state == ("resolved" if in_time else "expired")
    # What comes before there is a wait at all is not known to be late.
    loser = "late" if event.received_at >= wait.started_at else "stored"
    assert event.state == ("matched" if in_time else loser)
    assert [match.wait_id for match in event.matches.all()] == ([wait.pk] if in_time else [])
    steps = [each.step for each in run.attempts.all()]
    assert [step for step in steps if step != "settled_in_time"] == [way]
    assert (folder / f"{wait.correlation}.{way}").read_text().count("\n") == 1
    return "event" if in_time else "deadline"


def assert_says_which(runs: list[Run]) -> None:
    """One of each side, as a person reads it."""
    user = person("reviewer_1")
    assign_perm("workflows.view_tenant", user, tenant())
    for event_state, side in (("matched", "resolved"), ("late", "expired")):
        event = Event.objects.filter(state=event_state).order_by("received_at")[0]
        run = next(run for run in runs if run.input["order"] == event.correlation)
        (wait,) = page_of(run, console("reviewer_1")).waits
        got, late = ([each.text for each in shown] for shown in (wait.events, wait.late))
        text = [f"{SETTLED} {event.event_id}"]
        assert (wait.state, got or late) == (side, text)
        assert bool(got) == (side == "resolved")


def test_a09_a_deadline_that_is_past_when_the_wait_opens_is_carried_out_at_once(
    workers: Crew, shipfake: Shipfake, tmp_path: Path
) -> None:
    """Five, and for two of them an event was stored before the deadline: it wins."""
    early = [order_of(number) for number in range(2)]
    for number, order in enumerate(early):
        assert shipfake.settle(order, event_of(number)).status == 202
    past = database_now()
    workers.start()
    runs = [
        order_run(tmp_path, order_of(number), "dated", until=past.isoformat())
        for number in range(5)
    ]
    all_over(*runs)
    for number, run in enumerate(runs):
        wait = Wait.objects.get(run=run)
        assert wait.deadline == past < wait.started_at
        # Opened and resolved in one go: the run was not given back in between.
        side = "go_on" if number < 2 else "remind"
        assert attempts(run) == [("settled_in_time", "committed"), (side, "committed")]
        assert wait.state == ("resolved" if number < 2 else "expired")
        assert result_of(run) == (event_of(number) if number < 2 else REMINDED)
    assert Match.objects.count() == 2
