"""How each run ended, beside how its plan says that it ends.

Another end than the planned one needs its excuse, and each excuse is looked up: somebody cancelled
it, decided about it, or the worker that sent its write was struck while it did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from reconciliation.core.facts import CONFLICT_LATER
from reconciliation.core.states import DecisionKind, HoldState
from reconciliation.models import Hold, Operation
from romulus_site.torture.checks.ledger import is_struck, lost_answers, met_fault
from romulus_site.torture.faults import COMPLETED, FAILED
from romulus_site.torture.plan import ROLL_CALL, PlannedRun
from romulus_site.torture.record import Record
from workflows.core.retry import MAX_LOST_ATTEMPTS
from workflows.core.states import FINAL_RUN_STATES, AttemptState, RunState
from workflows.models import Run

CANCELLED = "cancelled"
# Of operations whose answer was lost, by personality: why they may be held.
LOST = {
    "keyed": {"budget_spent"},
    "lookup": {"absence_not_proof", "look_up_unavailable"},
    "blind": {"unguarded"},
}
EARLY_JOINS = {"race", "all_or_none"}


def started_once(record: Record) -> Iterator[str]:
    keys = Counter(run.start_key for run in record.runs if run.parent_id is None)
    for planned in record.plan.runs:
        if keys[planned.key] != 1:
            yield f"run no. {planned.number} was started {keys[planned.key]} times"
    wanted = {planned.key for planned in record.plan.runs}
    for key in keys.keys() - wanted:
        if key is not None and key.startswith(ROLL_CALL):
            continue
        yield f"a run with start key {key!r} is there, and nobody started it"


def at_rest(record: Record) -> Iterator[str]:
    for stuck in record.performance.stuck:
        yield f"{record.name(stuck.run)} is {stuck.state} at {stuck.step}: {stuck.why}"


def one_end(record: Record) -> Iterator[str]:
    for run in record.runs:
        final = RunState(run.state) in FINAL_RUN_STATES
        if final != (run.finished_at is not None):
            yield f"{record.name(run)} is {run.state}, and finished_at is {run.finished_at}"
        if run.finished_at is None:
            continue
        attempts = record.attempts_of.get(run.pk, [])
        for attempt in attempts:
            late = attempt.ended_at > run.finished_at and attempt.state == AttemptState.COMMITTED
            if late or attempt.claimed_at > run.finished_at:
                yield (
                    f"{record.name(run)} ended at {run.finished_at}, and its attempt "
                    f"{attempt.fence} {attempt.state} from {attempt.claimed_at} to "
                    f"{attempt.ended_at}"
                )
        if run.state == RunState.COMPLETED and (
            not attempts or attempts[-1].ended_at != run.finished_at
        ):
            yield f"{record.name(run)} completed, and not in the commit of its last attempt"


def held(record: Record) -> Iterator[str]:
    for run in record.runs:
        opened = [h for h in record.holds_of.get(run.pk, []) if holds_its_run(h)]
        if run.state == RunState.HELD and len(opened) != 1:
            yield f"{record.name(run)} is held, and has {len(opened)} open holds"
        if run.state != RunState.HELD and opened:
            yield f"{record.name(run)} is {run.state}, and has an open hold: {opened[0].reason}"


# --- the end that a run has, and the one that it should have ----------------------------------


def end_of(record: Record, run: Run) -> str:
    if run.state != RunState.HELD:
        return run.state
    hold = open_hold(record, run)
    return f"held:{hold.reason}" if hold else "held"


def open_hold(record: Record, run: Run) -> Hold | None:
    holds = record.holds_of.get(run.pk, [])
    return next((hold for hold in holds if holds_its_run(hold)), None)


def holds_its_run(hold: Hold) -> bool:
    """A later conflict, of what is settled, holds nothing up."""
    return hold.state == HoldState.OPEN and hold.reason != CONFLICT_LATER


def expected(record: Record) -> Iterator[str]:
    for run in record.runs:
        end, planned = end_of(record, run), planned_end(record, run)
        if end == planned and not (planned.startswith("held") and not was_met(record, run)):
            continue
        if end == CANCELLED and was_cancelled(record, run):
            continue
        complaint = excuse(record, run, end)
        if complaint:
            yield f"{record.name(run)} is {end}, and should be {planned}: {complaint}"


def planned_end(record: Record, run: Run) -> str:
    planned = record.planned.get(run.pk)
    if planned is not None:
        return planned.end
    parent = record.run_of.get(run.parent_id) if run.parent_id else None
    if parent is not None and parent.workflow == run.workflow:
        # A branch of a group; the second is to fail where one is.
        return FAILED if run.input["broken"] and run.parent_index == 1 else COMPLETED
    return FAILED if run.input.get("broken") else COMPLETED


def was_cancelled(record: Record, run: Run) -> bool:
    """Whether somebody asked for its end: a person, or the join of a parent that went on early."""
    if run.cancel_asked_at is None:
        return False
    asked = {each.run for each in record.performance.cancellations}
    if run.pk in asked:
        return True
    parent = record.run_of.get(run.parent_id) if run.parent_id else None
    if parent is None:
        return False
    return run.parent_step in EARLY_JOINS or was_cancelled(record, parent)


def excuse(record: Record, run: Run, end: str) -> str:
    """Say why `end` is not excused; empty when it is."""
    if end == "waiting":
        return waits_for_held(record, run)
    if end == "held:workers_lost":
        return lost_its_workers(record, run)
    operation = write_of(record, run)
    if operation is None:
        return "nothing that happened to it explains that"
    if end == "held:run_cancelled" and run.cancel_asked_at is not None:
        return ""
    if end.startswith("held:"):
        return held_with_cause(record, operation, end.removeprefix("held:"))
    if end in (COMPLETED, FAILED):
        return ended_otherwise(record, run, end)
    return "nothing that happened to it explains that"


def waits_for_held(record: Record, run: Run) -> str:
    children = record.children_of.get(run.pk, [])
    if any(child.state in (RunState.HELD, RunState.WAITING) for child in children):
        return ""
    return "none of its children is held"


def lost_its_workers(record: Record, run: Run) -> str:
    """That each loss had its blow is another check's; here, that there were so many."""
    lost = [
        attempt
        for attempt in record.attempts_of.get(run.pk, [])
        if (attempt.step, attempt.visit) == (run.step, run.visit)
        and attempt.state in (AttemptState.LOST, AttemptState.SUPERSEDED)
    ]
    return "" if len(lost) >= MAX_LOST_ATTEMPTS else f"it has lost {len(lost)} workers only"


def write_of(record: Record, run: Run) -> Operation | None:
    """The latest operation of a run, which its end is about."""
    operations = record.operations_of.get(run.pk, [])
    return operations[-1] if operations else None


def held_with_cause(record: Record, operation: Operation, reason: str) -> str:
    personality = record.personality_of(operation)
    if reason not in LOST[personality]:
        return f"an answer that was lost does not lead to {reason}"
    if not lost_answers(record, operation):
        return "no answer was lost"
    if reason == "absence_not_proof" and has_effect(record, operation):
        first = record.transmissions_of[operation.pk][0]
        now = record.evidence_of[operation.pk][-1].observed_at
        if not record.performance.strikes.on_look_ups(first.started_at, now):
            return "the destination has its effect, and was not blind"
    return ""


def has_effect(record: Record, operation: Operation) -> bool:
    return bool(record.effects_of.get(str(operation.pk)))


def ended_otherwise(record: Record, run: Run, end: str) -> str:
    """It was to be held or to fail, or it was to complete: somebody decided, or the worker that
    met its fault never told what was answered."""
    holds = {hold.pk for hold in record.holds_of.get(run.pk, [])}
    kinds = {row.kind for row in record.decisions if row.hold_id in holds}
    if end == FAILED:
        return "" if DecisionKind.ABANDON in kinds else "nobody has abandoned its operation"
    if DecisionKind.APPLIED in kinds:
        return ""
    of_fault = operation_of_fault(record, run)
    if of_fault is None:
        return "its fault was for a write that it never came to"
    met = [row for row in record.transmissions_of.get(of_fault.pk, []) if met_fault(record, row)]
    if not met:
        return "it has not met its fault"
    return "" if any(is_struck(record, row) for row in met) else "its fault has not held it"


def was_met(record: Record, run: Run) -> bool:
    """Whether the fault that a run is held for was met at all."""
    operation = operation_of_fault(record, run)
    sends = record.transmissions_of.get(operation.pk, []) if operation else []
    return any(met_fault(record, row) for row in sends)


def operation_of_fault(record: Record, run: Run) -> Operation | None:
    planned: PlannedRun | None = record.planned.get(run.pk)
    if planned is None:
        return None
    operations = record.operations_of.get(run.pk, [])
    return next((each for each in operations if each.visit == planned.fault_visit), None)
