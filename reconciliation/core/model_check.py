"""Every provider behaviour that a contract permits, against `decide`: two effects, ever?

A model destination does whatever its contract allows: it applies a request at once, late (up to
the moment at which none of it can be on its way), or never; it answers, loses the answer, refuses,
is busy; its look-ups lag or are away; it forgets a key at the first moment at which it may. Workers
die before, during and after each send, and work rests as long as it likes between two moves. All
orders are walked, up to the contract's own budgets.

On every path: never two effects, never an advance without the effect, never a rejection with one,
and every operation is settled, held, or due at a time to come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from reconciliation.core.contracts import Contract, Meaning, Retry
from reconciliation.core.decide import decide as decide_now
from reconciliation.core.facts import (
    Advance,
    Drop,
    Facts,
    GiveUp,
    Hold,
    Known,
    LookUp,
    Move,
    Reject,
    Send,
    Sent,
    Verify,
    Wait,
)
from reconciliation.core.states import EvidenceKind, OperationState, TransmissionState

START = datetime(2026, 1, 1, tzinfo=UTC)
GRACE = timedelta(seconds=1)
LONG_REST = timedelta(days=40)  # longer than any provider keeps a key
MOST_SENDS = 4
MOST_STEPS = 40  # no path is longer; one that is does not end

Decide = Callable[[Facts, datetime], Move]


class Fate(StrEnum):
    """What becomes of one transmission."""

    NEVER_LEFT = "never_left"  # no connection
    DIED_BEFORE = "died_before"  # the worker died with the claim committed and no byte sent
    DIED_AFTER = "died_after"  # it arrived, and the worker died before it could record that
    LOST_BEFORE = "lost_before"  # it never arrived, and nothing says so
    APPLIED_LOST = "applied_lost"  # it arrived, and the answer was lost
    APPLIED_LATE = "applied_late"  # it arrives at the last moment, unanswered
    ANSWERED = "answered"
    REFUSED = "refused"  # a documented refusal for good, without effect
    BUSY = "busy"  # a documented refusal for now, without effect


@dataclass(frozen=True)
class World:
    """What is really so: the effects, and the key at the destination."""

    effects: int = 0
    visible_from: datetime | None = None  # the effect, to look-ups
    key_seen_at: datetime | None = None
    pending_until: tuple[datetime, ...] = ()  # requests that arrive only then


@dataclass(frozen=True)
class Node:
    facts: Facts
    world: World
    now: datetime
    path: tuple[str, ...] = ()

    @property
    def place(self) -> object:
        """What the node's future depends on: not how it came here."""
        facts = self.facts
        return (facts.sent, facts.known, facts.state, facts.replay_not_after, self.world, self.now)

    def step(self, name: str, **changes: object) -> Node:
        return replace(self, path=(*self.path, name), **changes)  # type: ignore[arg-type]


@dataclass
class Report:
    """What the walk found. `breaches` are paths that must not exist."""

    contract: str
    ends: Counter[str] = field(default_factory=Counter)
    breaches: list[str] = field(default_factory=list)


def check(contract: Contract, decide: Decide = decide_now, *, enough: int = 20) -> Report:
    """Walk every path under `contract`.

    Args:
        decide: the function under test; mutants are given here.
        enough: stop after so many breaches.
    """
    report = Report(f"{contract.slug} v{contract.version}")
    facts = Facts(contract, OperationState.INTENDED, START)
    stack = [Node(facts, World(), START)]
    walked: set[object] = set()
    while stack and len(report.breaches) < enough:
        node = stack.pop()
        place = node.place
        if place in walked:
            continue
        walked.add(place)
        move = decide(node.facts, node.now)
        problem = wrong(node, move)
        if problem:
            report.breaches.append(f"{problem}: {' → '.join(node.path)} → {move}")
        elif (end := end_of(move)) is not None:
            report.ends[end] += 1
        else:
            stack += follow(node, move)
    return report


def wrong(node: Node, move: Move) -> str:
    """Say what is wrong with making `move` here; empty when nothing is."""
    world = node.world
    if world.effects > 1:
        return "two effects"
    if len(node.path) > MOST_STEPS:
        return "no end"
    match move:
        case Advance() if world.effects != 1:
            return "advanced without the effect"
        case Reject() | Drop() if world.effects or world.pending_until:
            return "rejected or dropped with an effect"
        case Wait(until) if until is None or until <= node.now:
            return "waits for nothing"
        case _:
            return ""


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


def follow(node: Node, move: Move) -> Iterator[Node]:
    """Every state of the world that may follow `move`."""
    match move:
        case Wait(until) if until is not None:
            for rest in rests(node):
                yield passed(node, until + rest, f"wait {move.reason}")
        case Send():
            for fate in fates(node):
                yield from rested(after_send(node, fate))
        case LookUp():
            yield from after_look_up(node)
        case Verify():
            yield from after_verify(node)
        case _:
            raise AssertionError(f"{move} ends a path")


def rested(node: Node) -> Iterator[Node]:
    """The next worker may come at once, or after any time."""
    for rest in rests(node):
        yield passed(node, node.now + rest, "rest" if rest else "")


def rests(node: Node) -> tuple[timedelta, ...]:
    """None; over half of the time for which a key is kept; or one that makes everything old."""
    age, rule = node.now - START, node.facts.contract.replay
    longer = [] if age >= LONG_REST else [LONG_REST]
    if rule is not None and age < timedelta(seconds=rule.retention_floor_seconds):
        longer.append(timedelta(seconds=0.6 * rule.retention_floor_seconds))
    return (timedelta(0), *longer)


def passed(node: Node, now: datetime, name: str) -> Node:
    """Time passes: what was still on its way arrives."""
    world = node.world
    for arrival in sorted(at for at in world.pending_until if at <= now):
        world = arrived(world, node.facts.contract, arrival)
    left = tuple(at for at in world.pending_until if at > now)
    step = node.step(name) if name else node
    return replace(step, world=replace(world, pending_until=left), now=now)


# --- the destination --------------------------------------------------------------------------


def fates(node: Node) -> Iterator[Fate]:
    """What may become of the next send. Refusals for good are of the first send or of a key."""
    if len(node.facts.sent) >= MOST_SENDS:
        yield Fate.ANSWERED
        return
    for fate in Fate:
        if fate is Fate.REFUSED and knows_key(node.world, node.facts.contract, node.now):
            continue  # it answers what it answered before
        yield fate


def knows_key(world: World, contract: Contract, at: datetime) -> bool:
    if contract.replay is None or world.key_seen_at is None:
        return False
    kept = timedelta(seconds=contract.replay.retention_floor_seconds)
    return at < world.key_seen_at + kept


def arrived(world: World, contract: Contract, at: datetime) -> World:
    """A request arrives and is applied, unless its key is known."""
    if knows_key(world, contract, at):
        return world
    lag = timedelta(seconds=contract.look_up.visibility_lag_seconds if contract.look_up else 0)
    return replace(
        world,
        effects=world.effects + 1,
        visible_from=world.visible_from or at + lag,
        key_seen_at=at if contract.key else None,
    )


def after_send(node: Node, fate: Fate) -> Node:
    contract, now = node.facts.contract, node.now
    over = now + contract.timeout + GRACE
    world = node.world
    if fate in (Fate.DIED_AFTER, Fate.APPLIED_LOST, Fate.ANSWERED):
        world = arrived(world, contract, now)
    if fate is Fate.APPLIED_LATE:
        world = replace(world, pending_until=(*world.pending_until, over))
    sent = Sent(len(node.facts.sent) + 1, STATES[fate], now, over, **ANSWERS.get(fate, {}))
    facts = replace(node.facts, sent=(*node.facts.sent, sent), state=state_after(node, fate))
    if facts.replay_not_after is None and contract.replay is not None:
        facts = replace(facts, replay_not_after=now + contract.replay.window)
    if fate is Fate.ANSWERED:
        facts = seen(facts, EvidenceKind.RECEIPT, now, completes=True, resource="r")
    return replace(node.step(fate), facts=facts, world=world)


STATES = {
    Fate.NEVER_LEFT: TransmissionState.NOT_SENT,
    Fate.DIED_BEFORE: TransmissionState.SENDING,
    Fate.DIED_AFTER: TransmissionState.SENDING,
    Fate.LOST_BEFORE: TransmissionState.UNKNOWN,
    Fate.APPLIED_LOST: TransmissionState.UNKNOWN,
    Fate.APPLIED_LATE: TransmissionState.UNKNOWN,
    Fate.ANSWERED: TransmissionState.ACKNOWLEDGED,
    Fate.REFUSED: TransmissionState.REJECTED,
    Fate.BUSY: TransmissionState.REJECTED,
}
ANSWERS: dict[Fate, dict[str, Any]] = {
    Fate.REFUSED: {"meaning": Meaning.REJECTED, "retry": Retry.NEVER},
    Fate.BUSY: {"meaning": Meaning.REJECTED, "retry": Retry.SAME_KEY},
    Fate.ANSWERED: {"meaning": Meaning.ACKNOWLEDGED},
}


def state_after(node: Node, fate: Fate) -> OperationState:
    earlier = any(sent.may_have_effect for sent in node.facts.sent)
    if fate is Fate.ANSWERED:
        return OperationState.APPLIED
    clear = fate in (Fate.NEVER_LEFT, Fate.REFUSED, Fate.BUSY) and not earlier
    return OperationState.INTENDED if clear else OperationState.UNKNOWN


def seen(facts: Facts, kind: EvidenceKind, at: datetime, **fields: object) -> Facts:
    known = Known(kind, at, **fields)  # type: ignore[arg-type]
    return replace(facts, known=(*facts.known, known))


def after_look_up(node: Node) -> Iterator[Node]:
    """A look-up is away, or shows what is visible; an effect that is not yet visible is absent."""
    facts, now, world = node.facts, node.now, node.world
    away = seen(facts, EvidenceKind.UNAVAILABLE, now)
    yield from rested(replace(node.step("look-up away"), facts=away))
    if world.visible_from is not None and world.visible_from <= now:
        found = seen(facts, EvidenceKind.LOOKUP, now, completes=True, resource="r")
        yield from rested(replace(node.step("found"), facts=found))
    else:
        absent = seen(facts, EvidenceKind.ABSENCE, now)
        yield from rested(replace(node.step("absent"), facts=absent))


def after_verify(node: Node) -> Iterator[Node]:
    for name, fields in (("met", True), ("not met", False)):
        checked = seen(node.facts, EvidenceKind.LOOKUP, node.now, postcondition=fields)
        yield replace(node.step(f"result {name}"), facts=checked)
    away = seen(node.facts, EvidenceKind.UNAVAILABLE, node.now)
    yield replace(node.step("result check away"), facts=away)
