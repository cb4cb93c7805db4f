"""Every provider behaviour that a contract permits, against `decide`: two effects, ever?

All orders are walked of up to four transmissions, look-ups and restarts, with a destination that
counts effects (`model_world`), and every state of knowledge is judged in all worlds that may be
behind it (`model_judge`). `model_best` computes, without `decide`, how many unknown outcomes a rule
could settle at most without a person. docs/model_check.md says what all this covers and what not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain

from reconciliation.core.contracts import Contract
from reconciliation.core.facts import (
    Advance,
    Drop,
    GiveUp,
    Hold,
    LookUp,
    Move,
    Reject,
    Send,
    Verify,
    Wait,
)
from reconciliation.core.model_best import (
    Best,
    could_settle,
    ever_unknown,
    is_settled,
    share_of_rules,
    unknown_sends,
    without_check,
)
from reconciliation.core.model_judge import mistaken, unheeded, wrong
from reconciliation.core.model_nodes import LONG_REST, MOMENT, Bounds, Model, Node, Rules
from reconciliation.core.model_world import World
from reconciliation.core.options import after_denial
from reconciliation.core.states import EvidenceKind

ROUNDING = 1e-9  # of sums of many small shares

QUICK = Bounds(sends=2, not_sent=1, look_ups=1, rests=1, denials=1)
FAR = Bounds(sends=3, not_sent=1, look_ups=1, rests=0, denials=0)
QUICKER = Bounds(sends=2, not_sent=1, look_ups=1, rests=0, denials=1)


def full(contract: Contract) -> tuple[Bounds, ...]:
    """How far a contract is walked: up to four sends, and with long rests where those matter.

    Every question doubles the paths, so a contract with look-ups is walked far without rests, and
    with rests less far.
    """
    if contract.look_up is None:
        return (Bounds(look_ups=1, not_sent=1), replace(QUICK, rests=2))
    return (Bounds(look_ups=1, not_sent=1, rests=0, denials=0), QUICK)


@dataclass
class Report:
    """What a walk found. `breaches` are paths that must not exist.

    Attributes:
        states: of knowledge that were judged.
        ends: how each path ended, and how many did so.
        early_holds: holds where a safe rule could still have done something by itself.
        undecided: holds of an unknown outcome behind which both may be: an effect, and none.
    """

    contract: str
    states: int = 0
    worlds: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    breaches: list[str] = field(default_factory=list)
    early_holds: list[str] = field(default_factory=list)
    undecided: int = 0

    @property
    def is_clean(self) -> bool:
        return not self.breaches and not self.early_holds

    def add(self, other: Report) -> None:
        """Take in what another walk of the same contract has found."""
        self.states += other.states
        self.worlds += other.worlds
        self.ends.update(other.ends)
        self.breaches += other.breaches
        self.early_holds += other.early_holds
        self.undecided += other.undecided


def check(
    contract: Contract,
    rules: Rules | None = None,
    bounds: Bounds | None = None,
    *,
    cancelled: bool = False,
    enough: int = 20,
) -> Report:
    """Walk every path under `contract`.

    Args:
        rules: what is tried; the product's own unless given.
        cancelled: once something was sent, the run's end is asked for.
        enough: stop after so many breaches.
    """
    bounds = bounds or Bounds()
    model = Model(bounds.within(contract), bounds, rules or Rules())
    report = Report(f"{contract.slug} version {contract.version}")
    mistake = mistaken(model.rules)
    if mistake:
        report.breaches.append(mistake)
    root = model.root()
    stack = list(model.after_send(root)) if cancelled else [root]
    stack = [ending(node) if cancelled else node for node in stack]
    while stack and len(report.breaches) < enough:
        node = stack.pop()
        report.states += 1
        report.worlds += len(node.belief)
        move = model.rules.decide(node.facts, node.now)
        problem = wrong(model, node, move) or unheeded(model, node, move)
        if problem:
            report.breaches.append(f"{problem}: {told(node, move)}")
            continue
        end = end_of(move)
        if end is None:
            stack += follow(model, node, move)
            continue
        report.ends[end] += 1
        if isinstance(move, Hold):
            look_at_hold(model, node, move, report)
            stack += denied(model, node)
    return report


@dataclass(frozen=True)
class Share:
    """Of a hundred unknown outcomes, how many are settled without a person.

    Attributes:
        settled: by the rules.
        most: by the best rule that is safe (`model_best`).
    """

    settled: float
    most: float

    @property
    def is_most(self) -> bool:
        return self.most - self.settled < ROUNDING


def share(contract: Contract, rules: Rules | None = None, bounds: Bounds = QUICK) -> Share:
    """Compare what the rules settle with the most that any safe rule could."""
    model = without_check(Model(bounds.within(contract), bounds, rules or Rules()))
    root = model.root()
    unknown = ever_unknown(model, root)
    return Share(share_of_rules(model, root) / unknown, Best(model).share(root) / unknown)


def caught_by(rules: Rules, contracts: Iterable[Contract]) -> str:
    """Say by which contract's walk a mistake is found, and as what; empty if by none."""
    walked = list(contracts)
    found = (
        found_in(check(contract, rules, bounds, enough=1))
        for bounds in (QUICK, FAR)
        for contract in walked
    )
    timid = (
        f"{contract.slug}: settles less than is safe"
        for contract in walked
        if not share(contract, rules).is_most
    )
    return next(filter(None, chain(found, timid)), "")


def found_in(report: Report) -> str:
    if report.is_clean:
        return ""
    found = report.breaches or [f"gave up too early: {report.early_holds[0]}"]
    return f"{report.contract}: {found[0]}"


def ending(node: Node) -> Node:
    return replace(node, facts=replace(node.facts, cancelling=True), denials=0)


def told(node: Node, move: Move) -> str:
    return " → ".join((*node.path, str(move)))


def look_at_hold(model: Model, node: Node, move: Hold, report: Report) -> None:
    if not node.was_unknown or is_settled(node):
        return
    effects = {world.may_have_effect for world in node.belief}
    report.undecided += effects == {True, False}
    if not node.by_person and not node.facts.cancelling and could_settle(model, node):
        report.early_holds.append(told(node, move))


def end_of(move: Move) -> str | None:
    match move:
        case Advance():
            return "verified"
        case Reject():
            return "rejected"
        case Hold(reason):
            return f"held: {reason}"
        case GiveUp():
            return "abandoned"
        case Drop():
            return "dropped"
        case _:
            return None


def follow(model: Model, node: Node, move: Move) -> Iterator[Node]:
    """Every node that may follow `move`."""
    match move:
        case Wait(until, reason) if until is not None:
            yield model.at(node, until, f"wait: {reason}")
        case Send():
            for sent in model.after_send(node):
                yield from model.rested(sent)
        case LookUp():
            for asked in model.after_look_up(node):
                yield from model.rested_after_asking(asked)
        case Verify():
            yield from model.after_verify(node)
        case _:
            raise AssertionError(f"{move} ends a path")


# --- a person says that it was not done -------------------------------------------------------


def denied(model: Model, node: Node) -> Iterator[Node]:
    """A person states it at a hold, rightly or wrongly; the rules say whether that counts."""
    if not node.denials or node.is_proven:
        return
    times = {node.now, node.now + LONG_REST}
    # When nothing can be on its way any more.
    times |= {sent.in_flight_until for sent in node.facts.sent[-1:]}
    for now in sorted(time for time in times if time >= node.now):
        later = model.at(node, now, "held") if now > node.now else node
        facts = after_denial(later.facts, now)
        belief = {world: each for world, each in later.belief.items() if may_say(later, world)}
        if belief and isinstance(model.rules.decide(facts, now), Send):
            said = replace(later, facts=facts, belief=belief, denials=node.denials - 1)
            # Whoever sends comes after the decision.
            yield replace(model.at(said, now + MOMENT, "a person: not done"), by_person=True)


def may_say(node: Node, world: World) -> bool:
    """A person may be wrong, and so may a look-up that finds nothing; not both about the same.

    That is what the rule leans on that lets a person's word count beside such a look-up, where it
    was made when every record had to be shown that is ever shown.
    """
    rule, unknown = node.facts.contract.look_up, unknown_sends(node)
    if rule is None or not unknown:
        return True
    lag = rule.visibility_lag_seconds
    over = max(sent.in_flight_until for sent in unknown)
    shown_absent = any(
        known.kind is EvidenceKind.ABSENCE and (known.observed_at - over).total_seconds() >= lag
        for known in node.facts.known
    )
    return not shown_absent or not world.may_have_effect
