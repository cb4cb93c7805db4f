"""What the model says of one operation that was really sent: is there still anything to do for it
without a person?

The model's destination is led through the operation's own history, and every world that fits it is
kept. Whether a safe move is left in those worlds is `model_best`'s to say; `decide` is not asked.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from enum import StrEnum

from reconciliation.core.classify import Report
from reconciliation.core.contracts import Retry
from reconciliation.core.facts import Facts, Known, Sent
from reconciliation.core.model_best import ask_times, could_settle, send_time
from reconciliation.core.model_nodes import Belief, Bounds, Model, Node
from reconciliation.core.model_world import World
from reconciliation.core.protection import time_is_up_at
from reconciliation.core.states import EvidenceKind, TransmissionState


class Stand(StrEnum):
    """How it stands with an operation."""

    SETTLED = "settled"  # the outcome is proven, and nothing is wrong with it
    DUE = "due"  # a safe move is left
    PERSON = "person"  # nothing is left that is safe
    IMPOSSIBLE = "impossible"  # its contract permits no such history


def stand_of(facts: Facts, now: datetime) -> Stand:
    """Return how it stands at `now` with an operation that may be sent, as far as everything but
    its own history goes: dispatch on, provider ready, write authorised."""
    if is_disputed(facts):
        return Stand.PERSON
    if any(known.completes for known in facts.known):
        return stand_of_proven(facts)
    model = Model(facts.contract, Bounds())
    node = node_of(model, facts, now)
    if not node.belief:
        return Stand.IMPOSSIBLE
    if node.known_without_effect:
        return stand_without_effect(model, node)
    up = time_is_up_at(facts)
    if up is not None and up <= now:
        return Stand.PERSON
    return Stand.DUE if may_move(model, node) else Stand.PERSON


def is_disputed(facts: Facts) -> bool:
    """Whether records disagree of which nobody has said since which one is right."""
    stated = [each.observed_at for each in facts.known if each.kind is EvidenceKind.OPERATOR]
    conflicts = [each.observed_at for each in facts.known if each.kind is EvidenceKind.CONFLICT]
    return bool(conflicts) and (not stated or stated[-1] < max(conflicts))


def stand_of_proven(facts: Facts) -> Stand:
    checks = [each.postcondition for each in facts.known if each.postcondition is not None]
    if not facts.contract.verifies or checks[-1:] == [True]:
        return Stand.SETTLED
    proof = max(each.observed_at for each in facts.known if each.completes)
    missed = [
        each
        for each in facts.known
        if each.kind is EvidenceKind.UNAVAILABLE and each.observed_at >= proof
    ]
    given_up = len(missed) >= facts.contract.budget.look_ups
    return Stand.PERSON if checks or given_up else Stand.DUE


def stand_without_effect(model: Model, node: Node) -> Stand:
    """No effect, for certain: that is the end where it was refused for good, or is cancelled."""
    last = node.facts.sent[-1] if node.facts.sent else None
    refused = last is not None and last.state is TransmissionState.REJECTED
    if node.facts.cancelling or (refused and last is not None and last.retry is Retry.NEVER):
        return Stand.SETTLED
    return Stand.PERSON if send_time(model, node) is None else Stand.DUE


def may_move(model: Model, node: Node) -> bool:
    """Whether a safe move is left; once the run's end was asked for, that is asking alone."""
    if node.facts.cancelling:
        return bool(ask_times(model, node))
    again = node.facts.send_again
    let_go = again is not None and again >= node.facts.sent[-1].started_at
    return let_go or could_settle(model, node)


# --- its history, in the worlds that fit it ---------------------------------------------------


def node_of(model: Model, facts: Facts, now: datetime) -> Node:
    """The state of knowledge that `facts` are, with every world that may be behind it."""
    belief: Belief = {World(): 1.0}
    for each in in_order(facts):
        if isinstance(each, Sent):
            belief = after_send(model, later(model, belief, each.started_at), each)
        else:
            belief = after_asking(later(model, belief, each.observed_at), each)
    return Node(facts, now, later(model, belief, now), rests=0, denials=0)


def in_order(facts: Facts) -> list[Sent | Known]:
    """Sends and what was asked, by their times."""
    return sorted(
        (*facts.sent, *facts.known),
        key=lambda each: each.started_at if isinstance(each, Sent) else each.observed_at,
    )


def later(model: Model, belief: Belief, now: datetime) -> Belief:
    return {model.destination.later(world, now): 1.0 for world in belief}


def after_send(model: Model, belief: Belief, sent: Sent) -> Belief:
    key, body = model.rules.key_of(sent.number), model.rules.body_of(sent.number)
    return {
        possible.world: 1.0
        for world in belief
        for possible in model.destination.sends(world, key, body, sent.started_at)
        if told(model, possible.report) == told_of(sent)
    }


def told(model: Model, report: Report) -> tuple[object, ...]:
    answer = model.classified(report)
    return (answer.state, answer.meaning, answer.resolves_earlier, answer.retry)


def told_of(sent: Sent) -> tuple[object, ...]:
    """What was learnt by a send; what may still be on its way has told nothing."""
    if sent.state is TransmissionState.SENDING:
        sent = replace(sent, state=TransmissionState.UNKNOWN)
    return (sent.state, sent.meaning, sent.resolves_earlier, sent.retry)


def after_asking(belief: Belief, known: Known) -> Belief:
    shown = known.kind is EvidenceKind.LOOKUP and known.completes
    if not shown and known.kind is not EvidenceKind.ABSENCE:
        return belief
    at = known.observed_at
    return {world: 1.0 for world in belief if (world.visible_from <= at) is shown}
