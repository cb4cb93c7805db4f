"""What was left beside the rows: marks, journals, the audit record, processes."""

from __future__ import annotations

from uuid import uuid4

from romulus_site.torture.logs import Trouble
from romulus_site.torture.record import Mark, Record
from tests.integration.torture.breaking import (
    WALKED,
    Break,
    attempts,
    each_break,
    ensure_found,
    finds,
)

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


@each_break(__name__)
def test_what_is_broken_is_found(record: Record, check: str, words: str, do: Break) -> None:
    ensure_found(record, check, words, do)
