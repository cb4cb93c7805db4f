"""Seeded mistakes: each is one that somebody has made in the field, or could make here.

The model check is worth something only if it finds every one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from reconciliation.core.contracts import Meaning, Retry
from reconciliation.core.decide import decide
from reconciliation.core.facts import (
    Advance,
    Dispatch,
    Facts,
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
)
from reconciliation.core.model_misreadings import MISREADINGS
from reconciliation.core.model_nodes import Rules
from reconciliation.core.protection import MOMENT
from reconciliation.core.states import EvidenceKind, Purpose, TransmissionState

T = TransmissionState
BAD_GATEWAY = 502

MUTANTS: dict[str, Rules] = {**MISREADINGS}


def mutant(function: Callable[[Facts, datetime], Move]) -> Callable[[Facts, datetime], Move]:
    """A mistake in `decide`; its name is the function's."""
    MUTANTS[function.__name__] = Rules(decide=function)
    return function


def seen_as(facts: Facts, **changes: object) -> Facts:
    return replace(facts, **changes)  # type: ignore[arg-type]


def sends_as(facts: Facts, change: Callable[[Sent], Sent]) -> Facts:
    return seen_as(facts, sent=tuple(change(sent) for sent in facts.sent))


def known_as(facts: Facts, change: Callable[[Known], Known]) -> Facts:
    return seen_as(facts, known=tuple(change(known) for known in facts.known))


def claims(facts: Facts, **changes: object) -> Facts:
    return seen_as(facts, contract=facts.contract.model_copy(update=changes))


# --- the key and the body ---------------------------------------------------------------------

MUTANTS["fresh_key_per_retry"] = Rules(key_of=lambda number: f"key {number}")
MUTANTS["changed_parameters"] = Rules(body_of=lambda number: f"as it was at send {number}")


@mutant
def key_promised_where_there_is_none(facts: Facts, now: datetime) -> Move:
    """What was lost is sent again whatever the contract says."""
    move = decide(facts, now)
    unguarded = Hold(HoldReason.UNGUARDED), Hold(HoldReason.ABSENCE_NOT_PROOF)
    return Send(Purpose.REPLAY) if move in unguarded and facts.sent == facts.sent[:1] else move


# --- the window -------------------------------------------------------------------------------


@mutant
def replay_after_the_window(facts: Facts, now: datetime) -> Move:
    limit = facts.replay_not_after
    longer = limit + timedelta(days=365) if limit else None
    return decide(seen_as(facts, replay_not_after=longer), now)


@mutant
def window_from_the_latest_send(facts: Facts, now: datetime) -> Move:
    rule = facts.contract.replay
    if not facts.sent or rule is None:
        return decide(facts, now)
    return decide(seen_as(facts, replay_not_after=facts.sent[-1].started_at + rule.window), now)


@mutant
def answer_may_come_after_the_window(facts: Facts, now: datetime) -> Move:
    """A repeat is let go up to the very end: it may arrive when the key is forgotten."""
    limit = facts.replay_not_after
    longer = limit + facts.contract.timeout + timedelta(seconds=1) if limit else None
    return decide(seen_as(facts, replay_not_after=longer), now)


@mutant
def window_a_moment_longer(facts: Facts, now: datetime) -> Move:
    limit = facts.replay_not_after
    return decide(seen_as(facts, replay_not_after=limit + MOMENT if limit else None), now)


@mutant
def pause_outlasts_the_window(facts: Facts, now: datetime) -> Move:
    """A repeat that is put off until the key guards it no more is put off all the same."""
    move, limit = decide(facts, now), facts.replay_not_after
    if not isinstance(move, Wait) or limit is None:
        return move
    return decide(seen_as(facts, replay_not_after=limit + timedelta(days=365)), now)


# --- what was sent ----------------------------------------------------------------------------


@mutant
def nothing_is_ever_in_flight(facts: Facts, now: datetime) -> Move:
    early = timedelta(minutes=2)
    return decide(
        sends_as(facts, lambda sent: replace(sent, in_flight_until=sent.started_at - early)), now
    )


@mutant
def time_out_taken_as_rejection(facts: Facts, now: datetime) -> Move:
    return decide(sends_as(facts, lambda sent: instead(sent, T.UNKNOWN, T.REJECTED)), now)


@mutant
def rejection_of_a_replay_taken_as_the_firsts(facts: Facts, now: datetime) -> Move:
    return decide(
        sends_as(facts, lambda sent: replace(sent, resolves_earlier=sent.state is T.REJECTED)), now
    )


@mutant
def only_the_last_send_counts(facts: Facts, now: datetime) -> Move:
    return decide(seen_as(facts, sent=facts.sent[-1:]), now)


@mutant
def busy_taken_as_refused_for_good(facts: Facts, now: datetime) -> Move:
    final = {"retry": Retry.NEVER, "resolves_earlier": True}
    return decide(sends_as(facts, lambda sent: replace(sent, **final)), now)  # type: ignore[arg-type]


@mutant
def retry_after_ignored(facts: Facts, now: datetime) -> Move:
    return decide(sends_as(facts, lambda sent: replace(sent, retry_after_at=None)), now)


@mutant
def repeated_after_a_final_refusal(facts: Facts, now: datetime) -> Move:
    """While the first send is unknown; nothing says what the provider makes of a third."""
    return decide(sends_as(facts, lambda sent: replace(sent, retry=Retry.SAME_KEY)), now)


@mutant
def final_answers_ignored(facts: Facts, now: datetime) -> Move:
    """What the key or the name is known to stand for is not heard."""
    return decide(sends_as(facts, lambda sent: replace(sent, meaning=Meaning.UNKNOWN)), now)


@mutant
def time_limit_ignored(facts: Facts, now: datetime) -> Move:
    budget = facts.contract.budget.model_copy(update={"elapsed_seconds": None})
    return decide(claims(facts, budget=budget), now)


@mutant
def budget_ignored(facts: Facts, now: datetime) -> Move:
    budget = facts.contract.budget.model_copy(update={"transmissions": 99, "not_sent": 99})
    return decide(claims(facts, budget=budget), now)


def instead(sent: Sent, old: TransmissionState, new: TransmissionState) -> Sent:
    return replace(sent, state=new) if sent.state is old else sent


# --- look-ups ---------------------------------------------------------------------------------


@mutant
def absence_taken_as_proof(facts: Facts, now: datetime) -> Move:
    return decide(asking_as(facts, absence_proof_after_seconds=0), now)


@mutant
def absence_proves_before_its_bound(facts: Facts, now: datetime) -> Move:
    rule = facts.contract.look_up
    if rule is None or rule.absence_proof_after_seconds is None:
        return decide(facts, now)
    return decide(asking_as(facts, absence_proof_after_seconds=0), now)


@mutant
def visibility_lag_ignored(facts: Facts, now: datetime) -> Move:
    return decide(asking_as(facts, visibility_lag_seconds=0), now)


@mutant
def look_up_away_taken_as_absent(facts: Facts, now: datetime) -> Move:
    away, absent = EvidenceKind.UNAVAILABLE, EvidenceKind.ABSENCE
    return decide(
        known_as(facts, lambda each: replace(each, kind=absent) if each.kind is away else each), now
    )


@mutant
def asked_again_too_early(facts: Facts, now: datetime) -> Move:
    """Before the time that the provider has named."""
    return decide(known_as(facts, lambda each: replace(each, retry_after_at=None)), now)


@mutant
def one_question_is_enough(facts: Facts, now: datetime) -> Move:
    move = decide(facts, now)
    asked = any(known.kind is EvidenceKind.ABSENCE for known in facts.known)
    return Hold(HoldReason.ABSENCE_NOT_PROOF) if isinstance(move, LookUp) and asked else move


def asking_as(facts: Facts, **changes: object) -> Facts:
    rule = facts.contract.look_up
    return facts if rule is None else claims(facts, look_up=rule.model_copy(update=changes))


# --- conclusions ------------------------------------------------------------------------------


@mutant
def lost_taken_as_done(facts: Facts, now: datetime) -> Move:
    move = decide(facts, now)
    return Advance("a guess") if isinstance(move, Hold) and facts.sent else move


@mutant
def hold_turned_into_rejection(facts: Facts, now: datetime) -> Move:
    move = decide(facts, now)
    return Reject() if isinstance(move, Hold) and facts.sent else move


@mutant
def sent_again_after_success(facts: Facts, now: datetime) -> Move:
    return decide(seen_as(facts, known=()), now)


@mutant
def result_not_checked(facts: Facts, now: datetime) -> Move:
    move = decide(facts, now)
    return Advance(move.resource) if isinstance(move, Verify) else move


@mutant
def any_result_will_do(facts: Facts, now: datetime) -> Move:
    return decide(
        known_as(
            facts, lambda each: replace(each, postcondition=each.postcondition is not None or None)
        ),
        now,
    )


@mutant
def disagreeing_records_ignored(facts: Facts, now: datetime) -> Move:
    kept = tuple(known for known in facts.known if known.kind is not EvidenceKind.CONFLICT)
    return decide(seen_as(facts, known=kept), now)


@mutant
def human_word_alone_is_proof(facts: Facts, now: datetime) -> Move:
    """What a person says was not done counts as not sent."""
    stated = [known for known in facts.known if known.denies]
    if not stated:
        return decide(facts, now)
    said = stated[-1].observed_at

    def unsent(sent: Sent) -> Sent:
        return replace(sent, state=T.NOT_SENT) if sent.started_at <= said else sent

    return decide(sends_as(facts, unsent), now)


# --- what bars a send -------------------------------------------------------------------------


def ignores(name: str, **changes: object) -> None:
    def ignoring(facts: Facts, now: datetime) -> Move:
        return decide(seen_as(facts, **changes), now)

    MUTANTS[name] = Rules(decide=ignoring)


ignores("dispatch_ignored", dispatch=Dispatch.ON)
ignores("unready_provider_ignored", missing=())
ignores("authorisation_ignored", authorised=True)
ignores("precondition_ignored", precondition_holds=True)
ignores("change_of_scope_ignored", elsewhere=False)
ignores("contradiction_ignored", contradicted=False)
ignores("replay_trusted_unseen", replay_trusted=True)
ignores("look_up_trusted_unseen", look_up_trusted=True)
ignores("cancellation_ignored", cancelling=False)


# --- time -------------------------------------------------------------------------------------


@mutant
def waits_without_an_end(facts: Facts, now: datetime) -> Move:
    move = decide(facts, now)
    return Wait(None, move.reason) if isinstance(move, Wait) else move


@mutant
def waits_for_what_is_past(facts: Facts, now: datetime) -> Move:
    move = decide(facts, now)
    return Wait(now, move.reason) if isinstance(move, Wait) else move


@mutant
def asks_for_ever(facts: Facts, now: datetime) -> Move:
    budget = facts.contract.budget.model_copy(update={"look_ups": 10**6})
    return decide(claims(facts, budget=budget), now)
