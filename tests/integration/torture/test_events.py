"""Waits and events."""

from __future__ import annotations

import copy
import dataclasses

from romulus_site.torture.record import Record
from tests.integration.torture.breaking import (
    SECOND,
    Break,
    attempts,
    each_break,
    ensure_found,
    finds,
    without,
)
from tests.peaceful import ANSWERED, UNANSWERED
from workflows.models import Event, Wait

# --- waits and events -------------------------------------------------------------------------


def wait_of(record: Record, number: int) -> Wait:
    run = record.performance.started[number]
    return next(wait for wait in record.waits if wait.run_id == run)


def event(record: Record, event_id: str) -> Event:
    return next(each for each in record.events if each.event_id == event_id)


@finds("delivered", "event e-late was sent, and is kept 0 times")
def an_event_was_lost(record: Record) -> None:
    record.events = without(record.events, event(record, "e-late"))


@finds("delivered", "event e-early was sent, and is kept 2 times")
def an_event_is_kept_twice(record: Record) -> None:
    record.events = [*record.events, copy.copy(event(record, "e-early"))]


@finds("delivered", "and nobody sent it")
def an_event_that_nobody_sent_is_kept(record: Record) -> None:
    more = copy.copy(event(record, "e-near"))
    more.event_id = "e-another"
    record.events = [*record.events, more]


@finds("delivered", "answered 2 times of 2 tries, and 0 copies of it are counted")
def a_copy_was_not_counted(record: Record) -> None:
    event(record, "e-early").duplicates = 0


@finds("delivered", "and 2 copies of it are counted")
def a_copy_was_counted_twice(record: Record) -> None:
    event(record, "e-early").duplicates = 2


@finds("delivered", "2 senders of event e-early were told that it is the first")
def a_copy_was_taken_for_the_first(record: Record) -> None:
    deliveries = record.performance.deliveries
    again = deliveries.index(next(each for each in deliveries if each.outcome == "duplicate"))
    deliveries[again] = dataclasses.replace(deliveries[again], outcome="stored")


@finds("waits", "has waited 2 times")
def a_run_waited_twice(record: Record) -> None:
    record.waits = [*record.waits, copy.copy(wait_of(record, UNANSWERED))]


@finds("waits", "it got 0 events")
def a_wait_was_resolved_by_nothing(record: Record) -> None:
    wait_of(record, UNANSWERED).state = "resolved"


@finds("waits", "it got event e-early")
def a_wait_with_its_event_is_said_to_have_run_out(record: Record) -> None:
    wait = wait_of(record, ANSWERED)
    assert wait.deadline is not None
    wait.state, wait.resolved_at = "expired", wait.deadline + SECOND


@finds("waits", "event e-late came in time")
def a_deadline_won_against_an_event_in_time(record: Record) -> None:
    deadline = wait_of(record, UNANSWERED).deadline
    assert deadline is not None
    event(record, "e-late").received_at = deadline


@finds("waits", "and its deadline is")
def a_wait_ran_out_before_its_deadline(record: Record) -> None:
    wait = wait_of(record, UNANSWERED)
    wait.resolved_at = wait.deadline


@finds("waits", "it has no deadline")
def a_wait_without_a_deadline_ran_out(record: Record) -> None:
    wait_of(record, UNANSWERED).deadline = None


@finds("waits", "nobody has cancelled its run")
def a_wait_was_cancelled_by_nobody(record: Record) -> None:
    wait_of(record, UNANSWERED).state = "cancelled"


@finds("waits", "is waiting: it got an event")
def a_wait_that_has_its_event_is_still_open(record: Record) -> None:
    wait_of(record, ANSWERED).state = "waiting"


@finds("taken once", "is matched, and 2 waits got it")
def an_event_was_taken_twice(record: Record) -> None:
    more = copy.copy(record.matches[0])
    more.wait_id = wait_of(record, UNANSWERED).pk
    record.matches = [*record.matches, more]


@finds("taken once", "is matched, and 0 waits got it")
def an_event_was_taken_by_nobody(record: Record) -> None:
    event(record, "e-late").state = "matched"


@finds("taken once", "got event e-near, which is not for it")
def a_near_miss_was_taken(record: Record) -> None:
    more = copy.copy(record.matches[0])
    more.wait_id, more.event_id = wait_of(record, UNANSWERED).pk, event(record, "e-near").pk
    record.matches = [*record.matches, more]


@finds("taken once", "after its deadline")
def an_event_was_taken_after_the_deadline(record: Record) -> None:
    deadline = wait_of(record, ANSWERED).deadline
    assert deadline is not None
    event(record, "e-early").received_at = deadline + SECOND


@finds("taken once", "is stored, and should be late")
def a_late_event_is_not_said_to_be_late(record: Record) -> None:
    event(record, "e-late").state = "stored"


@finds("none waits", "waits for event e-late, which is there")
def a_wait_is_open_whose_event_is_there(record: Record) -> None:
    wait = wait_of(record, UNANSWERED)
    wait.state, wait.deadline = "waiting", None


@finds("outputs", "nothing: its wait got no event")
def a_run_went_on_with_an_event_that_it_did_not_get(record: Record) -> None:
    record.matches = []


@finds("outputs", "'e-early'")
def a_run_went_on_with_another_event(record: Record) -> None:
    waited = attempts(record, ANSWERED, "answered")[-1]
    other = record.outputs[waited.pk] | {"event_id": "e-another"}
    record.outputs = {**record.outputs, waited.pk: other}


@finds("walk", "the run was at ('go_without', 1)")
def a_run_whose_deadline_won_goes_on_as_with_its_event(record: Record) -> None:
    attempts(record, UNANSWERED, "go_without")[0].step = "take_in"


@each_break(__name__)
def test_what_is_broken_is_found(record: Record, check: str, words: str, do: Break) -> None:
    ensure_found(record, check, words, do)
