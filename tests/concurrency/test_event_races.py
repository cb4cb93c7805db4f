"""An event beside the opening of its wait, its deadline, a cancellation and itself: on connections
of their own. Each run takes exactly one branch, and whatever loses is kept.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import partial

import pytest
from django.db import transaction

from tests.events import (
    FAILING,
    GOING_ON,
    SHARING,
    begun,
    delivered,
    driven,
    incoming,
    let_deadline_come,
    swept,
    wait_of,
    waiting,
)
from tests.racing import at_once, beside, in_rounds, wait_until_blocked
from tests.waiting import LIMIT_SECONDS, wait_for
from workflows.core.definitions import Child, Workflow
from workflows.core.events import Outcome
from workflows.models import Event, Match, Run, Wait
from workflows.registry import registry
from workflows.services.clock import database_now
from workflows.services.ending import end_cancelled
from workflows.services.executor import advance
from workflows.services.inbox import lock_matching, receive
from workflows.services.ownership import Keeper
from workflows.services.results import result_of
from workflows.services.run_view import RunView
from workflows.services.stopping import cancel_run
from workflows.services.sweep import wake_due_runs

pytestmark = pytest.mark.usefixtures("committed_db")

MANY = 1000  # rounds among which every order has come about


def ended(run: Run) -> Run:
    """What workers do with what is left to do."""
    run = driven(run)
    assert run.state == "completed", run.failure
    return run


def taken(run: Run) -> list[str]:
    """The IDs of the events that the waits of `run` got."""
    return list(Match.objects.filter(wait__run=run).values_list("event__event_id", flat=True))


def test_an_event_and_the_opening_of_its_wait_find_each_other(races: int) -> None:
    runs = [begun(correlation=f"c{place}") for place in range(races)]
    keeper = Keeper()
    in_rounds(
        races,
        lambda place: advance(runs[place].pk, keeper),
        lambda place: delivered(f"c{place}", event_id=f"evt_{place}"),
    )
    for place, run in enumerate(runs):
        assert result_of(ended(run))[0] == f"evt_{place}"
        assert taken(run) == [f"evt_{place}"]


@pytest.mark.parametrize("event_first", [True, False])
def test_at_the_deadline_whoever_comes_first_decides(event_first: bool) -> None:
    """Both wait for the lock, in the order in which they came."""
    run = waiting(GOING_ON)
    wait = wait_of(run)
    with beside() as do, transaction.atomic():
        lock_matching(wait.tenant_id, wait.event_types, wait.correlation)
        if event_first:
            event = do(partial(delivered, event_id="evt_1"))
            wait_until_blocked(event)
        let_deadline_come(run)
    # The deadline is past now, and the event was on its way: it is received after it.
    if not event_first:
        run = swept(run)
        assert delivered().outcome is Outcome.LATE
    else:
        assert event.result(timeout=LIMIT_SECONDS).outcome in (Outcome.LATE, Outcome.MATCHED)
        run = swept(run)
    assert run.state == "completed"
    assert wait_of(run).state in ("resolved", "expired")


def test_an_event_and_a_deadline_at_once_take_one_branch_and_the_time_says_which(
    races: int,
) -> None:
    """Thousands of times with `--races`: the loser is kept, and no run takes both or none."""
    runs = [waiting(GOING_ON, f"c{place}") for place in range(races)]
    keeper = Keeper()

    def let_it_come(place: int) -> None:
        # Sooner or later beside the event, which is a matter of a millisecond or two.
        soon = database_now() + timedelta(microseconds=500 * (place % 10))
        run = Run.objects.filter(pk=runs[place].pk, state="waiting")
        with transaction.atomic():
            if run.update(wake_at=soon):
                Wait.objects.filter(run=runs[place], state="waiting").update(deadline=soon)
        wait_for(lambda: wake_due_runs() or not run.exists(), "it goes on")
        advance(runs[place].pk, keeper)

    in_rounds(races, let_it_come, lambda place: delivered(f"c{place}", event_id=f"evt_{place}"))
    won: Counter[str] = Counter()
    for place, run in enumerate(runs):
        got = result_of(ended(swept(run)))
        won[wait_of(run).state] += 1
        event, wait = Event.objects.get(event_id=f"evt_{place}"), wait_of(run)
        assert wait.deadline is not None
        if event.received_at <= wait.deadline:
            assert (event.state, wait.state, got[0]) == ("matched", "resolved", event.event_id)
            assert taken(run) == [event.event_id]
        else:
            assert (event.state, wait.state, got) == ("late", "expired", None)
            assert taken(run) == []
    assert won.total() == races
    assert races < MANY or won.keys() == {"resolved", "expired"}, won


def test_twenty_deliveries_of_one_event_are_one_event() -> None:
    run = waiting()
    delivery = incoming(event_id="evt_1")
    receipts = at_once(*[partial(receive, delivery)] * 15)
    outcomes = Counter(receipt.outcome for receipt in receipts)
    assert outcomes == {Outcome.MATCHED: 1, Outcome.DUPLICATE: 14}
    assert len({receipt.event for receipt in receipts}) == 1
    assert Event.objects.get().duplicates == 14
    assert result_of(ended(run))[0] == "evt_1"


def test_of_many_events_at_once_the_wait_takes_one_and_keeps_the_others() -> None:
    run = waiting()
    receipts = at_once(*[partial(delivered) for _ in range(15)])
    outcomes = Counter(receipt.outcome for receipt in receipts)
    assert outcomes == {Outcome.MATCHED: 1, Outcome.LATE: 14}
    assert len(taken(ended(run))) == 1
    assert Event.objects.filter(state="late").count() == 14


def test_one_id_under_two_correlations_at_once_is_one_event() -> None:
    """Two locks, one row: the second delivery is a duplicate, whatever it says of itself."""
    runs = [waiting(correlation="a"), waiting(correlation="b")]
    deliveries = [partial(receive, incoming(each, event_id="evt_1")) for each in ("a", "b")]
    receipts = at_once(*deliveries)
    assert {receipt.outcome for receipt in receipts} == {Outcome.MATCHED, Outcome.DUPLICATE}
    assert sorted(driven(run).state for run in runs) == ["completed", "waiting"]


def test_an_event_and_a_cancellation_at_once_end_the_run_once(races: int) -> None:
    runs = [waiting(correlation=f"c{place}") for place in range(races // 2)]
    in_rounds(
        races // 2,
        lambda place: cancel_run(runs[place].pk, by="user:1 ada"),
        lambda place: delivered(f"c{place}", event_id=f"evt_{place}"),
    )
    for place, run in enumerate(runs):
        run.refresh_from_db()
        event = Event.objects.get(event_id=f"evt_{place}")
        assert run.state == "cancelled"
        assert (event.state, wait_of(run).state) in [
            ("matched", "resolved"),  # it came first; then the run was cancelled
            ("late", "cancelled"),
        ]


def test_an_event_waits_for_one_that_was_before_it() -> None:
    run = waiting()
    wait = wait_of(run)
    with beside() as do:
        with transaction.atomic():
            lock_matching(wait.tenant_id, wait.event_types, wait.correlation)
            second = do(partial(delivered, event_id="evt_2"))
            wait_until_blocked(second)
            assert delivered(event_id="evt_1").outcome is Outcome.MATCHED
        assert second.result(timeout=LIMIT_SECONDS).outcome is Outcome.LATE
    assert result_of(ended(run))[0] == "evt_1"


# --- an event that several runs of one family could take, and the end of that family ----------

FAMILY = Workflow("tests.waiting_family")


@FAMILY.children()
def bring_up(run: RunView) -> list[Child]:
    return [Child(run.input["kind"], {"correlation": "48213"}) for _ in range(2)]


def waiting_family(flow: Workflow) -> tuple[Run, list[Run]]:
    """A run and the two that it waits for, which both wait for the same event."""
    registry.add(flow)
    parent = waiting(FAMILY, kind=flow.name)
    return parent, [driven(child) for child in parent.children.order_by("pk")]


@pytest.mark.parametrize("flow", [FAILING, SHARING], ids=["ambiguous", "shared"])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("cancel_first", [True, False])
def test_an_event_for_several_runs_and_the_end_of_their_parent_wait_for_each_other_in_one_order(
    flow: Workflow, place: int, cancel_first: bool
) -> None:
    """Whichever row the two meet at, and whoever comes there first: neither holds what the other
    one is waiting for."""
    parent, children = waiting_family(flow)
    acts = [partial(cancel_run, parent.pk, by="user:1 ada"), partial(delivered, event_id="evt_1")]
    with beside() as do:
        with transaction.atomic():
            Run.objects.select_for_update().get(pk=children[place].pk)
            begun_acts = []
            for act in acts if cancel_first else reversed(acts):
                begun_acts.append(do(act))
                wait_until_blocked(*begun_acts)
        for each in begun_acts:
            each.result(timeout=LIMIT_SECONDS)
    event = Event.objects.get(event_id="evt_1")
    while end_cancelled():
        pass
    parent.refresh_from_db()
    assert parent.state == "cancelled"
    assert set(parent.children.values_list("state", flat=True)) == {"cancelled"}
    assert event.state in (("late", "stored") if flow is FAILING else ("late", "matched"))
