"""Which decisions are offered, and why not the others: the core's answer, not the page's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciliation.core.contracts import Retry
from reconciliation.core.facts import Dispatch, Facts
from reconciliation.core.options import option, options
from reconciliation.core.states import DecisionKind, EvidenceKind, OperationState
from tests.unit.facts import BLIND, KEYED, LOOKED_UP, S, at, facts, known, sent

HELD = OperationState.HELD
LOST = sent(1, S.UNKNOWN)
ABSENT = known(EvidenceKind.ABSENCE, 40)


def offered(about: Facts, seconds: float) -> set[str]:
    return {offer.kind.value for offer in options(about, at(seconds)) if offer.allowed}


@pytest.mark.parametrize(
    ("about", "seconds", "kinds"),
    [
        # neither key nor look-up: never a second send
        (facts(BLIND, LOST, state=HELD), 60, {"applied", "replace"}),
        # the key still guards
        (facts(KEYED, LOST, sent(2, S.REJECTED, 20), state=HELD), 60, {"applied", "send_again"}),
        # the key may be forgotten
        (facts(KEYED, LOST, state=HELD), 4000, {"applied", "replace"}),
        # the provider has shown that it has no record
        (facts(LOOKED_UP, LOST, seen=(ABSENT,), state=HELD), 60, {"applied", "send_again"}),
        # it has not been asked
        (facts(LOOKED_UP, LOST, state=HELD), 60, {"applied"}),
        # nothing was sent
        (facts(KEYED, state=HELD), 60, {"send_again"}),
        (facts(KEYED, state=HELD, missing=("an owner",)), 60, set()),
        (facts(KEYED, state=HELD, dispatch=Dispatch.OFF), 60, set()),
        # the run's end was asked for: nothing more is sent
        (facts(KEYED, LOST, sent(2, S.REJECTED, 20), state=HELD, cancelling=True), 60, {"applied"}),
        (facts(KEYED, state=HELD, cancelling=True), 60, set()),
        # refused each time: nothing happened
        (
            facts(
                KEYED,
                *(sent(n, S.REJECTED, n, retry=Retry.SAME_KEY) for n in (1, 2, 3)),
                state=HELD,
            ),
            60,
            {"send_again"},
        ),
        # it took effect, and the result is not as meant
        (
            facts(
                KEYED,
                sent(1, S.ACKNOWLEDGED),
                seen=(known(EvidenceKind.RECEIPT, 1, completes=True, resource="r_1"),),
                state=OperationState.POSTCONDITION_FAILED,
            ),
            60,
            {"applied"},
        ),
    ],
)
def test_what_is_offered(about: Facts, seconds: float, kinds: set[str]) -> None:
    assert offered(about, seconds) == kinds | {"abandon", "keep_holding"}


def test_what_is_not_offered_says_why_and_what_would_help() -> None:
    for offer in options(facts(BLIND, LOST, state=HELD), at(60)):
        if not offer.allowed:
            assert offer.why_not
            assert offer.what_helps


def test_a_send_that_may_be_on_its_way_bars_another() -> None:
    about = facts(KEYED, sent(1, S.UNKNOWN, 55), state=HELD)
    offer = option(DecisionKind.SEND_AGAIN, about, at(60))
    assert (offer.allowed, offer.why_not) == (False, "An earlier send may still be on its way.")


@pytest.mark.parametrize("about", [facts(KEYED, LOST, state=HELD), facts(KEYED, state=HELD)])
def test_for_a_run_that_was_cancelled_nothing_is_sent_again(about: Facts) -> None:
    offer = option(DecisionKind.SEND_AGAIN, replace(about, cancelling=True), at(60))
    assert (offer.allowed, offer.why_not) == (
        False,
        "The run's end was asked for: nothing more is sent for it.",
    )


def test_offered_decisions_come_first() -> None:
    allowed = [offer.allowed for offer in options(facts(BLIND, LOST, state=HELD), at(60))]
    assert allowed == sorted(allowed, reverse=True)
