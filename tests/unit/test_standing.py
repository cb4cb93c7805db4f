"""Who may do what about a case, for every way in which somebody can stand to it."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import pytest

from reconciliation.core.facts import Facts
from reconciliation.core.standing import (
    MAY_NOT,
    Standing,
    bar_in_words,
    must_ask_first,
    takes_two,
    why_not_confirm,
    why_not_decide,
    why_not_withdraw,
)
from reconciliation.core.states import DecisionKind, EvidenceKind
from tests.unit.facts import BLIND, LOOKED_UP, S, at, facts, known, sent

EVERY = [Standing(*each) for each in product([False, True], repeat=5)]
WEIGHTY = [
    kind
    for kind in DecisionKind
    if kind not in (DecisionKind.KEEP_HOLDING, DecisionKind.CORRECTION)
]


@pytest.mark.parametrize("standing", EVERY, ids=str)
def test_who_may_what(standing: Standing) -> None:
    decides, confirms = not why_not_decide(standing), not why_not_confirm(standing)
    impartial = not (standing.started or standing.approved)
    assert decides == (standing.decides and impartial)
    assert confirms == (standing.seconds and impartial and not standing.proposed)
    assert (not why_not_withdraw(standing)) == standing.proposed
    # Whatever the rights: nobody confirms what they proposed, and nobody settles what they began or
    # approved.
    assert not (confirms and standing.proposed)
    assert impartial or not (decides or confirms)


@pytest.mark.parametrize("standing", EVERY, ids=str)
def test_others_read_that_somebody_is_barred_where_they_are(standing: Standing) -> None:
    said = bar_in_words(standing.decides, standing.started, standing.approved)
    assert bool(said) == bool(why_not_decide(standing))
    assert said.endswith(MAY_NOT if said else "")


@pytest.mark.parametrize(
    ("people", "second_from", "amount", "two"),
    [
        (1, None, None, False),
        (1, None, "1000000", False),
        (2, None, None, True),
        (2, None, "0.01", True),
        (1, "1000", None, False),
        (1, "1000", "999.9999", False),
        (1, "1000", "1000", True),
        (1, "1000", "-1000", True),
        (2, "1000", "1", True),
    ],
)
@pytest.mark.parametrize("kind", WEIGHTY)
def test_when_it_takes_two(
    kind: DecisionKind, people: int, second_from: str | None, amount: str | None, two: bool
) -> None:
    at_stake = Decimal(amount) if amount else None
    limit = Decimal(second_from) if second_from else None
    assert takes_two(kind, people, limit, at_stake) is two
    assert not takes_two(DecisionKind.KEEP_HOLDING, people, limit, at_stake)  # nothing moves by it


LOST = sent(1, S.UNKNOWN)


@pytest.mark.parametrize(
    ("about", "minutes", "first"),
    [
        (facts(LOOKED_UP, LOST), 1, True),  # never asked
        (facts(LOOKED_UP, LOST, seen=(known(EvidenceKind.ABSENCE, 60),)), 15.9, False),
        (facts(LOOKED_UP, LOST, seen=(known(EvidenceKind.ABSENCE, 60),)), 16.1, True),
        # That it could not be asked is all that asking can bring.
        (facts(LOOKED_UP, LOST, seen=(known(EvidenceKind.UNAVAILABLE, 60),)), 15, False),
        # A person's word is not the provider's.
        (facts(LOOKED_UP, LOST, seen=(known(EvidenceKind.OPERATOR, 60),)), 2, True),
        (facts(LOOKED_UP), 60, False),  # nothing was sent
        (facts(BLIND, LOST), 600, False),  # nobody to ask
        (facts(LOOKED_UP, LOST, elsewhere=True), 60, False),
    ],
)
def test_when_the_provider_must_be_asked_again_first(
    about: Facts, minutes: float, first: bool
) -> None:
    assert must_ask_first(DecisionKind.APPLIED, about, at(minutes * 60)) is first
    for kind in (DecisionKind.ABANDON, DecisionKind.KEEP_HOLDING):  # they rest on nothing it says
        assert not must_ask_first(kind, about, at(minutes * 60))
