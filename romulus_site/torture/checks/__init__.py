"""The promises, row by row: a list of named checks, each of which says what it finds broken.

A check reads the record and yields a sentence for each breach. It takes no excuse but what the plan
and the strikes explain: a lost answer has its fault, a lost worker its blow.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from romulus_site.torture.checks import (
    attempts,
    children,
    effects,
    ends,
    events,
    held,
    ledger,
    outputs,
    stops,
    traces,
    walks,
)
from romulus_site.torture.record import Record
from workflows.core.words import describe

Find = Callable[[Record], Iterator[str]]


@dataclass(frozen=True)
class Check:
    """One promise that is checked; `says` is what holds when nothing is found."""

    name: str
    says: str
    find: Find


@dataclass(frozen=True)
class Breach:
    """What a check has found."""

    check: str
    message: str


CHECKS = (
    Check("started once", "every planned run was started, and once", ends.started_once),
    Check("at rest", "every run is over, or held, or waits for one that is held", ends.at_rest),
    Check("one end", "a run has ended once, and nothing moved it after", ends.one_end),
    Check("expected end", "each run has the end that its plan or a blow explains", ends.expected),
    Check("held", "a held run has one open hold, and an open hold a held run", ends.held),
    Check("no lease", "nothing runs, and nobody holds a lease", attempts.none_left),
    Check("fences", "fences grow by one, and each was given out once", attempts.fences),
    Check("no overlap", "two attempts of one run do not overlap", attempts.no_overlap),
    Check("tries", "the tries of each step are counted without a gap", attempts.tries),
    Check("losses", "a lost attempt has lost its worker or its database", attempts.losses),
    Check("walk", "what was committed walks the graph, each step once a visit", walks.walk),
    Check("outputs", "every output is there, and is what its step gives", outputs.right),
    Check("purges", "what was purged was past its time", outputs.purged),
    Check("children once", "children were started once, and in their places", children.once),
    Check("children seen", "every end of a child was seen by its parent", children.seen),
    Check("joins", "a parent went on when its join allows it", children.joins),
    Check("cancelled", "what was cancelled committed nothing after", stops.cancelled),
    Check("paused", "while it was paused nothing of it began", stops.paused),
    Check("delivered", "every event that was sent is kept once, its copies counted", events.sent),
    Check("waits", "a wait got its event if it came in time, else its deadline", events.decided),
    Check("taken once", "an event was taken once, by a wait that it is for, or kept", events.taken),
    Check("none waits", "no wait is open whose event is there", events.none_waits),
    Check("transmissions", "sends are numbered, ended, and those of an attempt", ledger.sends),
    Check("unknown", "an outcome is unknown only where its answer was lost", ledger.unknown),
    Check("no blind repeat", "nothing without a key is repeated", ledger.no_blind_repeat),
    Check("settled", "past a write its operation is verified, or was decided", ledger.settled),
    Check("evidence", "what is verified, rejected or abandoned is so for a reason", ledger.proofs),
    Check("as modelled", "held is what the model says only a person settles", held.as_modelled),
    Check("one effect", "an operation has one effect at most", effects.one_at_most),
    Check("truth", "the ledger says of effects what the destination has", effects.truth),
    Check("one key", "one key carried the same bytes each time", effects.one_key),
    Check("nothing unknown", "the destination got nothing that is not on record", effects.known),
    Check("atomic rows", "atomic rows are those of committed attempts", traces.marks),
    Check("side journal", "what committed was done; what was not counts nowhere", traces.lines),
    Check("audit", "the audit record is one whole chain", traces.audit),
    Check("hearing", "every worker that has lived through it takes runs", traces.hearing),
    Check("processes", "no process ended, and no error was logged, without a blow", traces.logs),
)


def examine(record: Record) -> list[Breach]:
    """Make every check; return what they have found."""
    return [breach for check in CHECKS for breach in made(check, record)]


def made(check: Check, record: Record) -> Iterator[Breach]:
    """What one check finds. Rows that it cannot make sense of are a finding, not its end."""
    try:
        for message in check.find(record):
            yield Breach(check.name, message)
    except Exception as error:  # noqa: BLE001 (the others are still to be made)
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        yield Breach(check.name, f"the record makes no sense at {where}: {describe(error)}")
