"""Stripe's two generations of keys, as the shipped contracts have them: what 26 hours change."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciliation.core.classify import Answer, Phase, Report, classify
from reconciliation.core.contracts import Contract
from reconciliation.core.decide import decide
from reconciliation.core.facts import HOLD_SENTENCES, Facts, Hold, HoldReason, LookUp, Send
from reconciliation.core.protection import in_flight_until
from reconciliation.core.states import EvidenceKind, OperationState, Purpose, TransmissionState
from reconciliation.services.contracts import shipped
from tests.unit.facts import T0, S, facts, known, sent

BY_SLUG = {contract.slug: contract for contract in shipped()}
V1, V2 = BY_SLUG["stripe-v1"], BY_SLUG["stripe-v2"]
HOUR = timedelta(hours=1)
REPLAY = Send(Purpose.REPLAY)
PLAIN_V1 = V1.model_copy(update={"look_up": None})  # of an action that cannot be listed


def lost(contract: Contract, *asked: float) -> Facts:
    """The first send's response was lost; look-ups found nothing, so many seconds after it."""
    first = sent(1, S.UNKNOWN)
    absent = tuple(known(EvidenceKind.ABSENCE, seconds) for seconds in asked)
    return facts(contract, first, seen=absent)


def test_after_26_hours_v1_is_not_replayed_and_the_reason_says_that_the_key_may_be_gone() -> None:
    now = T0 + 26 * HOUR
    assert decide(lost(V1), now) == LookUp()
    day = 26 * 3600.0
    found_nothing = lost(V1, *(day + 400 * n for n in range(V1.budget.look_ups)))
    held = Hold(HoldReason.WINDOW_OVER)
    assert decide(found_nothing, now + 4 * HOUR) == held
    assert decide(lost(PLAIN_V1), now) == held
    assert "The key may be gone" in str(HOLD_SENTENCES[HoldReason.WINDOW_OVER])


def test_after_26_hours_with_the_list_away_the_reason_says_both() -> None:
    day = 26 * 3600.0
    away = tuple(known(EvidenceKind.UNAVAILABLE, day + 400 * n) for n in range(V1.budget.look_ups))
    move = decide(facts(V1, sent(1, S.UNKNOWN), seen=away), T0 + 30 * HOUR)
    assert isinstance(move, Hold)
    said = str(HOLD_SENTENCES[move.reason])
    assert "could not be asked" in said
    assert "The key may be gone" in said


@pytest.mark.parametrize("hours", [0.1, 12, 22.9])
def test_inside_the_day_less_its_margin_v1_is_replayed(hours: float) -> None:
    assert decide(lost(PLAIN_V1), T0 + hours * HOUR) == REPLAY


def test_on_v2_26_hours_are_inside_the_window_and_30_days_are_not() -> None:
    assert decide(lost(V2), T0 + 26 * HOUR) == REPLAY
    assert decide(lost(V2), T0 + 29 * 24 * HOUR) == Hold(HoldReason.WINDOW_OVER)


def test_a_failed_first_try_is_a_saved_error_on_v1_and_none_on_v2() -> None:
    declined = Answer(402, authentic=True, complete=True, error_type="card_error")
    report = Report(Phase.ANSWER, declined)
    assert classify(report, V1).state is TransmissionState.REJECTED
    assert classify(report, V2).state is TransmissionState.UNKNOWN
    first = sent(1, classify(report, V2).state, meaning=classify(report, V2).meaning)
    after = facts(V2, first, state=OperationState.UNKNOWN)
    assert decide(after, in_flight_until(V2, T0)) == REPLAY
