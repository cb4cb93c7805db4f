"""When a second operation may be opened: every rule that stands against one, by a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciliation.core.contracts import Meaning
from reconciliation.core.decide import decide
from reconciliation.core.facts import Dispatch, Facts, Send
from reconciliation.core.options import option
from reconciliation.core.second_identity import Undoing
from reconciliation.core.states import DecisionKind, EvidenceKind, OperationState
from tests.unit.facts import BLIND, KEYED, LOOKED_UP, RECEIPT, VERIFYING, S, at, facts, known, sent

HELD = OperationState.HELD
LOST = sent(1, S.UNKNOWN)
FINAL = BLIND.model_copy(update={"irreversible": True})
FINAL_LOOKED_UP = LOOKED_UP.model_copy(update={"irreversible": True})
ABSENT = known(EvidenceKind.ABSENCE, 40)
WRONG = facts(
    VERIFYING,
    sent(1, S.ACKNOWLEDGED),
    seen=(RECEIPT, known(EvidenceKind.LOOKUP, 2, postcondition=False)),
    state=OperationState.POSTCONDITION_FAILED,
)


@pytest.mark.parametrize(
    ("about", "seconds", "why"),
    [
        (facts(BLIND, LOST, state=HELD), 60, ""),
        (facts(KEYED, LOST, state=HELD), 4000, ""),
        (facts(BLIND, LOST, state=HELD, dispatch=Dispatch.OFF), 60, ""),
        (facts(BLIND, LOST, state=HELD), 5, "may still be on its way"),
        (facts(BLIND, LOST, state=HELD, cancelling=True), 60, "end was asked for"),
        (facts(BLIND, LOST, state=HELD, missing=("an owner",)), 60, "Missing: an owner"),
        (facts(BLIND, LOST, state=HELD, approved_once=True), 60, "nobody's approval"),
        (facts(BLIND, LOST, state=HELD, authorised=False), 60, "not authorised"),
        (facts(BLIND, LOST, state=HELD, precondition_holds=False), 60, "not true now"),
        (facts(BLIND, LOST, seen=(RECEIPT,), state=HELD), 60, "a second time"),
        # The same operation can be sent again, now or when dispatch is on.
        (facts(KEYED, LOST, state=HELD), 60, "sent again under its own guard"),
        (facts(KEYED, LOST, state=HELD, dispatch=Dispatch.OFF), 60, "its own guard"),
        (facts(KEYED, state=HELD), 60, "its own guard"),
        (facts(LOOKED_UP, LOST, seen=(ABSENT,), state=HELD), 60, "its own guard"),
        # The provider can say more than it has.
        (facts(LOOKED_UP, LOST, state=HELD), 60, "has not shown that it has no record"),
        (
            facts(BLIND, LOST, seen=(known(EvidenceKind.CONFLICT, 20),), state=HELD),
            60,
            "do not fit",
        ),
        # What cannot be called back is never meant twice.
        (facts(FINAL, LOST, state=HELD), 60, "cannot be called back"),
        # Its key was made for another account: nothing of it can be repeated or asked there.
        (facts(KEYED, LOST, state=HELD, elsewhere=True, missing=("the account",)), 60, ""),
        (facts(KEYED, state=HELD, elsewhere=True, missing=("the account",)), 60, ""),
        (facts(KEYED, sent(1, S.UNKNOWN, meaning=Meaning.KEY_MISMATCH), state=HELD), 4000, ""),
    ],
)
def test_when_a_replacement_is_offered(about: Facts, seconds: float, why: str) -> None:
    offer = option(DecisionKind.REPLACE, about, at(seconds))
    assert offer.allowed is (why == "")
    assert why in offer.why_not
    assert bool(offer.why_not) is bool(offer.what_helps)


@pytest.mark.parametrize(
    ("about", "undoing", "why"),
    [
        (WRONG, Undoing.DECLARED, ""),
        (WRONG, Undoing.NOT_DECLARED, "no way to undo"),
        # Nobody is told to undo by hand what cannot be undone.
        (facts(FINAL, LOST, state=HELD), Undoing.NOT_DECLARED, "cannot be called back"),
        (WRONG, Undoing.NOT_KNOWN, "not known here"),
        (WRONG, Undoing.IS_ONE, "an undo itself"),
        (replace(WRONG, cancelling=True), Undoing.DECLARED, "end was asked for"),
        (
            replace(WRONG, contract=VERIFYING.model_copy(update={"irreversible": True})),
            Undoing.DECLARED,
            "cannot be called back",
        ),
        (facts(BLIND, LOST, state=HELD), Undoing.DECLARED, "Nothing of it is proven"),
        (facts(LOOKED_UP, LOST, seen=(ABSENT,), state=HELD), Undoing.DECLARED, "is proven"),
    ],
)
def test_when_an_undo_is_offered(about: Facts, undoing: Undoing, why: str) -> None:
    offer = option(DecisionKind.UNDO, about, at(60), undoing)
    assert offer.allowed is (why == "")
    assert why in offer.why_not
    assert bool(offer.why_not) is bool(offer.what_helps)


def test_what_cannot_be_called_back_is_not_repeated_on_a_person_s_word_and_absence_alone() -> None:
    """An absence that the contract does not make proof is no documented guarantee."""
    denied = known(EvidenceKind.OPERATOR, 50, denies=True)
    for contract, repeats in ((LOOKED_UP, True), (FINAL_LOOKED_UP, False)):
        about = facts(contract, LOST, seen=(ABSENT, denied), send_again=at(50))
        assert isinstance(decide(about, at(60)), Send) is repeats
    offer = option(
        DecisionKind.SEND_AGAIN, facts(FINAL_LOOKED_UP, LOST, seen=(ABSENT,), state=HELD), at(60)
    )
    assert (offer.allowed, "cannot be called back" in offer.why_not) == (False, True)


def test_nothing_of_what_is_settled_is_moved_whatever_contradicts_it_later() -> None:
    about = replace(WRONG, state=OperationState.VERIFIED)
    for kind in (
        DecisionKind.SEND_AGAIN,
        DecisionKind.REPLACE,
        DecisionKind.UNDO,
        DecisionKind.ABANDON,
    ):
        offer = option(kind, about, at(60), Undoing.DECLARED)
        assert (offer.allowed, "It is settled" in offer.why_not) == (False, True)
    assert option(DecisionKind.APPLIED, about, at(60)).allowed


def test_what_would_help_is_nothing_that_is_not_offered_itself() -> None:
    helps = option(DecisionKind.REPLACE, WRONG, at(60), Undoing.NOT_DECLARED).what_helps
    assert helps == "Nothing. Accept it as done, or abandon it."
    never_sent = option(DecisionKind.REPLACE, facts(KEYED, state=HELD), at(60)).what_helps
    assert never_sent == "Nothing. Send it instead."
