"""What the model says of an operation's own history, beside what the rules do with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from reconciliation.core.decide import decide
from reconciliation.core.facts import Advance, Drop, Hold, Known, Move, Reject, Wait
from reconciliation.core.model_best import is_settled
from reconciliation.core.model_check import QUICKER, follow
from reconciliation.core.model_history import Stand, node_of, stand_of
from reconciliation.core.model_kinds import KINDS
from reconciliation.core.model_nodes import MOMENT, Model, Node
from reconciliation.core.states import EvidenceKind, TransmissionState

OVER = (Advance, Reject, Drop, Hold)


def walked(name: str) -> Iterator[tuple[Model, Node, Move]]:
    """Every state of knowledge that the rules come to under a contract, and their move there."""
    model = Model(QUICKER.within(KINDS[name]), QUICKER)
    stack = [model.root()]
    while stack:
        node = stack.pop()
        move = decide(node.facts, node.now)
        yield model, node, move
        if not isinstance(move, OVER):
            stack += follow(model, node, move)


@pytest.mark.parametrize("name", KINDS)
def test_a_history_leads_to_the_worlds_that_the_walk_came_to(name: str) -> None:
    for model, node, _ in walked(name):
        now = node.now + MOMENT
        assert set(node_of(model, node.facts, now).belief) == set(model.at(node, now, "").belief)


@pytest.mark.parametrize("name", KINDS)
def test_a_person_is_wanted_where_the_rules_hold_and_nowhere_else(name: str) -> None:
    for _, node, move in walked(name):
        stand = stand_of(node.facts, node.now)
        if isinstance(move, Hold):
            assert stand is Stand.PERSON, node.path
        elif isinstance(move, OVER):
            assert stand is Stand.SETTLED, node.path
        else:
            # What it waits for may be no more than that nothing is on its way any more.
            waits = isinstance(move, Wait) and stand is Stand.PERSON
            assert stand is Stand.DUE or waits, node.path


def test_what_the_contract_does_not_permit_is_told() -> None:
    (refused,) = (
        node
        for _, node, move in walked("stored-refusals")
        if len(node.facts.sent) == 1 and node.facts.sent[0].resolves_earlier and move == Reject()
    )
    done = replace(refused.facts.sent[0], state=TransmissionState.REJECTED)
    facts = replace(refused.facts, sent=(done, replace(done, number=2, resolves_earlier=True)))
    assert stand_of(facts, refused.now) is Stand.SETTLED
    strange = replace(facts, contract=KINDS["blind"])
    assert stand_of(strange, refused.now) is Stand.IMPOSSIBLE


def test_records_that_disagree_want_a_person_until_one_has_said_which_is_right() -> None:
    node = next(n for _, n, move in walked("keyed") if isinstance(move, Advance))
    assert is_settled(node)
    seen = (*node.facts.known, Known(EvidenceKind.CONFLICT, node.now))
    disputed = replace(node.facts, known=seen)
    assert stand_of(disputed, node.now) is Stand.PERSON
    said = Known(EvidenceKind.OPERATOR, node.now + MOMENT, completes=True)
    assert stand_of(replace(disputed, known=(*seen, said)), node.now + MOMENT) is Stand.SETTLED
