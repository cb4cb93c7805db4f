"""What the steps have left: there, readable, and what each gives for its input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

from romulus_site.torture import answers
from romulus_site.torture.checks.walks import is_passage
from romulus_site.torture.flows import RETAIN
from romulus_site.torture.record import Record, Unreadable
from romulus_site.torture.scene import SOURCE
from workflows.core.states import RunState
from workflows.models import Attempt, Event, Run

# Between two answers of one clock, in one statement and the next.
GRAIN = timedelta(milliseconds=1)
SHOWN = 80  # characters of an output


def right(record: Record) -> Iterator[str]:
    for attempt in record.attempts:
        if not is_passage(attempt) or attempt.purged_at is not None:
            continue
        run = record.run_of[attempt.run_id]
        found = record.outputs.get(attempt.pk)
        if isinstance(found, Unreadable):
            yield f"{record.name(run)}: the output of {attempt.step} cannot be read: {found.why}"
            continue
        wrong = OF_STEP[attempt.step](record, run, attempt, found)
        if wrong:
            yield (
                f"{record.name(run)}: the output of {attempt.step}, visit {attempt.visit}, is "
                f"{str(found)[:SHOWN]!r}, and it should be {wrong[:SHOWN]}"
            )


def purged(record: Record) -> Iterator[str]:
    for attempt in record.attempts:
        if attempt.purged_at is None:
            continue
        finished = record.run_of[attempt.run_id].finished_at
        if finished is None or finished + RETAIN > attempt.purged_at:
            yield (
                f"{record.name(attempt.run_id)}: the output of {attempt.step} was purged at "
                f"{attempt.purged_at}, and the run ended at {finished}"
            )


# --- what each should be ----------------------------------------------------------------------

Expect = Callable[[Record, Run, Attempt, Any], str]
"""What an output should be, in words, when it is not; empty when it is."""


def computed(function: Callable[[answers.Input, int], Any]) -> Expect:
    def expect(_: Record, run: Run, attempt: Attempt, found: Any) -> str:
        should = function(run.input, attempt.visit)
        return "" if found == should else repr(should)

    return expect


def of_input(function: Callable[[answers.Input], Any]) -> Expect:
    return computed(lambda given, _: function(given))


def noted(_: Record, run: Run, attempt: Attempt, found: Any) -> str:
    """Its own attempt and no other: what an attempt did that was not committed is not counted."""
    should = {"attempt": str(attempt.pk), "value": answers.note(run.input, attempt.visit)}
    return "" if found == should else repr(should)


def slept(record: Record, run: Run, attempt: Attempt, found: Any) -> str:
    """The moment that it slept until: reckoned from its first try, and past when it went on."""
    of_step = [each for each in record.attempts_of[run.pk] if each.step == attempt.step]
    earliest = of_step[0].claimed_at + timedelta(seconds=run.input["nap"])
    until = datetime.fromisoformat(found)
    if earliest - GRAIN <= until <= attempt.ended_at:
        return ""
    return f"from {earliest} to {attempt.ended_at}"


def written(record: Record, run: Run, attempt: Attempt, found: Any) -> str:
    for operation in record.operations_of.get(run.pk, []):
        if (operation.step, operation.visit) == (attempt.step, attempt.visit):
            should = {"operation": str(operation.pk), "resource": operation.resource}
            return "" if found == should else repr(should)
    return "the receipt of an operation, and there is none"


def answered(record: Record, run: Run, attempt: Attempt, found: Any) -> str:
    """The event that its wait got; nothing where it got none."""
    events = events_at(record, run, attempt.step, attempt.visit)
    if not events:
        return "" if found is None else "nothing: its wait got no event"
    (event,) = events
    should = {
        "id": str(event.pk),
        "event_id": event.event_id,
        "type": event.type,
        "correlation": event.correlation,
        "source": SOURCE,
        "payload": answers.event_body(
            run.input["n"], event.event_id or "", event.type, event.correlation
        ),
    }
    told = {name: value for name, value in (found or {}).items() if name != "received_at"}
    if told != should or datetime.fromisoformat(found["received_at"]) != event.received_at:
        return repr(should)
    return ""


def events_at(record: Record, run: Run, step: str, visit: int) -> list[Event]:
    return [
        event
        for wait in record.waits_of.get(run.pk, [])
        if (wait.step, wait.visit) == (step, visit)
        for event in record.got_by.get(wait.pk, [])
    ]


def taken_in(record: Record, run: Run, attempt: Attempt, found: Any) -> str:
    """What the event brought; at the other way that nothing came."""
    events = events_at(record, run, "answered", 1)
    event_id = events[0].event_id if events else ""
    value = answers.payload(run.input["n"])["value"] if events else 0
    should = {"attempt": str(attempt.pk), "event_id": event_id, "value": value}
    return "" if found == should else repr(should)


def resource_of(record: Record, run: Run, attempt: Attempt) -> str:
    """The resource of the write before it, in the same round."""
    operations = record.operations_of.get(run.pk, [])
    return next((each.resource for each in operations if each.visit == attempt.visit), "")


def receipted(record: Record, run: Run, attempt: Attempt, found: Any) -> str:
    should = {"attempt": str(attempt.pk), "resource": resource_of(record, run, attempt)}
    return "" if found == should else repr(should)


def entered(record: Record, run: Run, attempt: Attempt, found: Any) -> str:
    should = resource_of(record, run, attempt)
    return "" if found == should else repr(should)


def ends(record: Record, run: Run, attempt: Attempt, found: Any) -> str:
    """How the children ended, in their order: whoever is said to be over has ended so."""
    children = sorted(
        (
            child
            for child in record.children_of.get(run.pk, [])
            if (child.parent_step, child.parent_visit) == (attempt.step, attempt.visit)
        ),
        key=lambda child: child.parent_index or 0,
    )
    if [end["run"] for end in found] != [str(child.pk) for child in children]:
        return f"the ends of {[str(child.pk) for child in children]}"
    for end, child in zip(found, children, strict=True):
        final = RunState(end["state"]).is_final
        should = (child.state, result_of(record, child)) if final else (end["state"], None)
        if (end["state"], end["result"]) != should:
            return f"for child {child.pk} {should}"
    return ""


def result_of(record: Record, run: Run) -> Any:
    if run.state != RunState.COMPLETED:
        return None
    passages = [each for each in record.attempts_of.get(run.pk, []) if is_passage(each)]
    return record.outputs.get(passages[-1].pk) if passages else None


def summed(step: str, key: Callable[[dict[str, Any]], int]) -> Expect:
    """The sum over the children that are said to have completed."""

    def expect(record: Record, run: Run, _: Attempt, found: Any) -> str:
        listed = output_of(record, run, step)
        should = sum(key(end) for end in listed or [] if end["state"] == RunState.COMPLETED)
        return "" if found == should else repr(should)

    return expect


def output_of(record: Record, run: Run, step: str) -> Any:
    passages = [
        each for each in record.attempts_of[run.pk] if each.step == step and is_passage(each)
    ]
    return record.outputs.get(passages[-1].pk) if passages else None


def of_result(end: dict[str, Any]) -> int:
    return int(end["result"])


OF_STEP: dict[str, Expect] = {
    "begin": of_input(answers.begin),
    "note": noted,
    "book": computed(answers.book),
    "again": computed(answers.again),
    "rest": slept,
    "fill": of_input(answers.fill),
    "whisper": of_input(answers.whisper),
    "add_up": of_input(answers.add_up),
    "grow": noted,
    "ripen": slept,
    "fall": of_input(answers.fall),
    "raise_all": ends,
    "count": summed("raise_all", of_result),
    "race": ends,
    "crown": summed("race", lambda _: 1),
    "all_or_none": ends,
    "praise": summed("all_or_none", of_result),
    "split": of_input(answers.begin),
    "pack": noted,
    "bill": of_input(answers.bill),
    "post": of_input(lambda given: answers.bill(given) + 1),
    "side_by_side": ends,
    "join": of_input(lambda given: answers.note(given, 1) + answers.bill(given) + 1),
    "bargain": noted,
    "refund": written,
    "receipt": receipted,
    "more": computed(answers.more),
    "machine": written,
    "enter": entered,
    "comment": written,
    "close": receipted,
    "pose": noted,
    "answered": answered,
    "take_in": taken_in,
    "go_without": taken_in,
}
