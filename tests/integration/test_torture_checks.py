"""Every check of a torture finds the breach that it is for: shown it, it names it.

The record of a torture without any blow is read once; each test breaks one thing in a copy of it.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection

from reconciliation.models import Hold, Operation, Transmission
from romulus_site.torture.checks import CHECKS, examine
from romulus_site.torture.errands import Pause
from romulus_site.torture.logs import Trouble
from romulus_site.torture.plan import Errand
from romulus_site.torture.record import Mark, Record, Unreadable
from romulus_site.torture.rest import Restless
from romulus_site.torture.strikes import Strike, strikes_of
from tests.databases import cloned
from tests.destination import RunningDestination
from tests.peaceful import ANSWERED, TO_CANCEL, UNANSWERED, own_registry, peaceful_record
from workflows.models import Attempt, Event, Run, Wait

SECOND = timedelta(seconds=1)

Break = Callable[[Record], None]
BREAKS: list[Any] = []


def finds(check: str, words: str) -> Callable[[Break], Break]:
    """What is broken by this is found by `check`, in these `words`."""

    def add(do: Break) -> Break:
        BREAKS.append(pytest.param(check, words, do, id=do.__name__))
        return do

    return add


@pytest.fixture(scope="module")
def whole(
    django_db_setup: None, django_db_blocker: Any, destination_process: RunningDestination
) -> Iterator[Record]:
    destination_process.client.reset()
    with django_db_blocker.unblock(), cloned(connection), own_registry():
        record = peaceful_record(destination_process)
    with own_registry():
        yield record


@pytest.fixture
def record(whole: Record) -> Record:
    """A copy that a test may break."""
    fields = dataclasses.fields(whole)
    return Record(**{each.name: copy.deepcopy(getattr(whole, each.name)) for each in fields})


def test_where_nothing_is_broken_nothing_is_found(record: Record) -> None:
    assert examine(record) == []


@pytest.mark.parametrize(("check", "words", "do"), BREAKS)
def test_what_is_broken_is_found(record: Record, check: str, words: str, do: Break) -> None:
    do(record)
    found = [breach.message for breach in examine(record) if breach.check == check]
    assert any(words in message for message in found), found


def test_every_check_is_shown_something_broken() -> None:
    assert {case.values[0] for case in BREAKS} == {check.name for check in CHECKS}


# --- finding what to break --------------------------------------------------------------------


def run_no(record: Record, number: int) -> Run:
    return record.run_of[record.performance.started[number]]


def attempts(record: Record, number: int, step: str = "") -> list[Attempt]:
    """Those of a run, at one step or at all."""
    run = record.performance.started[number]
    return [a for a in record.attempts if a.run_id == run and step in ("", a.step)]


def operation(record: Record, number: int, visit: int = 1) -> Operation:
    run = record.performance.started[number]
    return next(each for each in record.operations if (each.run_id, each.visit) == (run, visit))


def sends(record: Record, number: int) -> list[Transmission]:
    mine = operation(record, number).pk
    return [each for each in record.transmissions if each.operation_id == mine]


def without(rows: Any, row: Any) -> list[Any]:
    return [each for each in rows if each is not row]


WALKED, DOOMED, FAMILY, STRICT, GROUP, BROKEN, PAID, REFUSED, RENTED, HELD, TOLD = range(1, 12)


# --- runs and their ends ----------------------------------------------------------------------


@finds("started once", "was started 0 times")
def a_run_was_lost(record: Record) -> None:
    record.runs = without(record.runs, run_no(record, TOLD))


@finds("started once", "nobody started it")
def a_run_that_nobody_started(record: Record) -> None:
    more = copy.copy(run_no(record, TOLD))
    more.start_key = "another"
    record.runs = [*record.runs, more]


@finds("at rest", "it waits for a free worker")
def a_run_is_stuck(record: Record) -> None:
    run = run_no(record, WALKED)
    why = "it waits for a free worker"
    record.performance.stuck = [Restless(run.pk, run.workflow, "ready", "begin", why)]


@finds("one end", "finished_at is None")
def a_run_completed_and_has_no_end(record: Record) -> None:
    run_no(record, WALKED).finished_at = None


@finds("one end", "and its attempt")
def a_run_went_on_after_its_end(record: Record) -> None:
    last = attempts(record, WALKED)[-1]
    last.ended_at += SECOND


@finds("one end", "not in the commit of its last attempt")
def a_run_ended_apart_from_its_last_commit(record: Record) -> None:
    run = run_no(record, WALKED)
    assert run.finished_at is not None
    run.finished_at += SECOND


@finds("expected end", "is failed, and should be completed")
def a_run_failed_that_was_to_complete(record: Record) -> None:
    run_no(record, GROUP).state = "failed"


@finds("expected end", "is completed, and should be failed")
def a_run_completed_that_was_to_fail(record: Record) -> None:
    run_no(record, DOOMED).state = "completed"


@finds("expected end", "nobody has abandoned its operation")
def a_write_failed_that_nobody_gave_up(record: Record) -> None:
    run_no(record, RENTED).state = "failed"


@finds("expected end", "its fault has not held it")
def a_write_went_on_that_was_to_be_held(record: Record) -> None:
    run_no(record, HELD).state = "completed"
    record.holds = []


@finds("expected end", "an answer that was lost does not lead to conflict")
def a_write_is_held_for_another_reason(record: Record) -> None:
    hold_of(record, HELD).reason = "conflict"


@finds("expected end", "no answer was lost")
def a_write_is_held_and_its_answer_came(record: Record) -> None:
    run_no(record, TOLD).state = "held"
    held = copy.copy(hold_of(record, HELD))
    held.run_id = run_no(record, TOLD).pk
    record.holds = [*record.holds, held]


@finds("expected end", "it has lost 0 workers only")
def a_run_is_held_for_workers_that_it_has_not_lost(record: Record) -> None:
    run_no(record, WALKED).state = "held"
    held = copy.copy(hold_of(record, HELD))
    held.run_id, held.reason = run_no(record, WALKED).pk, "workers_lost"
    record.holds = [*record.holds, held]


@finds("expected end", "is cancelled, and should be completed")
def a_run_is_cancelled_and_nobody_asked(record: Record) -> None:
    record.performance.cancellations = []


@finds("expected end", "none of its children is held")
def a_run_waits_for_children_that_are_over(record: Record) -> None:
    run_no(record, FAMILY).state = "waiting"


@finds("held", "has 0 open holds")
def a_held_run_has_no_hold(record: Record) -> None:
    record.holds = []


@finds("held", "has an open hold: unguarded")
def a_hold_is_left_open(record: Record) -> None:
    run_no(record, HELD).state = "completed"


def hold_of(record: Record, number: int) -> Hold:
    run = record.performance.started[number]
    return next(hold for hold in record.holds if hold.run_id == run)


# --- waits and events ---------------------------------------------------------------------------


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


# --- attempts ---------------------------------------------------------------------------------


@finds("no lease", "held by worker")
def a_run_is_left_running(record: Record) -> None:
    run = run_no(record, WALKED)
    run.state, run.lease_owner = "running", uuid4()


@finds("fences", "and attempts under")
def a_fence_was_given_out_twice(record: Record) -> None:
    attempts(record, WALKED)[2].fence -= 1


@finds("fences", "and attempts under")
def an_attempt_is_not_on_record(record: Record) -> None:
    record.attempts = without(record.attempts, attempts(record, WALKED)[2])


@finds("fences", "has fence 1")
def the_fence_of_a_run_went_back(record: Record) -> None:
    run_no(record, WALKED).fence = 1


@finds("no overlap", "was claimed")
def two_attempts_at_once(record: Record) -> None:
    attempts(record, WALKED)[3].claimed_at -= SECOND * 60


@finds("no overlap", "before it was claimed")
def an_attempt_ended_before_it_began(record: Record) -> None:
    attempts(record, WALKED)[3].ended_at -= SECOND * 60


@finds("tries", "has the tries [1, 3]")
def a_try_was_not_counted(record: Record) -> None:
    attempts(record, WALKED, "begin")[1].number = 3


@finds("losses", "nothing fell on its worker")
def a_living_worker_lost_a_run(record: Record) -> None:
    attempts(record, WALKED)[3].state = "lost"


@finds("losses", "nothing fell on its worker")
def a_worker_lost_a_run_before_it_was_struck(record: Record) -> None:
    lost = attempts(record, WALKED)[3]
    lost.state = "lost"
    strike = Strike("worker", "killed", lost.ended_at + SECOND, None, record.workers[lost.worker])
    record.performance.strikes = strikes_of([strike], 3.0)


# --- the way through the graph ----------------------------------------------------------------


@finds("walk", "the run was at ('note', 1)")
def a_step_was_left_out(record: Record) -> None:
    left_out = attempts(record, WALKED, "note")[0]
    record.attempts = without(record.attempts, left_out)


@finds("walk", "the run was at")
def a_step_was_committed_twice(record: Record) -> None:
    twice = copy.copy(attempts(record, WALKED, "note")[0])
    place = record.attempts.index(attempts(record, WALKED, "book")[0])
    record.attempts = [*record.attempts[:place], twice, *record.attempts[place:]]


@finds("walk", "the run was at ('note', 2)")
def a_branch_was_not_followed(record: Record) -> None:
    attempts(record, WALKED, "note")[1].visit = 3


@finds("walk", "its commits led to")
def a_run_stands_where_it_has_not_come_to(record: Record) -> None:
    run_no(record, HELD).step = "close"


@finds("walk", "its commits led it at")
def a_run_completed_before_its_last_step(record: Record) -> None:
    run = run_no(record, HELD)
    run.state = "completed"


@finds("outputs", "and it should be 8")
def an_output_is_another(record: Record) -> None:
    record.outputs = {**record.outputs, attempts(record, WALKED, "begin")[-1].pk: 9}


@finds("outputs", "and it should be")
def what_was_not_committed_is_counted(record: Record) -> None:
    noted = attempts(record, WALKED, "note")[0]
    output = record.outputs[noted.pk] | {"attempt": str(uuid4())}
    record.outputs = {**record.outputs, noted.pk: output}


@finds("outputs", "cannot be read: it is missing")
def an_output_is_missing_in_the_storage(record: Record) -> None:
    gone = {attempts(record, WALKED, "fill")[0].pk: Unreadable("it is missing")}
    record.outputs = {**record.outputs, **gone}


@finds("outputs", "for child")
def a_childs_end_is_told_wrongly(record: Record) -> None:
    joined = attempts(record, FAMILY, "raise_all")[-1]
    ends = copy.deepcopy(record.outputs[joined.pk])
    ends[0]["result"] += 1
    record.outputs = {**record.outputs, joined.pk: ends}


@finds("outputs", "from ")
def a_sleep_was_cut_short(record: Record) -> None:
    slept = attempts(record, WALKED, "rest")[-1]
    early = (slept.claimed_at - SECOND * 60).isoformat()
    record.outputs = {**record.outputs, slept.pk: early}


@finds("outputs", "and it should be {'operation'")
def a_receipt_is_of_another_operation(record: Record) -> None:
    paid = attempts(record, PAID, "refund")[-1]
    other = record.outputs[paid.pk] | {"operation": str(uuid4())}
    record.outputs = {**record.outputs, paid.pk: other}


@finds("purges", "was purged at")
def an_output_was_purged_before_its_time(record: Record) -> None:
    filled = attempts(record, WALKED, "fill")[0]
    filled.purged_at = filled.ended_at


# --- children ---------------------------------------------------------------------------------


def child_of(record: Record, number: int, step: str, place: int) -> Run:
    parent = record.performance.started[number]
    return next(
        run
        for run in record.runs
        if (run.parent_id, run.parent_step, run.parent_index) == (parent, step, place)
    )


@finds("children once", "those of the places [0, 0, 1, 2]")
def a_child_was_started_twice(record: Record) -> None:
    twice = copy.copy(child_of(record, FAMILY, "raise_all", 0))
    twice.pk = uuid4()
    record.runs = [*record.runs, twice]


@finds("children once", "those of the places [0, 2]")
def a_child_was_not_started(record: Record) -> None:
    record.runs = without(record.runs, child_of(record, FAMILY, "raise_all", 1))


@finds("children seen", "its parent has not seen it")
def the_end_of_a_child_was_not_seen(record: Record) -> None:
    child_of(record, FAMILY, "raise_all", 1).end_seen_at = None


@finds("joins", "was passed too early")
def a_parent_did_not_wait(record: Record) -> None:
    child_of(record, GROUP, "side_by_side", 0).state = "running"


@finds("joins", "was passed, and its children are")
def a_parent_went_on_past_a_failure(record: Record) -> None:
    child_of(record, GROUP, "side_by_side", 0).state = "failed"


@finds("joins", "failed, and its children are")
def a_parent_failed_though_all_completed(record: Record) -> None:
    for place in range(2):
        child_of(record, BROKEN, "side_by_side", place).state = "completed"


@finds("joins", "waits, and its children are")
def a_parent_waits_on(record: Record) -> None:
    run_no(record, STRICT).state = "waiting"


# --- what people stopped ----------------------------------------------------------------------


@finds("cancelled", "somebody was told that it is cancelled")
def a_cancelled_run_went_on(record: Record) -> None:
    run_no(record, TO_CANCEL).state = "waiting"


@finds("cancelled", "that is not on record")
def a_cancellation_was_forgotten(record: Record) -> None:
    run_no(record, TO_CANCEL).cancel_asked_at = None


@finds("cancelled", "committed")
def a_cancelled_run_committed_something(record: Record) -> None:
    attempts(record, TO_CANCEL)[-1].ended_at += SECOND * 600


def pause(record: Record, kind: Errand, what: str) -> None:
    """As if it had been paused all the time."""
    times = [attempt.claimed_at for attempt in record.attempts]
    record.performance.pauses = [Pause(kind, what, min(times) - SECOND, max(times) + SECOND)]


@finds("paused", "began begin at")
def a_paused_run_began_a_step(record: Record) -> None:
    pause(record, Errand.PAUSE, str(run_no(record, WALKED).pk))


@finds("paused", "began split at")
def a_run_of_a_paused_workflow_began_a_step(record: Record) -> None:
    pause(record, Errand.PAUSE_ALL, "torture.group")
    record.performance.pauses[0].since -= SECOND * 10


@finds("paused", "dispatch to torture-keyed was paused")
def something_was_sent_while_dispatch_was_paused(record: Record) -> None:
    pause(record, Errand.SWITCH, "torture-keyed")


@finds("paused", "never let go on")
def something_was_left_paused(record: Record) -> None:
    pause(record, Errand.PAUSE, str(uuid4()))
    record.performance.pauses[0].until = None


# --- the ledger -------------------------------------------------------------------------------


@finds("transmissions", "its sends are numbered [2]")
def a_send_is_not_on_record(record: Record) -> None:
    record.transmissions = without(record.transmissions, sends(record, PAID)[0])


@finds("transmissions", "is recorded as on its way")
def a_send_never_ended(record: Record) -> None:
    sends(record, PAID)[1].state = "sending"


@finds("transmissions", "is sending, and its run is over")
def an_operation_is_left_sending(record: Record) -> None:
    operation(record, HELD).state = "sending"


@finds("transmissions", "says fence 77")
def a_send_was_made_under_another_fence(record: Record) -> None:
    sends(record, PAID)[0].fence = 77


@finds("transmissions", "which is not on record")
def a_send_is_nobodys(record: Record) -> None:
    sends(record, PAID)[0].attempt = uuid4()


@finds("transmissions", "and its attempt lasted from")
def a_send_was_made_after_its_attempt(record: Record) -> None:
    sends(record, PAID)[1].started_at += SECOND * 60


@finds("unknown", "nothing fell on its worker or the destination")
def an_outcome_is_unknown_and_the_answer_came(record: Record) -> None:
    operation_of = sends(record, TOLD)[0]
    operation_of.state = "unknown"


@finds("no blind repeat", "is unknown, and repeated")
def a_write_without_a_key_was_repeated(record: Record) -> None:
    again = copy.copy(sends(record, HELD)[0])
    again.pk, again.number = uuid4(), 2
    record.transmissions = [*record.transmissions, again]


@finds("settled", "is held, and its run is past it")
def a_run_is_past_a_write_that_is_not_proven(record: Record) -> None:
    operation(record, TOLD).state = "held"


@finds("settled", "without an operation")
def a_run_is_past_a_write_without_an_operation(record: Record) -> None:
    record.operations = without(record.operations, operation(record, TOLD))


@finds("settled", "is unknown, and its run is failed")
def an_operation_of_a_failed_run_is_not_settled(record: Record) -> None:
    operation(record, REFUSED).state = "unknown"


@finds("evidence", "nothing on record proves it")
def an_operation_is_verified_without_evidence(record: Record) -> None:
    mine = operation(record, PAID).pk
    record.evidence = [row for row in record.evidence if row.operation_id != mine]


@finds("evidence", "no refusal is on record")
def an_operation_is_rejected_without_a_refusal(record: Record) -> None:
    mine = operation(record, REFUSED).pk
    record.evidence = [row for row in record.evidence if row.operation_id != mine]


@finds("evidence", "nobody has decided that")
def an_operation_is_given_up_by_nobody(record: Record) -> None:
    operation(record, HELD).state = "abandoned"


# --- the destination --------------------------------------------------------------------------


@finds("one effect", "has 2 effects")
def an_effect_was_made_twice(record: Record) -> None:
    (first,) = record.effects_of[str(operation(record, PAID).pk)]
    record.effects = [*record.effects, dataclasses.replace(first, resource_id="re_another")]
    vars(record).pop("effects_of")


@finds("truth", "the destination has no effect of it")
def a_verified_operation_has_no_effect(record: Record) -> None:
    mine = str(operation(record, RENTED).pk)
    record.effects = [effect for effect in record.effects if effect.operation != mine]


@finds("truth", "with re_another, and the destination has")
def a_verified_operation_names_another_resource(record: Record) -> None:
    operation(record, PAID).resource = "re_another"


@finds("truth", "is rejected, and the destination has")
def a_rejected_operation_has_an_effect(record: Record) -> None:
    operation(record, PAID).state = "rejected"


@finds("truth", "is not_sent, and arrived")
def what_was_not_sent_has_arrived(record: Record) -> None:
    sends(record, PAID)[0].state = "not_sent"


@finds("truth", "is rejected, and the destination made effect")
def what_was_rejected_has_an_effect(record: Record) -> None:
    sends(record, PAID)[0].state = "rejected"


@finds("truth", "and never arrived")
def what_was_acknowledged_never_arrived(record: Record) -> None:
    mine = str(sends(record, PAID)[1].pk)
    record.journal = [entry for entry in record.journal if entry.attempt != mine]


@finds("truth", "and arrived 2 times")
def one_send_arrived_twice(record: Record) -> None:
    mine = str(sends(record, PAID)[1].pk)
    more = [entry for entry in record.journal if entry.attempt == mine]
    record.journal = [*record.journal, *more]


@finds("one key", "carried 2 different requests")
def a_key_carried_other_bytes(record: Record) -> None:
    mine = str(sends(record, PAID)[1].pk)
    record.journal = [
        dataclasses.replace(entry, body=b"{}") if entry.attempt == mine else entry
        for entry in record.journal
    ]


@finds("one key", "was sent under another")
def an_operation_was_sent_under_two_keys(record: Record) -> None:
    mine = str(sends(record, PAID)[1].pk)
    record.journal = [
        dataclasses.replace(entry, idempotency_key="another") if entry.attempt == mine else entry
        for entry in record.journal
    ]


@finds("nothing unknown", "of an unknown operation")
def the_destination_has_an_effect_of_nobody(record: Record) -> None:
    record.effects = [*record.effects, dataclasses.replace(record.effects[0], operation="another")]


@finds("nothing unknown", "which is not on record")
def something_left_before_it_was_on_record(record: Record) -> None:
    record.transmissions = without(record.transmissions, sends(record, PAID)[0])


# --- traces -----------------------------------------------------------------------------------


@finds("atomic rows", "1 of its rows are missing")
def an_atomic_row_is_missing(record: Record) -> None:
    record.marks = record.marks[1:]


@finds("atomic rows", "are too many")
def an_atomic_row_is_there_twice(record: Record) -> None:
    record.marks = [*record.marks, record.marks[0]]


@finds("atomic rows", "is failed")
def an_atomic_row_of_a_failed_try_is_there(record: Record) -> None:
    failed = next(a for a in attempts(record, WALKED, "book") if a.state == "failed")
    row = Mark(failed.run_id, failed.step, failed.visit, failed.pk)
    record.marks = [*record.marks, row]


@finds("side journal", "done 0 times")
def a_committed_step_was_not_done(record: Record) -> None:
    noted = str(attempts(record, WALKED, "note")[0].pk)
    record.lines = [line for line in record.lines if line != ("done", noted)]


@finds("side journal", "begun 2 times")
def a_committed_attempt_was_made_twice(record: Record) -> None:
    noted = str(attempts(record, WALKED, "note")[0].pk)
    record.lines = [*record.lines, ("begun", noted)]


@finds("side journal", "of an attempt that is not on record")
def somebody_worked_who_is_not_on_record(record: Record) -> None:
    record.lines = [*record.lines, ("begun", str(uuid4()))]


@finds("audit", "entry 3 of the audit record")
def the_audit_record_was_changed(record: Record) -> None:
    record.broken_entry = 3


@finds("hearing", "took no run any more")
def a_worker_is_deaf(record: Record) -> None:
    record.performance.deaf = ["worker-1 took no run any more; see worker-1.log"]


@finds("processes", "step.crashed: KeyError")
def an_error_was_logged(record: Record) -> None:
    record.troubles = [Trouble("worker-1.log", "step.crashed", "KeyError: 1")]


@finds("processes", "ended by itself")
def a_worker_ended_by_itself(record: Record) -> None:
    record.performance.mishaps = ["worker-1 ended by itself with code 1"]


# --- what excuses -----------------------------------------------------------------------------


def test_a_loss_is_excused_by_a_blow_on_its_worker(record: Record) -> None:
    lost = attempts(record, WALKED)[3]
    lost.state, lost.output_form = "lost", None
    strike = Strike("worker", "killed", lost.claimed_at, None, record.workers[lost.worker])
    record.performance.strikes = strikes_of([strike], 3.0)
    assert "losses" not in {breach.check for breach in examine(record)}


def test_an_unknown_outcome_is_excused_by_a_blow_on_the_destination(record: Record) -> None:
    sent = sends(record, TOLD)[0]
    sent.state = "unknown"
    strike = Strike("destination", "killed", sent.started_at, sent.started_at + SECOND)
    record.performance.strikes = strikes_of([strike], 3.0)
    assert "unknown" not in {breach.check for breach in examine(record)}


def test_a_request_of_which_the_head_alone_arrived_is_no_other_request(record: Record) -> None:
    entry = next(e for e in record.journal if e.attempt == str(sends(record, PAID)[1].pk))
    cut = dataclasses.replace(entry, body=b"", done="nothing", status=400, effect=None)
    record.journal = [*record.journal, cut]
    assert "one key" not in {breach.check for breach in examine(record)}


def test_a_run_is_named_with_its_number_and_its_id(record: Record) -> None:
    run = run_no(record, WALKED)
    assert record.name(run) == f"run {run.pk} (torture.walk, no. 1)"
    assert "does not exist" in record.name(UUID(int=0))
