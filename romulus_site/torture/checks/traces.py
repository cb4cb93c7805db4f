"""What was left behind beside the rows: atomic rows, the side journal, the audit record, logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from uuid import UUID

from romulus_site.torture.checks.walks import is_passage
from romulus_site.torture.flows import JOTTING, MARKING
from romulus_site.torture.record import Record


def marks(record: Record) -> Iterator[str]:
    """The rows of an atomic step are there if and only if its attempt was committed, and once."""
    should = Counter(
        (attempt.run_id, attempt.step, attempt.visit, attempt.pk)
        for attempt in record.attempts
        if attempt.step in MARKING and is_passage(attempt)
    )
    found = Counter((mark.run, mark.step, mark.visit, mark.attempt) for mark in record.marks)
    for key, number in (should - found).items():
        run, step, visit, attempt = key
        yield (
            f"{record.name(run)}: attempt {attempt} has committed {step}, visit {visit}, "
            f"and {number} of its rows are missing"
        )
    for key, number in (found - should).items():
        run, step, visit, attempt = key
        state = record.attempt_of[attempt].state if attempt in record.attempt_of else "not there"
        yield (
            f"{record.name(run)}: {number} rows of {step}, visit {visit}, are too many: attempt "
            f"{attempt} is {state}"
        )


def lines(record: Record) -> Iterator[str]:
    """A committed attempt has done its work, all of it and once; and whoever began is on record."""
    counts = Counter(record.lines)
    for attempt in record.attempts:
        if attempt.step in JOTTING and is_passage(attempt):
            begun, done = counts["begun", str(attempt.pk)], counts["done", str(attempt.pk)]
            if (begun, done) != (1, 1):
                yield (
                    f"{record.name(attempt.run_id)}: attempt {attempt.pk} has committed "
                    f"{attempt.step}; the journal says begun {begun} times, done {done} times"
                )
    for word, text in counts:
        try:
            known = UUID(text) in record.attempt_of
        except ValueError:
            known = False
        if not known:
            yield f"the journal has a line {word} {text!r}, of an attempt that is not on record"


def audit(record: Record) -> Iterator[str]:
    if record.broken_entry is not None:
        yield f"entry {record.broken_entry} of the audit record does not fit the one before it"


def hearing(record: Record) -> Iterator[str]:
    yield from record.performance.deaf


def logs(record: Record) -> Iterator[str]:
    yield from record.performance.mishaps
    for trouble in record.troubles:
        yield f"{trouble.log}: {trouble.event or 'a traceback'}: {trouble.error}"
