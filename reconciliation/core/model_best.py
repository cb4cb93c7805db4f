"""How many unknown outcomes could be settled without a person, at the most, by any safe rule?

Computed without `decide`. A state of knowledge is what the ledger holds; behind it are all worlds
that the contract permits (`model_nodes`). There

- a conclusion is safe if it is true in every one of these worlds, and the effect is only concluded
  where the provider has named its resource;
- a send is safe if in no one of them it, and whatever is still on its way, can make a second
  effect, whatever the destination then does;
- asking is always safe.

The best rule is the one that, knowing all that, settles the most: the greatest expectation over all
moves and all times at which something changes, where each behaviour is as likely as any other. It
keeps to the same budgets, and to what the contract says outright: no send after an answer that is
documented as final, none before the time that the provider names, none where one may be on its way
and that is not allowed, none in the margin of the protection window, and no repeat put off once
asking has found nothing. After any one of the sends nobody may come for a long time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from reconciliation.core.contracts import Meaning, Retry
from reconciliation.core.facts import Hold, HoldReason, Known, LookUp, Move, Send, Sent, Wait
from reconciliation.core.model_nodes import Model, Node, left
from reconciliation.core.protection import closes_at, time_is_up_at
from reconciliation.core.states import EvidenceKind, TransmissionState

ASKED = (EvidenceKind.LOOKUP, EvidenceKind.ABSENCE, EvidenceKind.UNAVAILABLE)
FINAL = (Meaning.KEY_MISMATCH, Meaning.EXISTS)


def is_settled(node: Node) -> bool:
    """Whether the outcome is known: proven by the provider, or no effect in any world."""
    return node.is_proven or node.known_without_effect


# --- the best rule ----------------------------------------------------------------------------


class Best:
    """The value of the best safe rule: how likely it is that an unknown outcome gets settled."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._values: dict[object, float] = {}

    def share(self, node: Node) -> float:
        """What part of the node's weight is settled in the end, having been unknown."""
        if node.was_unknown and is_settled(node):
            return node.weight
        if node.is_proven:
            return 0.0  # it was never unknown
        place = self.place(node)
        if place not in self._values:
            self._values[place] = self.greatest(node) / node.weight
        return self._values[place] * node.weight

    def greatest(self, node: Node) -> float:
        most = 0.0
        for found in after_moves(self.model, node):
            most = max(most, sum(self.share(each) for each in found))
            if most >= node.weight * (1 - 1e-9):
                break  # no rule does better than always
        return most

    def place(self, node: Node) -> object:
        """What the value depends on: what may be so, and what may still be done."""
        facts, whole = node.facts, node.weight
        worlds = frozenset((world, round(each / whole, 12)) for world, each in node.belief.items())
        last = facts.sent[-1] if facts.sent else None
        return (
            worlds,
            node.now,
            node.rests,
            node.was_unknown,
            len(left(facts)),
            len(facts.sent),
            tuple(each.observed_at for each in asked_since_last(node)),
            facts.replay_not_after,
            barred_for_good(node),
            facts.sent and time_is_up_at(facts),
            named_time(node),
            last and (last.started_at, last.retry_after_at),
            max((sent.in_flight_until for sent in unknown_sends(node)), default=None),
        )


def after_moves(model: Model, node: Node) -> Iterator[list[Node]]:
    """What may follow each safe move, at each time at which it may be made first.

    Once asking has found nothing, a repeat that is safe is not put off for further questions.
    """
    repeated = after_safe_send(model, node)
    if repeated:
        yield repeated
        if any(known.kind is EvidenceKind.ABSENCE for known in asked_since_last(node)):
            return
    for now in ask_times(model, node):
        yield model.after_look_up(at_time(model, node, now))


def after_safe_send(model: Model, node: Node) -> list[Node]:
    """What may follow a send, where one is safe; else nothing."""
    sent_at = send_time(model, node)
    at = None if sent_at is None else at_time(model, node, sent_at)
    if at is None or not is_safe(model, at):
        return []
    return [each for sent in model.after_send(at) for each in model.rested(sent)]


def at_time(model: Model, node: Node, now: datetime) -> Node:
    return model.at(node, now, "wait") if now > node.now else node


def could_settle(model: Model, node: Node) -> bool:
    """Whether any safe move is left at all that a rule could make here by itself."""
    return any(True for _ in after_moves(model, node))


# --- which moves there are --------------------------------------------------------------------


def unknown_sends(node: Node) -> list[Sent]:
    return [sent for sent in node.facts.sent if sent.state is TransmissionState.UNKNOWN]


def asked_since_last(node: Node) -> list[Known]:
    unknown = unknown_sends(node)
    since = unknown[-1].started_at if unknown else datetime.max.replace(tzinfo=node.now.tzinfo)
    return [each for each in node.facts.known if each.kind in ASKED and each.observed_at > since]


def ask_times(model: Model, node: Node) -> list[datetime]:
    """When asking may be of use: when a record may first be shown, and when every one must be.

    There are as many questions before that as after it, and they are paced by the contract's
    budget.
    """
    rule, unknown = model.contract.look_up, unknown_sends(node)
    if rule is None or not unknown:
        return []
    budget, asked = model.contract.budget, [each.observed_at for each in asked_since_last(node)]
    up = time_is_up_at(node.facts)
    longest = max(rule.visibility_lag_seconds, rule.absence_proof_after_seconds or 0)
    first = unknown[-1].started_at + timedelta(seconds=rule.visibility_lag_seconds)
    shown = unknown[-1].in_flight_until + timedelta(seconds=longest)
    paced = asked[-1] + budget.pause(len(asked)) if asked else node.now
    paced = max(paced, named_time(node))
    early, late = max(node.now, paced, first), max(node.now, paced, first, shown)
    times = set()
    if early < shown and sum(each < shown for each in asked) < budget.look_ups:
        times.add(early)
    if sum(each >= shown for each in asked) < budget.look_ups:
        times.add(late)
    return sorted(time for time in times if up is None or time < up)


def named_time(node: Node) -> datetime:
    """Before which the provider has asked not to be asked again."""
    asked = asked_since_last(node)
    after = asked[-1].retry_after_at if asked else None
    return after or node.now


def barred_for_good(node: Node) -> bool:
    """Whether the provider has said something after which the contract lets nothing follow."""
    sent = node.facts.sent
    if not sent:
        return False
    last = sent[-1]
    refused = last.state is TransmissionState.REJECTED and last.retry is Retry.NEVER
    return refused or any(each.meaning in FINAL for each in sent)


def send_time(model: Model, node: Node) -> datetime | None:
    """When the next send may be made first; None: never."""
    facts, contract = node.facts, model.contract
    never_left = len(facts.sent) - len(left(facts))
    if barred_for_good(node) or len(left(facts)) >= contract.budget.transmissions:
        return None
    if never_left >= contract.budget.not_sent:
        return None
    times = [node.now]
    overlaps = contract.replay is not None and contract.replay.overlaps
    if not overlaps:
        times += [sent.in_flight_until for sent in unknown_sends(node)]
    if facts.sent and facts.sent[-1].retry_after_at is not None:
        times.append(facts.sent[-1].retry_after_at)
    at, closes = max(times), closes_at(facts)
    if unknown_sends(node) and closes is not None and at > closes:
        return None
    up = time_is_up_at(facts) if unknown_sends(node) else None
    if up is not None and at >= up:
        return None
    return at


def is_safe(model: Model, node: Node) -> bool:
    """Whether a send now makes no second effect in any world, whatever the destination does."""
    key, body = model.rules.key_of(1), model.rules.body_of(1)
    return not any(
        model.destination.at_last(possible.world).effects > 1
        for world in node.belief
        for possible in model.destination.sends(world, key, body, node.now)
    )


# --- the rules' own share ---------------------------------------------------------------------


def share_of_rules(model: Model, node: Node) -> float:
    """What part of the node's weight the rules under test settle, having been unknown."""
    move = model.rules.decide(node.facts, node.now)
    if node.was_unknown and is_settled(node) and heeds_it(move):
        return node.weight
    return sum(share_of_rules(model, each) for each in followed(model, node, move))


# Holds that say that nothing happened, or what did: the outcome itself is settled.
OUTCOME_KNOWN = (
    HoldReason.REFUSED_TOO_OFTEN,
    HoldReason.UNREACHABLE,
    HoldReason.POSTCONDITION_FAILED,
    HoldReason.NOT_VERIFIABLE,
)


def heeds_it(move: Move) -> bool:
    """Whether a move shows that the rules know the outcome as well."""
    match move:
        case Hold(reason):
            return reason in OUTCOME_KNOWN
        case LookUp():
            return False
        case _:
            return True


def followed(model: Model, node: Node, move: Move) -> list[Node]:
    match move:
        case Wait(until, _) if until is not None:
            return [model.at(node, until, "wait")]
        case Send():
            return [each for sent in model.after_send(node) for each in model.rested(sent)]
        case LookUp():
            return model.after_look_up(node)
        case _:
            return []


def ever_unknown(model: Model, node: Node) -> float:
    """What part of the node's weight comes to an unknown outcome under the rules under test."""
    if node.was_unknown:
        return node.weight
    move = model.rules.decide(node.facts, node.now)
    return sum(ever_unknown(model, each) for each in followed(model, node, move))


def without_check(model: Model) -> Model:
    """The same without a check of the result: whether it was done is all that counts here."""
    return replace(model, contract=model.contract.model_copy(update={"verifies": False}))
