"""Breaking one thing in the record of a torture, and finding what to break.

What a test module marks with `finds` it must be told of by that check, in those words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from reconciliation.models import Hold, Operation, Transmission
from romulus_site.torture.checks import examine
from romulus_site.torture.record import Record
from workflows.models import Attempt, Run

SECOND = timedelta(seconds=1)

Break = Callable[[Record], None]
_breaks: dict[str, list[Any]] = defaultdict(list)


def finds(check: str, words: str) -> Callable[[Break], Break]:
    """What is broken by this is found by `check`, in these `words`."""

    def add(do: Break) -> Break:
        _breaks[do.__module__].append(pytest.param(check, words, do, id=do.__name__))
        return do

    return add


def each_break(module: str) -> Any:
    """Give a test every break of its module."""
    return pytest.mark.parametrize(("check", "words", "do"), _breaks[module])


def checks_broken() -> set[str]:
    return {case.values[0] for cases in _breaks.values() for case in cases}


def ensure_found(record: Record, check: str, words: str, do: Break) -> None:
    do(record)
    found = [breach.message for breach in examine(record) if breach.check == check]
    assert any(words in message for message in found), found


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


def hold_of(record: Record, number: int) -> Hold:
    run = record.performance.started[number]
    return next(hold for hold in record.holds if hold.run_id == run)
