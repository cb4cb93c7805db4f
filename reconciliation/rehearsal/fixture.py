"""The smallest rehearsal: what a lost answer does, with the standard library alone.

    python -m reconciliation.rehearsal.fixture

A destination in memory, a sender whose answers are lost, and the rules that keep one intended
effect one effect. No Django, no network, no other package; Python 3.10 and later. It prints what
happens in each case, and ends with an error if one does not come out as it must.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum


class Lost(Exception):
    """No answer came: applied or not, the sender cannot tell."""


class Away(Exception):
    """The destination cannot be asked."""


class Mismatch(Exception):
    """The key came with other parameters: refused, and nothing was done."""


@dataclass(frozen=True)
class Receipt:
    """What the destination answers: the resource, and what was asked for."""

    resource: str
    operation: str
    parameters: tuple[tuple[str, str], ...]


@dataclass
class Destination:
    """Keeps keys and shows its records, as a careful provider does.

    Attributes:
        loses: what becomes of the next answers: "after" the effect, or "before" it.
        away: whether it can be asked nothing.
    """

    effects: list[Receipt] = field(default_factory=list)
    keys: dict[str, Receipt] = field(default_factory=dict)
    requests: int = 0
    loses: list[str] = field(default_factory=list)
    away: bool = False

    def write(self, key: str, operation: str, **parameters: str) -> Receipt:
        """Make the effect, or give back what the key has made. Raises `Lost`, `Mismatch`."""
        self.requests += 1
        lost = self.loses.pop(0) if self.loses else ""
        if lost == "before":
            raise Lost
        asked = tuple(sorted(parameters.items()))
        receipt = self.keys.get(key)
        if receipt is None:
            receipt = Receipt(f"r_{len(self.effects) + 1}", operation, asked)
            self.effects.append(receipt)
            self.keys[key] = receipt
        elif receipt.parameters != asked:
            raise Mismatch
        if lost == "after":
            raise Lost
        return receipt

    def look_up(self, operation: str) -> list[Receipt]:
        """Return the records that carry `operation`. Raises `Away`."""
        if self.away:
            raise Away
        return [receipt for receipt in self.effects if receipt.operation == operation]


class Outcome(Enum):
    """How an operation stands: an outcome that is not proven is never called a failure."""

    SETTLED = "settled"
    HELD = "held for a person"


@dataclass(frozen=True)
class Settled:
    """What came of an operation, and why."""

    outcome: Outcome
    why: str
    receipt: Receipt | None = None


def settle(
    destination: Destination, operation: str, key: str, *, replays: bool, **parameters: str
) -> Settled:
    """Send once, then find out. `replays`: the contract lets the same key be sent again."""
    try:
        return Settled(Outcome.SETTLED, "answered", destination.write(key, operation, **parameters))
    except Mismatch:
        return Settled(Outcome.HELD, "the key is known with other parameters")
    except Lost:
        pass
    if replays:
        receipt = destination.write(key, operation, **parameters)
        return Settled(Outcome.SETTLED, "sent again under the same key", receipt)
    return looked_up(destination, operation, tuple(sorted(parameters.items())))


def looked_up(
    destination: Destination, operation: str, parameters: tuple[tuple[str, str], ...]
) -> Settled:
    """Ask what became of it. Finding nothing proves nothing; another record is no proof either."""
    try:
        found = destination.look_up(operation)
    except Away:
        return Settled(Outcome.HELD, "the destination cannot be asked")
    if not found:
        return Settled(Outcome.HELD, "no record, which proves nothing")
    if len(found) > 1 or found[0].parameters != parameters:
        return Settled(Outcome.HELD, "the record is not what was meant")
    return Settled(Outcome.SETTLED, "the record carries the operation", found[0])


# --- the cases ----------------------------------------------------------------------------------

AMOUNT = {"order": "ORD-7001", "amount": "125.00"}


def same_key_gives_the_first_receipt() -> str:
    """The same key returns the first receipt"""
    there = Destination(loses=["after"])
    settled = settle(there, "op-1", "key-1", replays=True, **AMOUNT)
    again = there.write("key-1", "op-1", **AMOUNT)
    expect(settled.outcome is Outcome.SETTLED, "the replay settles it")
    expect(again == settled.receipt, "every repeat gets the first receipt")
    expect((there.requests, len(there.effects)) == (3, 1), "three requests, one effect")
    return f"3 requests, 1 effect, {again.resource} each time"


def changed_parameters_fail() -> str:
    """Changed parameters under the key fail"""
    there = Destination()
    there.write("key-1", "op-1", **AMOUNT)
    changed = settle(there, "op-1", "key-1", replays=True, order="ORD-7001", amount="126.00")
    expect(changed.outcome is Outcome.HELD, "it is held, never sent under another key")
    expect(len(there.effects) == 1, "nothing was done for the changed request")
    return f"held: {changed.why}; 1 effect"


def new_key_makes_a_second_effect() -> str:
    """A new key makes a second effect: the mistake that is never made"""
    there = Destination(loses=["after"])
    try:
        there.write("key-1", "op-1", **AMOUNT)
    except Lost:
        there.write("key-2", "op-1", **AMOUNT)
    doubled = len(there.effects) > 1
    expect(doubled, "a fresh key for each try doubles the effect")
    return "2 effects where 1 was meant"


def never_arrived_is_sent_again() -> str:
    """What never arrived is sent again under the same key"""
    there = Destination(loses=["before"])
    settled = settle(there, "op-1", "key-1", replays=True, **AMOUNT)
    expect(settled.outcome is Outcome.SETTLED, "the replay makes the effect")
    expect((there.requests, len(there.effects)) == (2, 1), "two requests, one effect")
    return "2 requests, 1 effect"


def look_up_settles() -> str:
    """Without a key, a record that carries the operation settles it"""
    there = Destination(loses=["after"])
    settled = settle(there, "op-1", "key-1", replays=False, **AMOUNT)
    expect(settled.outcome is Outcome.SETTLED, "the look-up finds it")
    expect((there.requests, len(there.effects)) == (1, 1), "nothing was sent again")
    return f"settled: {settled.why}; 1 request, 1 effect"


def look_up_away_holds() -> str:
    """Look-up away: held"""
    there = Destination(loses=["after"], away=True)
    settled = settle(there, "op-1", "key-1", replays=False, **AMOUNT)
    expect(settled.outcome is Outcome.HELD, "it is held")
    expect((there.requests, len(there.effects)) == (1, 1), "nothing was sent again")
    return f"held: {settled.why}; 1 request"


def absence_holds() -> str:
    """Finding nothing proves nothing: held"""
    there = Destination(loses=["before"])
    settled = settle(there, "op-1", "key-1", replays=False, **AMOUNT)
    expect(settled.outcome is Outcome.HELD, "it is held")
    expect((there.requests, len(there.effects)) == (1, 0), "nothing was sent again")
    return f"held: {settled.why}; 1 request"


def mismatched_record_holds() -> str:
    """A record that is not what was meant: held"""
    there = Destination(loses=["before"])
    there.effects.append(Receipt("r_1", "op-1", (("amount", "1.00"), ("order", "ORD-7001"))))
    settled = settle(there, "op-1", "key-1", replays=False, **AMOUNT)
    expect(settled.outcome is Outcome.HELD, "it is held")
    expect(there.requests == 1, "nothing was sent again")
    return f"held: {settled.why}"


CASES: tuple[Callable[[], str], ...] = (
    same_key_gives_the_first_receipt,
    changed_parameters_fail,
    new_key_makes_a_second_effect,
    never_arrived_is_sent_again,
    look_up_settles,
    look_up_away_holds,
    absence_holds,
    mismatched_record_holds,
)


def expect(holds: bool, what: str) -> None:
    """Raise `AssertionError`, also where Python was told to leave assertions out."""
    if not holds:
        raise AssertionError(what)


def main() -> int:
    """Run every case; return the exit code, 1 when one did not come out as it must."""
    failed = 0
    for case in CASES:
        title = (case.__doc__ or case.__name__).strip()
        try:
            line = f"ok      {title}\n        {case()}\n"
        except AssertionError as error:
            failed += 1
            line = f"FAILED  {title}\n        not so: {error}\n"
        sys.stdout.write(line)
    sys.stdout.write(f"{len(CASES) - failed} of {len(CASES)} cases came out as they must\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
