"""Who may do what about one held case, and when it takes two people. Pure: rights come in as facts.

Nobody decides alone what they proposed, and nobody decides at all what they started or approved.
The sentences are for people; an empty one means that they may.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from reconciliation.core.facts import Facts
from reconciliation.core.states import DecisionKind, EvidenceKind

NOT_YOURS = "You may look at this case, and its queue's owners decide it."
MAY_NOT = "may not decide"
NOT_SECOND = "You may look at this case, and not confirm what others propose."
STARTED = "You started this run, so somebody else decides."
APPROVED = "You approved this write, so somebody else decides what became of it."
PROPOSED = "You proposed this, so somebody else confirms."
NOT_PROPOSED = "Only who proposed it may take it back; others confirm or refuse it."

# What the provider said longer ago may have changed since.
FRESH = timedelta(minutes=15)


@dataclass(frozen=True)
class Standing:
    """How one person stands to one held case.

    Attributes:
        decides, seconds: the rights `decide` and `second` on its queue.
        started: they started its run, or the run that started it.
        proposed: the proposal that is open is theirs.
        approved: they approved the write that is held, before it was sent.
    """

    decides: bool
    seconds: bool
    started: bool = False
    proposed: bool = False
    approved: bool = False

    @property
    def why_not_impartial(self) -> str:
        return why_not_impartial(self.started, self.approved)


def why_not_impartial(started: bool, approved: bool) -> str:
    """What bars somebody whatever their rights; empty when nothing does."""
    if started:
        return STARTED
    return APPROVED if approved else ""


def bar_in_words(decides: bool, started: bool, approved: bool) -> str:
    """What bars somebody from deciding, as others read it behind their name; empty: nothing."""
    if not decides:
        return MAY_NOT
    why = "started it" if started else "approved it" if approved else ""
    return f"{why} and {MAY_NOT}" if why else ""


def why_not_decide(standing: Standing) -> str:
    """Why this person may neither decide nor propose."""
    if not standing.decides:
        return NOT_YOURS
    return standing.why_not_impartial


def why_not_confirm(standing: Standing) -> str:
    """Why this person may neither confirm nor refuse the open proposal."""
    if standing.proposed:
        return PROPOSED
    if not standing.seconds:
        return NOT_SECOND
    return standing.why_not_impartial


def why_not_withdraw(standing: Standing) -> str:
    """Taking back what one proposed takes no right that could have been lost since."""
    return "" if standing.proposed else NOT_PROPOSED


def takes_two(
    kind: DecisionKind, people: int, second_from: Decimal | None, amount: Decimal | None
) -> bool:
    """Whether a decision needs a second person.

    Args:
        people: how many the queue asks for.
        second_from: the amount from which the queue asks for two, in the operation's currency.
    """
    if kind in (DecisionKind.KEEP_HOLDING, DecisionKind.CORRECTION):
        return False  # nothing moves by it
    if people > 1:
        return True
    return amount is not None and abs(amount) >= two_from(people, second_from)


def two_from(people: int, second_from: Decimal | None) -> Decimal:
    """The amount from which a queue asks for two people; the arguments are as for `takes_two`."""
    if people > 1:
        return Decimal(0)
    return Decimal("Infinity") if second_from is None else second_from


RESTS_ON_EVIDENCE = frozenset(
    {DecisionKind.APPLIED, DecisionKind.SEND_AGAIN, DecisionKind.REPLACE, DecisionKind.UNDO}
)
SAID_BY_PROVIDER = frozenset(EvidenceKind) - {EvidenceKind.OPERATOR}


def must_ask_first(kind: DecisionKind, facts: Facts, now: datetime) -> bool:
    """Whether the provider must be asked again before `kind`: it can be, and what it said last is
    older than `FRESH`. That it could not be asked counts as asked."""
    if kind not in RESTS_ON_EVIDENCE or not facts.sent or facts.state.is_settled:
        return False
    if facts.contract.look_up is None or facts.elsewhere:
        return False
    last = last_said(facts)
    return last is None or now - last > FRESH


def last_said(facts: Facts) -> datetime | None:
    """When the provider last said something, or could not be asked."""
    said = [known.observed_at for known in facts.known if known.kind in SAID_BY_PROVIDER]
    return max(said, default=None)
