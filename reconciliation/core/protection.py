"""The arithmetic of the protection window: until when a second send under the same key is safe.

The window is counted from the first transmission's start and is stored before its first byte
leaves. A repeat counts as inside it only if nothing of that repeat can still be on its way when it
ends: the key would be forgotten while the request travels, and it would be executed as new.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciliation.core.contracts import Contract
from reconciliation.core.facts import Facts, HoldReason

# What a send may overrun its own deadline by before it certainly is over: one slow system call.
IN_FLIGHT_GRACE = timedelta(seconds=1)
# A key that is kept for an hour may be forgotten in the very moment in which the hour is over.
MOMENT = timedelta(microseconds=1)
# This part of the window is left to people when only they can let a repeat go.
LEFT_TO_PEOPLE = 10


def in_flight_until(contract: Contract, started_at: datetime) -> datetime:
    """The moment after which no byte of a send can still leave or arrive."""
    return started_at + contract.timeout + IN_FLIGHT_GRACE


def closes_at(facts: Facts) -> datetime | None:
    """The last moment at which a repeat may start; None: there is no window."""
    limit = facts.replay_not_after
    return None if limit is None else limit - facts.contract.timeout - IN_FLIGHT_GRACE - MOMENT


def protects(facts: Facts, at: datetime) -> bool:
    """Whether a repeat that starts at `at` is inside the window until its end (promise P5)."""
    closes = closes_at(facts)
    return closes is not None and at <= closes


def review_at(facts: Facts) -> datetime | None:
    """When a person has to look at it, so that they can still let a repeat go."""
    closes, rule = closes_at(facts), facts.contract.replay
    return None if closes is None or rule is None else closes - rule.window / LEFT_TO_PEOPLE


def time_is_up_at(facts: Facts) -> datetime | None:
    """Until when Romulus looks for proof by itself, once something was sent; None: no limit."""
    limit = facts.contract.budget.elapsed_seconds
    if limit is None:
        return None
    began = facts.sent[0].started_at
    return max(began, facts.send_again or began) + timedelta(seconds=limit)


def why_unguarded(facts: Facts, now: datetime) -> HoldReason | None:
    """Why the key does not guard a repeat that starts now; None when it does."""
    if facts.contract.replay is None or facts.contract.key is None:
        claims_look_up = facts.contract.look_up is not None and not facts.look_up_trusted
        return HoldReason.NOT_PROVEN if claims_look_up else HoldReason.UNGUARDED
    if facts.contradicted:
        return HoldReason.CONTRACT_CONTRADICTED
    if not facts.replay_trusted:
        return HoldReason.NOT_PROVEN
    if not protects(facts, now):
        return HoldReason.WINDOW_OVER
    return None
