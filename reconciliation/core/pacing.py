"""The arithmetic of asking a provider at its pace: how far apart, how late at most, how long not.

All questions about operations whose outcome is open share the provider's pace, whichever worker
asks them. Each gets a turn; the turns lie apart as far as the rate says. A turn is never so late
that the question would be of no use: whatever ends soon is asked about before its turn.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciliation.core.contracts import Contract
from reconciliation.core.facts import Facts
from reconciliation.core.protection import closes_at, time_is_up_at, why_unguarded

# A turn that was missed by more is taken anew: after an hour without workers not all ask at once.
MISSED = timedelta(seconds=2)
# For the sweep to come by, and the answer to be read, before what ends is over.
ROOM = timedelta(seconds=5)
# A provider that was asked too often and does not say for how long it wants to be left alone.
UNSAID_PAUSE = timedelta(seconds=5)
# One answer keeps a provider's other operations waiting no longer.
LONGEST_PAUSE = timedelta(minutes=5)


def rate_of(own: float, contract: Contract) -> float:
    """How many questions a second: never more than is set here, nor than is documented."""
    rule = contract.look_up
    return min(own, rule.rate.per_second) if rule is not None and rule.rate is not None else own


def spacing(own: float, contract: Contract, questions: int) -> timedelta:
    """How long `questions` of one turn keep the next turn waiting."""
    return timedelta(seconds=questions / rate_of(own, contract))


def questions_of_look_up(contract: Contract) -> int:
    """A record that is found is checked in the same go, where the contract has that."""
    return 2 if contract.verifies else 1


def last_moment(facts: Facts, now: datetime) -> datetime | None:
    """The latest at which a look-up is still of full use: what it finds can be followed before the
    key's protection, or the time for finding proof, is over. None: neither ends."""
    closes = closes_at(facts) if why_unguarded(facts, now) is None else None
    ends = [end for end in (closes, time_is_up_at(facts)) if end is not None]
    return min(ends) - facts.contract.timeout - ROOM if ends else None


def turn_within(turn: datetime, last: datetime | None) -> datetime:
    return turn if last is None else min(turn, last)


def pause_for(retry_after_seconds: float | None) -> timedelta:
    """How long nothing is asked of a provider that said it was asked too often."""
    if not retry_after_seconds:
        return UNSAID_PAUSE
    return min(timedelta(seconds=retry_after_seconds), LONGEST_PAUSE)
