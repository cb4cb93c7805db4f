"""What is known and what may be so, together: the nodes of the model, and how one follows another.

A node is one state of knowledge (the facts as the ledger would hold them, and the time) with every
world that may be behind it. What is done depends on the knowledge alone; whether it was right is
judged in each of the worlds.

Crashes: a worker that dies before it has recorded an answer leaves a send of unknown outcome, which
arrived or did not; one that dies between two commits leaves nothing but the time until the next one
comes, which is a rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from reconciliation.core.classify import UNKNOWN, Classification, Phase, Report, classify
from reconciliation.core.contracts import Contract
from reconciliation.core.decide import decide
from reconciliation.core.facts import Facts, Known, Move, Sent
from reconciliation.core.matching import Comparison, Fit, Found, Intended, compare
from reconciliation.core.model_world import NEVER, RESOURCE, Destination, World
from reconciliation.core.protection import MOMENT as LEAST
from reconciliation.core.protection import closes_at, in_flight_until
from reconciliation.core.states import EvidenceKind, OperationState, TransmissionState

START = datetime(2026, 1, 1, tzinfo=UTC)
MOMENT = timedelta(seconds=1)
LONG_REST = timedelta(days=40)  # longer than any provider keeps a key
AWAY = timedelta(seconds=30)  # for so long a look-up that is away asks not to be asked again
OLD = "long"
OURS = Intended("ours", "", "", {})
ANOTHERS = Found("another", operation=None)  # shown by a look-up that ignores its filter

Belief = dict[World, float]
"""The worlds that may be so, each with how likely it is where all behaviours are equally so."""


@dataclass(frozen=True)
class Rules:
    """What is under test: the product's rules, or seeded mistakes in their place.

    Attributes:
        key_of, body_of: the key and the body of the n-th send.
        given_up: what becomes of a send whose worker went quiet.
    """

    decide: Callable[[Facts, datetime], Move] = decide
    classify: Callable[[Report, Contract], Classification] = classify
    compare: Callable[..., Comparison] = compare
    key_of: Callable[[int], str] = lambda _number: "key"
    body_of: Callable[[int], str] = lambda _number: "as stored"
    given_up: TransmissionState = TransmissionState.UNKNOWN


@dataclass(frozen=True)
class Bounds:
    """How far paths are walked.

    Attributes:
        sends: that leave; beyond the contract's own budget none do.
        look_ups: for each send whose outcome is unknown.
        rests: how often nobody comes for longer than the move asks.
        denials: how often a person states that it was not done.
    """

    sends: int = 4
    not_sent: int = 2
    look_ups: int = 2
    rests: int = 1
    denials: int = 1

    def within(self, contract: Contract) -> Contract:
        """The contract with a budget that ends the paths there, and no shorter pauses."""
        budget = contract.budget.model_copy(
            update={
                "transmissions": min(self.sends, contract.budget.transmissions),
                "not_sent": min(self.not_sent, contract.budget.not_sent),
                "look_ups": min(self.look_ups, contract.budget.look_ups),
            }
        )
        return contract.model_copy(update={"budget": budget})


@dataclass(frozen=True, eq=False)
class Node:
    facts: Facts
    now: datetime
    belief: Belief
    rests: int
    denials: int
    by_person: bool = False  # a person has had a part in it
    path: tuple[str, ...] = ()

    @property
    def weight(self) -> float:
        return sum(self.belief.values())

    @property
    def was_unknown(self) -> bool:
        return any(sent.state is TransmissionState.UNKNOWN for sent in self.facts.sent)

    @property
    def is_proven(self) -> bool:
        return any(known.completes for known in self.facts.known)

    @property
    def known_without_effect(self) -> bool:
        return not any(world.may_have_effect for world in self.belief)


@dataclass(frozen=True)
class Model:
    """One contract, its destination, and the rules that are tried on it."""

    contract: Contract
    bounds: Bounds
    rules: Rules = field(default_factory=Rules)

    @property
    def destination(self) -> Destination:
        return Destination(self.contract)

    def root(self) -> Node:
        facts = Facts(self.contract, OperationState.INTENDED, START)
        return Node(facts, START, {World(): 1.0}, self.bounds.rests, self.bounds.denials)

    # --- what may follow ----------------------------------------------------------------------

    def after_send(self, node: Node) -> list[Node]:
        """Everything that may be known a moment after one more send."""
        number, now = len(node.facts.sent) + 1, node.now
        key, body = self.rules.key_of(number), self.rules.body_of(number)
        known: dict[tuple[Classification, float | None], Belief] = defaultdict(
            lambda: defaultdict(float)
        )
        for world, weight in node.belief.items():
            possible = list(self.destination.sends(world, key, body, now))
            share = weight / sum(each.weight for each in possible)
            for each in possible:
                told = (self.classified(each.report), pause_of(each.report))
                known[told][each.world] += share * each.weight
        after = replace(node, now=now + MOMENT)
        return [
            self.moved(after, self.facts_after(node, number, *told), belief, name_of(told[0]))
            for told, belief in known.items()
        ]

    def classified(self, report: Report) -> Classification:
        if report.answer is None and report.phase is Phase.SEND:
            # Its worker died: whoever comes next gives it up.
            return Classification(self.rules.given_up, UNKNOWN.meaning)
        return self.rules.classify(report, self.contract)

    def facts_after(
        self, node: Node, number: int, answer: Classification, pause: float | None
    ) -> Facts:
        facts, now = node.facts, node.now
        sent = Sent(
            number,
            answer.state,
            now,
            in_flight_until(self.contract, now),
            answer.meaning,
            answer.resolves_earlier,
            answer.retry,
            now + timedelta(seconds=pause) if pause is not None else None,
        )
        changes: dict[str, object] = {"sent": (*facts.sent, sent), "state": OperationState.UNKNOWN}
        limit = facts.replay_not_after
        if answer.state is TransmissionState.NOT_SENT and not left(facts):
            limit = None  # it was never sent
        elif limit is None and self.contract.replay is not None:
            limit = now + self.contract.replay.window
        changes["replay_not_after"] = limit
        if answer.state is TransmissionState.ACKNOWLEDGED:
            changes["known"] = (*facts.known, proof(EvidenceKind.RECEIPT, now))
        return replace(facts, **changes)  # type: ignore[arg-type]

    def after_look_up(self, node: Node) -> list[Node]:
        """It is away, shows what is not ours, shows our record, or shows nothing."""
        found: dict[str, Belief] = defaultdict(lambda: defaultdict(float))
        for world, weight in node.belief.items():
            shows = "found" if world.visible_from <= node.now else "absent"
            for name in ("away", "another's", shows):
                found[name][world] += weight / 3
        known = {
            "away": Known(EvidenceKind.UNAVAILABLE, node.now, retry_after_at=node.now + AWAY),
            "another's": self.of_another(node.now),
            "found": proof(EvidenceKind.LOOKUP, node.now),
            "absent": Known(EvidenceKind.ABSENCE, node.now),
        }
        if known["another's"].kind is EvidenceKind.UNAVAILABLE:
            for world, weight in found.pop("another's").items():
                found["away"][world] += weight
        return [
            self.moved(node, seen(node.facts, known[name]), belief, f"look-up: {name}")
            for name, belief in found.items()
        ]

    def of_another(self, now: datetime) -> Known:
        """What the ledger keeps of a record that does not carry our marker."""
        fit = self.rules.compare(OURS, ANOTHERS, marker_required=True).fit
        ours = fit is Fit.MATCH
        return proof(EvidenceKind.LOOKUP, now) if ours else Known(EvidenceKind.UNAVAILABLE, now)

    def after_verify(self, node: Node) -> list[Node]:
        told = {
            "met": Known(EvidenceKind.LOOKUP, node.now, postcondition=True),
            "not met": Known(EvidenceKind.LOOKUP, node.now, postcondition=False),
            "away": Known(EvidenceKind.UNAVAILABLE, node.now),
        }
        return [
            self.moved(node, seen(node.facts, known), shared(node.belief, len(told)), name)
            for name, known in told.items()
        ]

    def moved(self, node: Node, facts: Facts, belief: Belief, name: str) -> Node:
        return replace(node, facts=facts, belief=belief, path=(*node.path, name))

    # --- time ---------------------------------------------------------------------------------

    def at(self, node: Node, now: datetime, name: str) -> Node:
        """The same knowledge later: what was still being executed is done by then."""
        belief: Belief = defaultdict(float)
        for world, weight in node.belief.items():
            belief[self.destination.later(world, now)] += weight
        return replace(node, now=now, belief=belief, path=(*node.path, name))

    def rested(self, node: Node) -> Iterator[Node]:
        """The next worker comes at once, or at any of the times at which something changes."""
        yield from self.resting(node, self.late_times(node) if node.rests else {})

    def rested_after_asking(self, node: Node) -> Iterator[Node]:
        """The same after a question: at once, or when everything is old."""
        times = self.late_times(node) if node.rests else {}
        yield from self.resting(node, {now: name for now, name in times.items() if name == OLD})

    def resting(self, node: Node, times: dict[datetime, str]) -> Iterator[Node]:
        at_once = replace(node, belief=shared(node.belief, len(times) + 1))
        yield at_once
        for now, name in times.items():
            yield replace(self.at(at_once, now, f"rest {name}"), rests=node.rests - 1)

    def late_times(self, node: Node) -> dict[datetime, str]:
        times = {node.now + LONG_REST: OLD}
        closes, rule = closes_at(node.facts), self.contract.replay
        if rule is not None:
            # Over half of the time for which a key is kept: two of them make the first send old.
            times[node.now + timedelta(seconds=0.6 * rule.retention_floor_seconds)] = "half"
        if closes is not None:
            times |= {closes: "to the last moment", closes + LEAST: "past the last moment"}
        return {now: name for now, name in times.items() if node.now < now < NEVER}


def shared(belief: Belief, among: int) -> Belief:
    return {world: weight / among for world, weight in belief.items()}


def seen(facts: Facts, known: Known) -> Facts:
    return replace(facts, known=(*facts.known, known))


def proof(kind: EvidenceKind, now: datetime) -> Known:
    return Known(kind, now, completes=True, resource=RESOURCE)


def left(facts: Facts) -> list[Sent]:
    """The sends of which something may have left."""
    return [sent for sent in facts.sent if sent.state is not TransmissionState.NOT_SENT]


def pause_of(report: Report) -> float | None:
    return report.answer.retry_after_seconds if report.answer else None


def name_of(answer: Classification) -> str:
    means = "" if answer.meaning == "unknown" else f" ({answer.meaning})"
    return f"send: {answer.state}{means}"
