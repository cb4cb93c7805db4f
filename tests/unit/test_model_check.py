"""Every behaviour that a contract permits, in every order: never two effects, never a wrong fact.

And the check itself is checked: each seeded mistake in `decide` must be found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from reconciliation.core.contracts import Budget, Contract, Retry
from reconciliation.core.decide import decide
from reconciliation.core.facts import Advance, Facts, Hold, Move, Reject, Send, Wait
from reconciliation.core.model_check import check
from reconciliation.core.states import EvidenceKind, Purpose, TransmissionState
from tests.unit.facts import (
    ABSENCE_PROVES,
    BLIND,
    BOTH,
    KEY,
    KEYED,
    LOOKED_UP,
    OVERLAPPING,
    REPLAY,
    VERIFYING,
)

CONTRACTS = {
    "blind": BLIND,
    "keyed": KEYED,
    "overlapping": OVERLAPPING,
    "look-up": LOOKED_UP,
    "absence proves": ABSENCE_PROVES,
    "both": BOTH,
    "verifying": VERIFYING,
}


def small(of: Contract) -> Contract:
    """The same contract with small budgets, so that every path is short.

    With key and look-up there are a million paths of three sends: two sends show the same.
    """
    sends = 2 if of.key and of.look_up else 3
    budget = Budget(transmissions=sends, not_sent=2, look_ups=2, first_pause_seconds=2)
    return of.model_copy(update={"budget": budget})


@pytest.mark.parametrize("name", CONTRACTS)
def test_no_permitted_behaviour_leads_to_two_effects_or_a_wrong_fact(name: str) -> None:
    report = check(small(CONTRACTS[name]))
    assert report.breaches == []
    assert report.ends


@pytest.mark.parametrize("name", CONTRACTS)
def test_once_the_run_is_cancelled_nothing_is_sent_and_no_effect_is_dropped(name: str) -> None:
    def cancelling(facts: Facts, now: datetime) -> Move:
        move = decide(replace(facts, cancelling=bool(facts.sent)), now)
        assert not (facts.sent and isinstance(move, Send))
        return move

    report = check(small(CONTRACTS[name]), cancelling)
    assert report.breaches == []
    assert report.ends["dropped"]


Mutant = Callable[[Facts, datetime], Move]


def fresh_key_per_retry(facts: Facts, now: datetime) -> Move:
    """A lost send is sent again whatever the contract says."""
    move = decide(facts, now)
    return Send(Purpose.FIRST) if isinstance(move, Hold) and len(facts.sent) < 3 else move


def replay_after_the_window(facts: Facts, now: datetime) -> Move:
    limit = facts.replay_not_after
    return decide(
        replace(facts, replay_not_after=limit + timedelta(days=365) if limit else None), now
    )


def window_from_the_latest_send(facts: Facts, now: datetime) -> Move:
    if facts.sent and facts.contract.replay:
        limit = facts.sent[-1].started_at + facts.contract.replay.window
        return decide(replace(facts, replay_not_after=limit), now)
    return decide(facts, now)


def absence_taken_as_proof(facts: Facts, now: datetime) -> Move:
    rule = facts.contract.look_up
    if rule is None:
        return decide(facts, now)
    proving = rule.model_copy(update={"absence_proof_after_seconds": 0})
    loose = tuple(replace(sent, in_flight_until=sent.started_at) for sent in facts.sent)
    changed = facts.contract.model_copy(update={"look_up": proving})
    return decide(replace(facts, contract=changed, sent=loose), now)


def no_visibility_lag_before_absence_proves(facts: Facts, now: datetime) -> Move:
    rule = facts.contract.look_up
    if rule is None or rule.absence_proof_after_seconds is None:
        return decide(facts, now)
    early = rule.model_copy(update={"absence_proof_after_seconds": 0})
    return decide(
        replace(facts, contract=facts.contract.model_copy(update={"look_up": early})), now
    )


def in_flight_not_waited_for_before_absence_proves(facts: Facts, now: datetime) -> Move:
    early = tuple(
        replace(sent, in_flight_until=sent.started_at - timedelta(minutes=2)) for sent in facts.sent
    )
    return decide(replace(facts, sent=early), now)


def lost_taken_as_refused(facts: Facts, now: datetime) -> Move:
    """A 502 is taken for a rejection."""
    return decide(resent_as(facts, TransmissionState.UNKNOWN, TransmissionState.REJECTED), now)


def lost_taken_as_not_sent(facts: Facts, now: datetime) -> Move:
    """A time-out is taken for a failure to send."""
    return decide(resent_as(facts, TransmissionState.UNKNOWN, TransmissionState.NOT_SENT), now)


def dead_worker_taken_as_not_sent(facts: Facts, now: datetime) -> Move:
    return decide(resent_as(facts, TransmissionState.SENDING, TransmissionState.NOT_SENT), now)


def resent_as(facts: Facts, old: TransmissionState, new: TransmissionState) -> Facts:
    sent = tuple(replace(each, state=new) if each.state is old else each for each in facts.sent)
    return replace(facts, sent=sent)


def refusal_speaks_for_earlier_sends(facts: Facts, now: datetime) -> Move:
    sent = tuple(
        replace(each, resolves_earlier=each.state is TransmissionState.REJECTED)
        for each in facts.sent
    )
    return decide(replace(facts, sent=sent), now)


def only_the_last_send_counts(facts: Facts, now: datetime) -> Move:
    return decide(replace(facts, sent=facts.sent[-1:]), now)


def busy_taken_as_refused_for_good(facts: Facts, now: datetime) -> Move:
    sent = tuple(replace(each, retry=Retry.NEVER, resolves_earlier=True) for each in facts.sent)
    return decide(replace(facts, sent=sent), now)


def lost_taken_as_done(facts: Facts, now: datetime) -> Move:
    move = decide(facts, now)
    return Advance("guess") if isinstance(move, Hold) and facts.sent else move


def hold_turned_into_rejection(facts: Facts, now: datetime) -> Move:
    move = decide(facts, now)
    return Reject() if isinstance(move, Hold) and facts.sent else move


def look_up_away_taken_as_absent(facts: Facts, now: datetime) -> Move:
    known = tuple(
        replace(each, kind=EvidenceKind.ABSENCE) if each.kind is EvidenceKind.UNAVAILABLE else each
        for each in facts.known
    )
    return decide(replace(facts, known=known), now)


def key_promised_where_there_is_none(facts: Facts, now: datetime) -> Move:
    if not facts.sent:
        return decide(facts, now)
    changed = facts.contract.model_copy(update={"key": KEY, "replay": REPLAY})
    limit = facts.sent[0].started_at + REPLAY.window
    return decide(replace(facts, contract=changed, replay_not_after=limit), now)


def waits_without_an_end(facts: Facts, now: datetime) -> Move:
    move = decide(facts, now)
    return Wait(None, move.reason) if isinstance(move, Wait) else move


def waits_for_the_past(facts: Facts, now: datetime) -> Move:
    move = decide(facts, now)
    return Wait(now, move.reason) if isinstance(move, Wait) else move


def sends_again_after_success(facts: Facts, now: datetime) -> Move:
    return decide(replace(facts, known=()), now)


MUTANTS: list[Mutant] = [
    fresh_key_per_retry,
    replay_after_the_window,
    window_from_the_latest_send,
    absence_taken_as_proof,
    no_visibility_lag_before_absence_proves,
    in_flight_not_waited_for_before_absence_proves,
    lost_taken_as_refused,
    lost_taken_as_not_sent,
    dead_worker_taken_as_not_sent,
    refusal_speaks_for_earlier_sends,
    only_the_last_send_counts,
    busy_taken_as_refused_for_good,
    lost_taken_as_done,
    hold_turned_into_rejection,
    look_up_away_taken_as_absent,
    key_promised_where_there_is_none,
    waits_without_an_end,
    waits_for_the_past,
    sends_again_after_success,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_every_seeded_mistake_is_found(mutant: Mutant) -> None:
    contracts = [small(each) for each in CONTRACTS.values()]
    assert any(check(each, mutant, enough=1).breaches for each in contracts)
