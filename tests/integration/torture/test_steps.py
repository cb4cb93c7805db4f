"""Attempts, the way through the graph, and children."""

from __future__ import annotations

import copy
from uuid import uuid4

from romulus_site.torture.record import Record, Unreadable
from romulus_site.torture.strikes import Strike, strikes_of
from tests.integration.torture.breaking import (
    BROKEN,
    FAMILY,
    GROUP,
    HELD,
    PAID,
    SECOND,
    STRICT,
    WALKED,
    Break,
    attempts,
    each_break,
    ensure_found,
    finds,
    run_no,
    without,
)
from workflows.models import Run

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


@each_break(__name__)
def test_what_is_broken_is_found(record: Record, check: str, words: str, do: Break) -> None:
    ensure_found(record, check, words, do)
