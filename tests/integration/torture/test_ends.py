"""How runs ended, and what people stopped."""

from __future__ import annotations

import copy
from uuid import uuid4

from romulus_site.torture.errands import Pause
from romulus_site.torture.plan import Errand
from romulus_site.torture.record import Record
from romulus_site.torture.rest import Restless
from tests.integration.torture.breaking import (
    DOOMED,
    FAMILY,
    GROUP,
    HELD,
    RENTED,
    SECOND,
    TOLD,
    WALKED,
    Break,
    attempts,
    each_break,
    ensure_found,
    finds,
    hold_of,
    run_no,
    without,
)
from tests.peaceful import TO_CANCEL

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


@each_break(__name__)
def test_what_is_broken_is_found(record: Record, check: str, words: str, do: Break) -> None:
    ensure_found(record, check, words, do)
