"""What must never be: judged in every world that may be so, and at every state of knowledge.

Beside what the destination counts, each promise about a send is asked for directly, and so is
everything that bars one: at each state of knowledge every bar is put up in turn, and the move that
follows must heed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from reconciliation.core.facts import (
    Advance,
    Dispatch,
    Drop,
    Facts,
    GiveUp,
    Hold,
    Known,
    LookUp,
    Move,
    Reject,
    Send,
    Verify,
    Wait,
    WaitReason,
)
from reconciliation.core.matching import Fit, Found, Intended
from reconciliation.core.model_best import barred_for_good, named_time
from reconciliation.core.model_nodes import MOMENT, Model, Node, Rules, left
from reconciliation.core.protection import time_is_up_at
from reconciliation.core.states import EvidenceKind, Purpose, TransmissionState

MOST_STEPS = 80  # no path is longer; one that is does not end


def wrong(model: Model, node: Node, move: Move) -> str:
    """Say what is wrong with making `move` here; empty when nothing is."""
    if any(model.destination.at_last(world).effects > 1 for world in node.belief):
        return "two effects"
    if len(node.path) > MOST_STEPS:
        return "no end"
    if is_late(node, move):
        return "went on past the time that it may take"
    match move:
        case Advance():
            return wrong_advance(model, node)
        case Reject() | Drop() if not node.known_without_effect:
            return "concluded without effect, and there is one"
        case Wait(until, reason):
            return wrong_wait(node, move) if until or reason is not WaitReason.DISPATCH else ""
        case LookUp() if node.now < named_time(node):
            return "asked before the time that the provider has named"
        case Send():
            return wrong_send(model, node)
        case _:
            return ""


def is_late(node: Node, move: Move) -> bool:
    """Whether more is done by itself, or waited for, when its outcome is not known by then."""
    if not node.was_unknown or node.is_proven or node.known_without_effect:
        return False
    up = time_is_up_at(node.facts)
    if up is None:
        return False
    until = move.until if isinstance(move, Wait) else node.now
    goes_on = isinstance(move, Send | LookUp | Wait)
    return goes_on and until is not None and (until > up or node.now >= up)


def wrong_advance(model: Model, node: Node) -> str:
    if any(world.effects != 1 for world in node.belief):
        return "went on without the effect"
    checks = [known.postcondition for known in node.facts.known if known.postcondition is not None]
    if model.contract.verifies and checks[-1:] != [True]:
        return "went on with a result that was not as it should be, or not checked"
    return ""


def wrong_wait(node: Node, move: Wait) -> str:
    return "waits for nothing" if move.until is None or move.until <= node.now else ""


def wrong_send(model: Model, node: Node) -> str:
    """What a send promises beside its number of effects (promises P3 and P5)."""
    facts, now, contract = node.facts, node.now, model.contract
    number = len(facts.sent) + 1
    unknown = [sent for sent in facts.sent if sent.state is TransmissionState.UNKNOWN]
    overlaps = contract.replay is not None and contract.replay.overlaps
    if len({model.rules.body_of(each) for each in range(1, number + 1)}) > 1:
        return "one key with two bodies"
    if barred_for_good(node) and facts.send_again is None:
        return "sent after an answer that bars it"
    if any(now < sent.in_flight_until for sent in unknown) and not overlaps:
        return "sent while one may be on its way"
    if len(left(facts)) >= contract.budget.transmissions and facts.send_again is None:
        return "sent more often than is allowed"
    if facts.sent and facts.send_again is None:
        after = facts.sent[-1].retry_after_at
        if after is not None and now < after:
            return "sent before the time that the provider has named"
    return ""


# --- what a record is taken for ---------------------------------------------------------------

OURS = Intended("ours", "acct", "eu", {"amount": "1"})
MEANT = Found("r", "ours", "acct", "eu", {"amount": "1"})
# A record, and what it is where it was looked up, and where it is the answer to our own send.
RECORDS = (
    (MEANT, Fit.MATCH, Fit.MATCH),
    (replace(MEANT, operation=None), Fit.NOT_OURS, Fit.MATCH),
    (replace(MEANT, operation="another's"), Fit.NOT_OURS, Fit.CONFLICT),
    (replace(MEANT, account="another"), Fit.CONFLICT, Fit.CONFLICT),
    (replace(MEANT, region="another"), Fit.CONFLICT, Fit.CONFLICT),
    (replace(MEANT, fields={"amount": "2"}), Fit.CONFLICT, Fit.CONFLICT),
)


def mistaken(rules: Rules) -> str:
    """Say which record is taken for what it is not."""
    for record, looked_up, answered in RECORDS:
        for fit, required in ((looked_up, True), (answered, False)):
            taken = rules.compare(OURS, record, marker_required=required).fit
            if taken is not fit:
                return f"{record} is {fit}, and taken for {taken}"
    return ""


# --- what bars a send -------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """Something that stands against a move, and whether a move heeds it."""

    name: str
    put_up: Callable[[Facts], Facts]
    heeded: Callable[[Node, Move], bool]


def sends_nothing(_node: Node, move: Move) -> bool:
    return not isinstance(move, Send)


def repeats_nothing(node: Node, move: Move) -> bool:
    """Nothing is sent that might be a second effect without what was taken away."""
    return node.known_without_effect or not isinstance(move, Send | Advance | Reject | Drop)


def trusts_nothing(node: Node, move: Move) -> bool:
    """Also what is known to have had no effect is known by the contract that was broken."""
    repeats = isinstance(move, Send) and move.purpose is Purpose.REPLAY
    return repeats_nothing(node, move) and not repeats


def asks_nothing_else(node: Node, move: Move) -> bool:
    return not isinstance(move, Send | LookUp) or (not node.facts.sent and isinstance(move, LookUp))


def drops_no_effect(node: Node, move: Move) -> bool:
    if isinstance(move, Drop | Reject):
        return node.known_without_effect
    return not isinstance(move, Send)


def holds(_node: Node, move: Move) -> bool:
    return isinstance(move, Hold)


def with_conflict(facts: Facts) -> Facts:
    last = max((known.observed_at for known in facts.known), default=facts.opened_at)
    conflict = Known(EvidenceKind.CONFLICT, last + MOMENT)
    return replace(facts, known=(*facts.known, conflict))


def bars_of(facts: Facts) -> Iterator[Bar]:
    """The bars that mean something at this state of knowledge."""
    yield Bar("dispatch paused", lambda f: replace(f, dispatch=Dispatch.PAUSED), sends_nothing)
    yield Bar("dispatch off", lambda f: replace(f, dispatch=Dispatch.OFF), sends_nothing)
    yield Bar("provider not ready", lambda f: replace(f, missing=("an owner",)), sends_nothing)
    yield Bar("not authorised", lambda f: replace(f, authorised=False), sends_nothing)
    yield Bar("precondition gone", lambda f: replace(f, precondition_holds=False), sends_nothing)
    yield Bar("run cancelled", lambda f: replace(f, cancelling=True), drops_no_effect)
    yield Bar("records that disagree", with_conflict, holds)
    if facts.sent:
        yield Bar("another scope", lambda f: replace(f, elsewhere=True), asks_nothing_else)
        yield Bar("contract contradicted", lambda f: replace(f, contradicted=True), trusts_nothing)
        yield Bar("replay not shown", lambda f: replace(f, replay_trusted=False), repeats_nothing)
    if any(known.kind is EvidenceKind.ABSENCE for known in facts.known):
        yield Bar("look-up not shown", without_look_up, repeats_unproven)


def without_look_up(facts: Facts) -> Facts:
    return replace(facts, look_up_trusted=False)


def repeats_unproven(node: Node, move: Move) -> bool:
    """What a look-up did not show proves nothing any more; a key that guards still does."""
    unknown = any(sent.state is TransmissionState.UNKNOWN for sent in node.facts.sent)
    if not unknown or node.is_proven:
        return True
    if isinstance(move, Send):
        return node.facts.contract.replay is not None
    return not isinstance(move, Reject | Drop)


def unheeded(model: Model, node: Node, move: Move) -> str:
    """Put every bar up in turn; say which one the rules do not heed."""
    if not isinstance(move, Send | LookUp | Advance | Verify) or isinstance(move, GiveUp):
        return ""
    for bar in bars_of(node.facts):
        if node.is_proven and bar.heeded is not holds:
            continue  # the effect is proven: nothing is sent any more
        barred = model.rules.decide(bar.put_up(node.facts), node.now)
        if not bar.heeded(node, barred):
            return f"{bar.name}, and yet: {barred}"
        if isinstance(barred, Wait) and barred.until is not None and barred.until <= node.now:
            return f"{bar.name}: waits for nothing"
    return ""
