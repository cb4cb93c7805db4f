"""The heart of the product: from the facts and the time to the one next move (architecture §8).

Pure and total: every state of knowledge has exactly one move, and an operation is always settled,
held for a person, or due for a next move at a known time. The order of the questions is the order
of their weight:

1. Is it settled already?  2. Does what is known contradict itself?  3. Is the effect proven?
4. Is everything that was sent proven to have had no effect?  5. If not, can it be looked up?
6. If that does not settle it, does a replay still protect, now and until its answer could come?
7. Else a person decides.

What ends an operation (going on, rejecting, dropping) needs proof. A person's word that it was not
done only lets it be sent again, and only where something else guards that.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciliation.core.contracts import LookUpRule, Meaning, Retry
from reconciliation.core.facts import (
    Advance,
    Dispatch,
    Drop,
    Facts,
    GiveUp,
    Hold,
    HoldReason,
    Known,
    LookUp,
    Move,
    Reject,
    Send,
    Sent,
    Verify,
    Wait,
    WaitReason,
)
from reconciliation.core.protection import (
    closes_at,
    protects,
    review_at,
    time_is_up_at,
    why_unguarded,
)
from reconciliation.core.states import EvidenceKind, OperationState, Purpose, TransmissionState

LOOKED = (EvidenceKind.LOOKUP, EvidenceKind.ABSENCE, EvidenceKind.UNAVAILABLE)


def decide(facts: Facts, now: datetime) -> Move:
    """Return the one next move for an operation at `now`, the database's time."""
    completion = completed_by(facts)
    match facts.state:
        case OperationState.REJECTED:
            return Reject()
        case OperationState.ABANDONED:
            return GiveUp()
        case OperationState.VERIFIED if completion is not None:
            return Advance(completion.resource or "")
    if conflicting(facts):
        return Hold(HoldReason.CONFLICT)
    if completion is not None:
        return after_completion(facts, completion, now)
    unresolved = unresolved_sends(facts)
    if not unresolved:
        return with_nothing_unresolved(facts, now)
    up = time_is_up_at(facts)
    if up is not None and up <= now:
        return Hold(HoldReason.TIME_SPENT)
    if all(denied(facts, sent, now) for sent in unresolved):
        return no_later_than(up, send_as_denied(facts, now))
    return no_later_than(up, with_unknown_outcome(facts, unresolved, now))


# --- what is known ----------------------------------------------------------------------------


def last_statement(facts: Facts) -> Known | None:
    """The latest that a person stated about the outcome; it outweighs what was known before it."""
    stated = [known for known in facts.known if known.kind is EvidenceKind.OPERATOR]
    return stated[-1] if stated else None


def conflicting(facts: Facts) -> bool:
    stated = last_statement(facts)
    return any(
        known.kind is EvidenceKind.CONFLICT
        and (stated is None or known.observed_at > stated.observed_at)
        for known in facts.known
    )


def completed_by(facts: Facts) -> Known | None:
    """The evidence that proves the effect, the latest first."""
    proofs = [known for known in facts.known if known.completes]
    return proofs[-1] if proofs else None


def unresolved_sends(facts: Facts) -> list[Sent]:
    """The transmissions that may have had an effect, as far as anything proves.

    A rejection speaks for its own transmission, and for earlier ones only where the contract says
    so. Absence resolves what was sent only where the contract makes it proof, and only when it
    was seen after the contract's bound.
    """
    spoken_for = max((sent.number for sent in facts.sent if speaks_for_earlier(sent)), default=0)
    return [
        sent
        for sent in facts.sent
        if sent.may_have_effect and sent.number >= spoken_for and not proven_absent(facts, sent)
    ]


def speaks_for_earlier(sent: Sent) -> bool:
    """An answer whose own outcome is not known says nothing about others."""
    known = (TransmissionState.ACKNOWLEDGED, TransmissionState.REJECTED)
    return sent.resolves_earlier and sent.state in known


def proven_absent(facts: Facts, sent: Sent) -> bool:
    rule = facts.contract.look_up
    if rule is None or rule.absence_proof_after_seconds is None or not facts.look_up_trusted:
        return False
    bound = sent.in_flight_until + timedelta(seconds=rule.absence_proof_after_seconds)
    return any(
        known.kind is EvidenceKind.ABSENCE and known.observed_at >= bound for known in facts.known
    )


def denied(facts: Facts, sent: Sent, now: datetime) -> bool:
    """Whether a person's word that it was not done lets `sent` be repeated.

    It never counts alone: the contract's key must guard a repeat now, or the provider itself must
    have shown, after the send could no longer be on its way, that it has no record. What cannot
    be called back is repeated under a documented guarantee alone.
    """
    stated = last_statement(facts)
    if stated is None or not stated.denies or stated.observed_at < sent.in_flight_until:
        return False
    if why_unguarded(facts, now) is None:
        return True
    return not facts.contract.irreversible and seen_absent(facts, sent)


def seen_absent(facts: Facts, sent: Sent) -> bool:
    rule = facts.contract.look_up
    if rule is None or not facts.look_up_trusted:
        return False
    visible = sent.in_flight_until + timedelta(seconds=rule.visibility_lag_seconds)
    return any(
        known.kind is EvidenceKind.ABSENCE and known.observed_at >= visible for known in facts.known
    )


# --- the effect is proven ---------------------------------------------------------------------


def after_completion(facts: Facts, proof: Known, now: datetime) -> Move:
    resource = proof.resource or ""
    if not facts.contract.verifies:
        return Advance(resource)
    checks = [known for known in facts.known if known.postcondition is not None]
    if checks:
        met = checks[-1].postcondition
        return Advance(resource) if met else Hold(HoldReason.POSTCONDITION_FAILED)
    return verify_next(facts, proof, now)


def verify_next(facts: Facts, proof: Known, now: datetime) -> Move:
    missed = [
        known
        for known in facts.known
        if known.kind is EvidenceKind.UNAVAILABLE and known.observed_at >= proof.observed_at
    ]
    if len(missed) >= facts.contract.budget.look_ups:
        return Hold(HoldReason.NOT_VERIFIABLE)
    due = next_question(facts, missed)
    if due is None or due <= now:
        return Verify(proof.resource or "")
    return Wait(due, WaitReason.VERIFY_LATER)


# --- nothing unresolved was sent --------------------------------------------------------------


def with_nothing_unresolved(facts: Facts, now: datetime) -> Move:
    last = facts.sent[-1] if facts.sent else None
    if last is not None and refused_for_good(last) and not resent(facts, last):
        return Reject()
    if facts.cancelling:
        return Drop()
    return send(facts, now, Purpose.REPLAY if replays(facts) else Purpose.FIRST)


def send_as_denied(facts: Facts, now: datetime) -> Move:
    """A person says that it was not done, and a repeat is guarded: it may be sent once more."""
    last = facts.sent[-1]
    if refused_for_good(last) and not resent(facts, last):
        return Hold(HoldReason.REFUSED_LATER)
    return send(facts, now, Purpose.REPLAY)


def refused_for_good(sent: Sent) -> bool:
    return sent.state is TransmissionState.REJECTED and sent.retry is Retry.NEVER


def replays(facts: Facts) -> bool:
    return any(sent.state is not TransmissionState.NOT_SENT for sent in facts.sent)


def send(facts: Facts, now: datetime, purpose: Purpose) -> Move:
    """Send it, if nothing that guards a write stands against it now (promises P5, P11, P13)."""
    if facts.cancelling:
        return Hold(HoldReason.RUN_CANCELLED)
    if facts.missing or facts.elsewhere:
        return Hold(HoldReason.NOT_READY)
    if facts.contradicted and purpose is Purpose.REPLAY:
        # What proves that it had no effect is the contract's word too.
        return Hold(HoldReason.CONTRACT_CONTRADICTED)
    if facts.dispatch is not Dispatch.ON:
        return Wait(None, WaitReason.DISPATCH)
    if not facts.authorised:
        return Hold(HoldReason.AUTHORISATION_LAPSED)
    if not facts.precondition_holds:
        return Hold(HoldReason.PRECONDITION_GONE)
    spent = spent_budget(facts)
    if spent is not None:
        return Hold(spent)
    due = next_send(facts)
    return Send(purpose) if due is None or due <= now else Wait(due, WaitReason.PAUSE)


def turned_away(facts: Facts) -> bool:
    """Whether a write that its run has just come to is not to be sent now, and never was: the run
    may take the step that its author has declared for that."""
    never_sent = facts.state is OperationState.INTENDED and not any(
        sent.may_have_effect for sent in facts.sent
    )
    return facts.dispatch is Dispatch.OFF and never_sent and facts.send_again is None


def resent(facts: Facts, last: Sent) -> bool:
    """Whether a person has let it be sent again after `last`."""
    return facts.send_again is not None and facts.send_again >= last.started_at


def spent_budget(facts: Facts) -> HoldReason | None:
    """Sends that never left count apart: they cost nothing and prove that nothing happened."""
    if facts.sent and resent(facts, facts.sent[-1]):
        return None
    budget = facts.contract.budget
    left = [sent for sent in facts.sent if sent.state is not TransmissionState.NOT_SENT]
    if len(facts.sent) - len(left) >= budget.not_sent:
        return HoldReason.UNREACHABLE if not left else HoldReason.BUDGET_SPENT
    if len(left) < budget.transmissions:
        return None
    refused = not unresolved_sends(facts)
    return HoldReason.REFUSED_TOO_OFTEN if refused else HoldReason.BUDGET_SPENT


def next_send(facts: Facts) -> datetime | None:
    if not facts.sent or resent(facts, facts.sent[-1]):
        return None
    last = facts.sent[-1]
    due = last.started_at + facts.contract.budget.pause(len(facts.sent))
    return max(due, last.retry_after_at) if last.retry_after_at else due


# --- the outcome is unknown -------------------------------------------------------------------


def with_unknown_outcome(facts: Facts, unresolved: list[Sent], now: datetime) -> Move:
    if facts.elsewhere:
        # Neither a replay nor a look-up there would be about this operation.
        return Hold(HoldReason.NOT_READY)
    rule = facts.contract.look_up
    if rule is not None and facts.look_up_trusted:
        return look_up(facts, rule, unresolved, now)
    return replay(facts, unresolved, now)


def no_later_than(up: datetime | None, move: Move) -> Move:
    """What would rest past the end of its time comes up then."""
    if up is None or not isinstance(move, Wait) or (move.until is not None and move.until <= up):
        return move
    return Wait(up, move.reason)


def look_up(facts: Facts, rule: LookUpRule, unresolved: list[Sent], now: datetime) -> Move:
    """Ask before repeating; where asking does not settle it, a protected replay may."""
    asked = looked_since(facts, unresolved[-1])
    absent = [known for known in asked if known.kind is EvidenceKind.ABSENCE]
    shown = shown_by(rule, unresolved[-1])
    due = next_look_up(facts, rule, unresolved[-1], asked, shown)
    repeat = replay(facts, unresolved, now)
    protected = not isinstance(repeat, Hold)
    if protected and (absent or not protects(facts, due)):
        return repeat
    if sum(known.observed_at >= shown for known in asked) < facts.contract.budget.look_ups:
        return LookUp() if due <= now else Wait(due, WaitReason.LOOK_UP_LATER)
    return repeat if protected else Hold(why_look_ups_end(facts, asked, repeat))


def looked_since(facts: Facts, sent: Sent) -> list[Known]:
    return [
        known
        for known in facts.known
        if known.kind in LOOKED and known.observed_at > sent.started_at
    ]


def shown_by(rule: LookUpRule, sent: Sent) -> datetime:
    """From when on whatever `sent` made is shown, if it is ever shown."""
    longest = max(rule.visibility_lag_seconds, rule.absence_proof_after_seconds or 0)
    return sent.in_flight_until + timedelta(seconds=longest)


def next_look_up(
    facts: Facts, rule: LookUpRule, sent: Sent, asked: list[Known], shown: datetime
) -> datetime:
    """Not before a record can be visible, then paced. What was asked early does not use up what
    may be asked once every record must be shown; there is as much of it."""
    visible = sent.started_at + timedelta(seconds=rule.visibility_lag_seconds)
    paced = next_question(facts, asked)
    due = max(visible, paced) if paced else visible
    early = sum(known.observed_at < shown for known in asked)
    return due if early < facts.contract.budget.look_ups else max(due, shown)


def next_question(facts: Facts, asked: list[Known]) -> datetime | None:
    if not asked:
        return None
    last = asked[-1]
    due = last.observed_at + facts.contract.budget.pause(len(asked))
    return max(due, last.retry_after_at) if last.retry_after_at else due


def why_look_ups_end(facts: Facts, asked: list[Known], repeat: Move) -> HoldReason:
    named = why_answers_bar(facts)
    if named is not None:
        return named
    if all(known.kind is EvidenceKind.UNAVAILABLE for known in asked):
        over = repeat == Hold(HoldReason.WINDOW_OVER)
        return HoldReason.WINDOW_OVER_UNASKED if over else HoldReason.LOOK_UP_UNAVAILABLE
    if facts.contract.replay and isinstance(repeat, Hold):
        return repeat.reason
    return HoldReason.ABSENCE_NOT_PROOF


def replay(facts: Facts, unresolved: list[Sent], now: datetime) -> Move:
    """Send the same bytes under the same key, where that can have one effect at most."""
    barred = why_no_replay(facts, now)
    if barred is not None:
        return Hold(barred)
    in_flight = max(sent.in_flight_until for sent in unresolved)
    rule = facts.contract.replay
    assert rule is not None
    if in_flight > now and not rule.overlaps:
        return Wait(in_flight, WaitReason.IN_FLIGHT)
    return within_window(facts, send(facts, now, Purpose.REPLAY), now)


def why_no_replay(facts: Facts, now: datetime) -> HoldReason | None:
    unguarded = why_unguarded(facts, now)
    # What the provider said tells people more than that its contract has no key.
    if unguarded in (None, HoldReason.UNGUARDED):
        said = why_answers_bar(facts)
        if said is not None:
            return said
    if unguarded is not None:
        return unguarded
    last = facts.sent[-1]
    if refused_for_good(last) and not resent(facts, last):
        return HoldReason.REFUSED_LATER
    return None


def why_answers_bar(facts: Facts) -> HoldReason | None:
    """What the provider said of this very request, after which it is not repeated."""
    said = {sent.meaning for sent in facts.sent}
    if Meaning.KEY_MISMATCH in said:
        return HoldReason.KEY_MISMATCH
    if Meaning.EXISTS in said:
        return HoldReason.ALREADY_EXISTS
    return None


def within_window(facts: Facts, move: Move, now: datetime) -> Move:
    """Bring forward what would come too late: a pause of ours is cut short, and what waits for a
    person is shown to one in time. What the provider wants put off so long is held."""
    closes, review = closes_at(facts), review_at(facts)
    if not isinstance(move, Wait) or closes is None or review is None:
        return move
    if move.until is None:
        early = review > now
        return Wait(review, move.reason) if early else Hold(HoldReason.WINDOW_CLOSING)
    if move.until <= closes:
        return move
    asked_for = facts.sent[-1].retry_after_at
    if asked_for is not None and asked_for > closes:
        return Hold(HoldReason.WINDOW_OVER)
    return Wait(closes, move.reason) if closes > now else Send(Purpose.REPLAY)
