"""The whole table of architecture §8: from facts and time to the one next move."""

from __future__ import annotations

from datetime import datetime

import pytest

from reconciliation.core.contracts import Meaning, Retry
from reconciliation.core.decide import decide
from reconciliation.core.facts import (
    HOLD_SENTENCES,
    LATER,
    WAIT_SENTENCES,
    Advance,
    Dispatch,
    Drop,
    Facts,
    GiveUp,
    Hold,
    HoldReason,
    LookUp,
    Move,
    Reject,
    Send,
    Verify,
    Wait,
    WaitReason,
)
from reconciliation.core.states import EvidenceKind, OperationState, Purpose
from tests.unit.facts import (
    ABSENCE_PROVES,
    BLIND,
    BOTH,
    KEYED,
    LOOKED_UP,
    OVERLAPPING,
    RECEIPT,
    VERIFYING,
    S,
    at,
    contract,
    facts,
    known,
    sent,
)

INTENDED, APPLIED, VERIFIED = (
    OperationState.INTENDED,
    OperationState.APPLIED,
    OperationState.VERIFIED,
)
LOST = sent(1, S.UNKNOWN)
REFUSED = sent(1, S.REJECTED)
BUSY = sent(1, S.REJECTED, retry=Retry.SAME_KEY)
FIRST, REPLAY = Send(Purpose.FIRST), Send(Purpose.REPLAY)
ABSENT = EvidenceKind.ABSENCE
AWAY = EvidenceKind.UNAVAILABLE
OPERATOR = EvidenceKind.OPERATOR


def hold(reason: str) -> Hold:
    return Hold(HoldReason(reason))


# Both give up after a minute, whatever is left of the rest.
SHORT = {"budget": KEYED.budget.model_copy(update={"elapsed_seconds": 60.0})}
SHORT_KEYED, SHORT_LOOKED_UP = KEYED.model_copy(update=SHORT), LOOKED_UP.model_copy(update=SHORT)

ROWS: list[tuple[str, Facts, datetime, Move]] = [
    # --- the effect is proven
    ("a receipt, nothing to check", facts(KEYED, sent(1, S.ACKNOWLEDGED), seen=(RECEIPT,)), at(2), Advance("r_1")),
    ("a receipt, its result unchecked", facts(VERIFYING, sent(1, S.ACKNOWLEDGED), seen=(RECEIPT,)), at(2), Verify("r_1")),
    ("the result is as it should be", facts(VERIFYING, sent(1, S.ACKNOWLEDGED), seen=(RECEIPT, known(EvidenceKind.LOOKUP, 2, postcondition=True, resource="r_1"))), at(3), Advance("r_1")),
    ("the result is not", facts(VERIFYING, sent(1, S.ACKNOWLEDGED), seen=(RECEIPT, known(EvidenceKind.LOOKUP, 2, postcondition=False))), at(3), hold("postcondition_failed")),
    ("the check could not be made: paced", facts(VERIFYING, sent(1, S.ACKNOWLEDGED), seen=(RECEIPT, known(AWAY, 2))), at(3), Wait(at(4), WaitReason.VERIFY_LATER)),
    ("the check could not be made too often", facts(VERIFYING, sent(1, S.ACKNOWLEDGED), seen=(RECEIPT, *(known(AWAY, 2 + n) for n in range(3)))), at(99), hold("not_verifiable")),
    ("a look-up found what a lost answer had done", facts(LOOKED_UP, LOST, seen=(known(EvidenceKind.LOOKUP, 20, completes=True, resource="m_1"),)), at(21), Advance("m_1")),
    ("verified once is verified", facts(VERIFYING, sent(1, S.ACKNOWLEDGED), seen=(RECEIPT,), state=VERIFIED), at(9), Advance("r_1")),
    ("records that disagree outweigh a receipt", facts(KEYED, LOST, seen=(RECEIPT, known(EvidenceKind.CONFLICT, 9))), at(10), hold("conflict")),
    ("a person's word outweighs records that disagreed before", facts(KEYED, LOST, seen=(known(EvidenceKind.CONFLICT, 9), known(OPERATOR, 10, completes=True, resource="r_2"))), at(11), Advance("r_2")),
    ("records that disagree after a person's word do not", facts(KEYED, LOST, seen=(known(OPERATOR, 8, completes=True, resource="r_2"), known(EvidenceKind.CONFLICT, 9))), at(11), hold("conflict")),
    # --- nothing that was sent can have had an effect
    ("never sent", facts(KEYED, state=INTENDED), at(0), FIRST),
    ("could not connect: a pause", facts(KEYED, sent(1, S.NOT_SENT), state=INTENDED), at(1), Wait(at(2), WaitReason.PAUSE)),
    ("could not connect: again", facts(BLIND, sent(1, S.NOT_SENT), state=INTENDED), at(2), FIRST),
    ("could not connect, five times", facts(BLIND, *(sent(n, S.NOT_SENT, n * 99) for n in range(1, 6)), state=INTENDED), at(999), hold("unreachable")),
    ("refused for good", facts(KEYED, REFUSED, state=INTENDED), at(1), Reject()),
    ("refused for now: not before it said", facts(KEYED, sent(1, S.REJECTED, retry=Retry.SAME_KEY, retry_after_at=at(30)), state=INTENDED), at(10), Wait(at(30), WaitReason.PAUSE)),
    ("refused for now: again", facts(BLIND, BUSY, state=INTENDED), at(2), REPLAY),
    ("refused for now, by a contract that was broken", facts(BLIND, BUSY, state=INTENDED, contradicted=True), at(2), hold("contract_contradicted")),
    ("what never left is sent, whatever was broken", facts(BLIND, sent(1, S.NOT_SENT), state=INTENDED, contradicted=True), at(2), FIRST),
    ("refused for now, too often", facts(KEYED, *(sent(n, S.REJECTED, n * 99, retry=Retry.SAME_KEY) for n in range(1, 4)), state=INTENDED), at(999), hold("refused_too_often")),
    # --- what guards every send
    ("the provider is not ready", facts(KEYED, state=INTENDED, missing=("an owner",)), at(0), hold("not_ready")),
    ("dispatch is paused", facts(KEYED, state=INTENDED, dispatch=Dispatch.PAUSED), at(0), Wait(None, WaitReason.DISPATCH)),
    ("dispatch is off", facts(KEYED, state=INTENDED, dispatch=Dispatch.OFF), at(0), Wait(None, WaitReason.DISPATCH)),
    ("the authorisation has lapsed", facts(KEYED, state=INTENDED, authorised=False), at(0), hold("authorisation_lapsed")),
    ("the precondition is gone", facts(KEYED, state=INTENDED, precondition_holds=False), at(0), hold("precondition_gone")),
    # --- unknown, and a key
    ("lost: nothing more while it may be on its way", facts(KEYED, LOST), at(5), Wait(at(11), WaitReason.IN_FLIGHT)),
    ("lost: at once where the provider allows it", facts(OVERLAPPING, LOST), at(5), REPLAY),
    ("lost: the same key inside the window", facts(KEYED, LOST), at(12), REPLAY),
    ("its sender died: as lost", facts(KEYED, sent(1, S.SENDING)), at(12), REPLAY),
    ("the window must outlast the answer", facts(KEYED, LOST), at(3000 - 11), hold("window_over")),
    ("the last moment at which it does", facts(KEYED, LOST), at(3000 - 11.1), REPLAY),
    ("the window counts from the first send", facts(KEYED, LOST, sent(2, S.UNKNOWN, 2900)), at(2992), hold("window_over")),
    ("a pause that outlasts the window", facts(KEYED, LOST, sent(2, S.REJECTED, 2900, retry=Retry.SAME_KEY, retry_after_at=at(2995))), at(2950), hold("window_over")),
    ("dispatch off: seen to before the window ends", facts(KEYED, LOST, dispatch=Dispatch.OFF), at(20), Wait(at(2689 - 1e-6), WaitReason.DISPATCH)),
    ("its time is not up", facts(SHORT_KEYED, LOST), at(59), REPLAY),
    ("its time is up, though sends are left", facts(SHORT_KEYED, LOST), at(60), hold("time_spent")),
    ("its time is up, though look-ups are left", facts(SHORT_LOOKED_UP, LOST), at(60), hold("time_spent")),
    ("what would be asked past its time comes up then", facts(SHORT_LOOKED_UP, LOST, seen=(known(AWAY, 55, retry_after_at=at(500)),)), at(56), Wait(at(60), WaitReason.LOOK_UP_LATER)),
    ("proof counts whenever it comes", facts(SHORT_LOOKED_UP, LOST, seen=(known(EvidenceKind.LOOKUP, 70, completes=True, resource="m_1"),)), at(99), Advance("m_1")),
    ("a person's word begins its time anew", facts(SHORT_KEYED, LOST, send_again=at(100)), at(120), REPLAY),
    ("lost too often", facts(KEYED, *(sent(n, S.UNKNOWN, n * 99) for n in range(1, 4))), at(999), hold("budget_spent")),
    ("nobody has shown that it keeps keys", facts(KEYED, LOST, replay_trusted=False), at(12), hold("not_proven")),
    ("it was seen to break its contract", facts(KEYED, LOST, contradicted=True), at(12), hold("contract_contradicted")),
    ("lost, then refused: that says nothing of the first", facts(KEYED, LOST, sent(2, S.REJECTED, 20)), at(40), hold("refused_later")),
    ("lost, then busy: still unknown, again later", facts(KEYED, LOST, sent(2, S.REJECTED, 20, retry=Retry.SAME_KEY)), at(40), REPLAY),
    ("lost, then an answer that speaks for both", facts(KEYED, LOST, sent(2, S.REJECTED, 20, resolves_earlier=True)), at(40), Reject()),
    ("the key came with other parameters", facts(KEYED, LOST, sent(2, S.UNKNOWN, 20, meaning=Meaning.KEY_MISMATCH)), at(40), hold("key_mismatch")),
    ("the same key is still executing", facts(KEYED, LOST, sent(2, S.UNKNOWN, 20, meaning=Meaning.IN_FLIGHT)), at(40), REPLAY),
    ("dispatch off: shown to a person while a repeat is still safe", facts(KEYED, LOST, dispatch=Dispatch.OFF), at(2700), hold("window_closing")),
    ("a pause of ours is cut short by the window's end", facts(KEYED, LOST, sent(2, S.REJECTED, 2986, retry=Retry.SAME_KEY)), at(2988), Wait(at(2989 - 1e-6), WaitReason.PAUSE)),
    ("and then it is repeated", facts(KEYED, LOST, sent(2, S.REJECTED, 2986, retry=Retry.SAME_KEY)), at(2989 - 1e-6), REPLAY),
    ("it exists, says the provider", facts(BLIND, sent(1, S.UNKNOWN, meaning=Meaning.EXISTS)), at(1), hold("already_exists")),
    ("an answer of unknown outcome speaks for no other", facts(KEYED, LOST, sent(2, S.UNKNOWN, 20, resolves_earlier=True), cancelling=True), at(40), hold("run_cancelled")),
    # --- unknown, and a look-up
    ("it exists: whose it is can be asked", facts(LOOKED_UP, sent(1, S.UNKNOWN, meaning=Meaning.EXISTS)), at(5), LookUp()),
    ("the key came with other parameters: asked, never repeated", facts(BOTH, sent(1, S.UNKNOWN, meaning=Meaning.KEY_MISMATCH)), at(12), LookUp()),
    ("and not found", facts(BOTH, sent(1, S.UNKNOWN, meaning=Meaning.KEY_MISMATCH), seen=tuple(known(ABSENT, 20 + n * 60) for n in range(3))), at(999), hold("key_mismatch")),
    ("early questions do not use up the later ones", facts(LOOKED_UP, LOST, seen=tuple(known(ABSENT, 6 + n) for n in range(3))), at(15), Wait(at(16), WaitReason.LOOK_UP_LATER)),
    ("not before a record can be seen", facts(LOOKED_UP, LOST), at(1), Wait(at(5), WaitReason.LOOK_UP_LATER)),
    ("then it is asked for", facts(LOOKED_UP, LOST), at(5), LookUp()),
    ("asked for though dispatch is off", facts(LOOKED_UP, LOST, dispatch=Dispatch.OFF), at(5), LookUp()),
    ("found nothing: that proves nothing", facts(LOOKED_UP, LOST, seen=(known(ABSENT, 6),)), at(7), Wait(at(8), WaitReason.LOOK_UP_LATER)),
    ("found nothing, as often as it is asked", facts(LOOKED_UP, LOST, seen=tuple(known(ABSENT, 20 + n * 60) for n in range(3))), at(999), hold("absence_not_proof")),
    ("could never be asked", facts(LOOKED_UP, LOST, seen=tuple(known(AWAY, 20 + n * 60) for n in range(3))), at(999), hold("look_up_unavailable")),
    ("it said when to ask again", facts(LOOKED_UP, LOST, seen=(known(AWAY, 6, retry_after_at=at(90)),)), at(10), Wait(at(90), WaitReason.LOOK_UP_LATER)),
    ("nobody has shown that its look-up is true", facts(LOOKED_UP, LOST, look_up_trusted=False), at(12), hold("not_proven")),
    ("absence before the bound is no proof", facts(ABSENCE_PROVES, LOST, seen=(known(ABSENT, 70),)), at(71), Wait(at(72), WaitReason.LOOK_UP_LATER)),
    ("absence after the contract's bound is", facts(ABSENCE_PROVES, LOST, seen=(known(ABSENT, 71),)), at(72), REPLAY),
    ("when the early questions are asked, the next waits for the bound", facts(ABSENCE_PROVES, LOST, seen=(known(ABSENT, 6), known(ABSENT, 9), known(ABSENT, 14))), at(60), Wait(at(71), WaitReason.LOOK_UP_LATER)),
    ("absence proves nothing by a contract that was broken", facts(ABSENCE_PROVES, LOST, seen=(known(ABSENT, 71),), contradicted=True), at(72), hold("contract_contradicted")),
    # --- unknown, and both
    ("asks before it repeats", facts(BOTH, LOST), at(12), LookUp()),
    ("finding nothing, repeats under the key", facts(BOTH, LOST, seen=(known(ABSENT, 12),)), at(13), REPLAY),
    ("repeats before the window ends", facts(BOTH, LOST, seen=(known(AWAY, 2987),)), at(2988), REPLAY),
    ("after the window it only asks", facts(BOTH, LOST), at(4000), LookUp()),
    ("after the window, found nothing", facts(BOTH, LOST, seen=tuple(known(ABSENT, 4000 + n * 60) for n in range(3))), at(9999), hold("window_over")),
    ("after the window, could never be asked", facts(BOTH, LOST, seen=tuple(known(AWAY, 4000 + n * 60) for n in range(3))), at(9999), hold("window_over_unasked")),
    # --- the run's end was asked for
    ("cancelled, and nothing was sent", facts(KEYED, state=INTENDED, cancelling=True), at(0), Drop()),
    ("cancelled, and dispatch is off", facts(KEYED, state=INTENDED, cancelling=True, dispatch=Dispatch.OFF), at(0), Drop()),
    ("cancelled, and what was sent never left", facts(BLIND, sent(1, S.NOT_SENT), state=INTENDED, cancelling=True), at(9), Drop()),
    ("cancelled, and refused for now", facts(BLIND, BUSY, state=INTENDED, cancelling=True), at(2), Drop()),
    ("cancelled, and refused for good", facts(KEYED, REFUSED, state=INTENDED, cancelling=True), at(2), Reject()),
    ("cancelled, and proven absent", facts(ABSENCE_PROVES, LOST, seen=(known(ABSENT, 71),), cancelling=True), at(72), Drop()),
    ("cancelled, and proven", facts(KEYED, sent(1, S.ACKNOWLEDGED), seen=(RECEIPT,), cancelling=True), at(2), Advance("r_1")),
    ("cancelled, and its result unchecked", facts(VERIFYING, sent(1, S.ACKNOWLEDGED), seen=(RECEIPT,), cancelling=True), at(2), Verify("r_1")),
    ("cancelled: still asked for", facts(LOOKED_UP, LOST, cancelling=True), at(5), LookUp()),
    ("cancelled: asked for, never repeated", facts(BOTH, LOST, seen=(known(ABSENT, 12),), cancelling=True), at(13), Wait(at(14), WaitReason.LOOK_UP_LATER)),
    ("cancelled: found nothing, as often as it is asked", facts(BOTH, LOST, seen=tuple(known(ABSENT, 20 + n * 60) for n in range(3)), cancelling=True), at(999), hold("run_cancelled")),
    ("cancelled, and it could not be asked before the window ended", facts(BOTH, LOST, seen=tuple(known(AWAY, 4000 + n * 60) for n in range(3)), cancelling=True), at(9999), hold("window_over_unasked")),
    ("cancelled: only a replay could settle it", facts(KEYED, LOST, cancelling=True), at(12), hold("run_cancelled")),
    ("cancelled: a person is asked as ever", facts(BLIND, LOST, cancelling=True), at(1), hold("unguarded")),
    # --- unknown, and neither
    ("a person is asked", facts(BLIND, LOST), at(1), hold("unguarded")),
    # --- a person has decided
    ("abandoned", facts(BLIND, LOST, state=OperationState.ABANDONED), at(9), GiveUp()),
    ("rejected", facts(BLIND, REFUSED, state=OperationState.REJECTED), at(9), Reject()),
    ("not done, says a person: again under the key", facts(KEYED, LOST, sent(2, S.REJECTED, 20), seen=(known(OPERATOR, 40, denies=True),), send_again=at(40)), at(41), REPLAY),
    ("not done, says a person, but the window is over", facts(KEYED, LOST, seen=(known(OPERATOR, 4000, denies=True),), send_again=at(4000)), at(4001), hold("window_over")),
    ("not done, says a person, and there is no guard", facts(BLIND, LOST, seen=(known(OPERATOR, 40, denies=True),), send_again=at(40)), at(41), hold("unguarded")),
    ("not done, say a person and the provider", facts(LOOKED_UP, LOST, seen=(known(ABSENT, 20), known(OPERATOR, 40, denies=True)), send_again=at(40)), at(41), REPLAY),
    ("not done, say a person and a provider that breaks its contract", facts(LOOKED_UP, LOST, seen=(known(ABSENT, 20), known(OPERATOR, 40, denies=True)), send_again=at(40), contradicted=True), at(41), hold("contract_contradicted")),
    ("said while it was still on its way: it does not count", facts(LOOKED_UP, LOST, seen=(known(OPERATOR, 3, denies=True),), send_again=at(3)), at(5), LookUp()),
    ("not done, says a person, and the provider breaks its contract", facts(KEYED, LOST, seen=(known(OPERATOR, 40, denies=True),), send_again=at(40), contradicted=True), at(41), hold("contract_contradicted")),
    ("not done, says a person; sent again and refused: of the first nothing is proven", facts(KEYED, LOST, sent(2, S.REJECTED, 50), seen=(known(OPERATOR, 40, denies=True),), send_again=at(40)), at(60), hold("refused_later")),
    ("not done, says a person; refused for now, and its time is up: that is no proof", facts(SHORT_KEYED, LOST, sent(2, S.REJECTED, 50, retry=Retry.SAME_KEY), seen=(known(OPERATOR, 40, denies=True),), send_again=at(40)), at(100), hold("time_spent")),
    ("not done, says a person, and the run is cancelled: that is no proof", facts(KEYED, LOST, seen=(known(OPERATOR, 40, denies=True),), cancelling=True), at(41), hold("run_cancelled")),
    ("done, says a person", facts(BLIND, LOST, seen=(known(OPERATOR, 40, completes=True, resource="c_1"),), state=APPLIED), at(41), Advance("c_1")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("known_facts", "now", "move"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_the_next_move(known_facts: Facts, now: datetime, move: Move) -> None:
    assert decide(known_facts, now) == move


def test_every_hold_and_wait_has_a_sentence_for_people() -> None:
    assert set(HOLD_SENTENCES) == set(HoldReason)
    assert all(sentence.known and sentence.settles for sentence in HOLD_SENTENCES.values())
    # They stand in prose as well: a question alone would be no sentence there.
    unknown = {sentence.unknown for sentence in (*HOLD_SENTENCES.values(), LATER)}
    assert not {each for each in unknown if each.startswith("Whether ")}
    assert set(WAIT_SENTENCES) == set(WaitReason)


def test_every_hold_reason_is_reached_by_the_table() -> None:
    reached = {move.reason for *_, move in ROWS if isinstance(move, Hold)}
    assert reached == set(HoldReason)


def test_no_unknown_word_is_said_of_an_unknown_outcome() -> None:
    for sentence in HOLD_SENTENCES.values():
        assert "fail" not in f"{sentence.known} {sentence.unknown}".lower()


def test_a_replay_never_starts_where_its_answer_could_come_too_late() -> None:
    for second in range(0, 4000, 7):
        move = decide(facts(KEYED, LOST), at(second))
        if move == REPLAY:
            assert second + 11 < 3000


def test_without_a_key_nothing_is_sent_twice_whatever_is_seen() -> None:
    plain = contract()
    for seen in ((), (known(ABSENT, 99),), (known(OPERATOR, 99, denies=True),)):
        move = decide(facts(plain, LOST, seen=seen, send_again=at(99)), at(100))
        assert not isinstance(move, Send)
