"""Which decisions a person may take on a held operation now, and why not the others.

A decision is offered when `decide`, given the facts as they would be after it, agrees; the page,
the API and the service ask here, so that they cannot differ. What `decide` never does by itself, a
second identity, has its rules in `core.second_identity`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from reconciliation.core.decide import decide
from reconciliation.core.facts import (
    HOLD_SENTENCES,
    Dispatch,
    Drop,
    Facts,
    Hold,
    HoldReason,
    Known,
    Send,
    Wait,
    WaitReason,
)
from reconciliation.core.second_identity import Undoing, why_not_replace, why_not_undo
from reconciliation.core.states import DecisionKind, EvidenceKind, OperationState

CANNOT_BE_CALLED_BACK = (
    "It cannot be called back, and there is no key that guards a second send. If the first one "
    "arrived, it would happen twice.",
    "Nothing at this provider.",
)


MOVING = (
    DecisionKind.SEND_AGAIN,
    DecisionKind.REPLACE,
    DecisionKind.UNDO,
    DecisionKind.ABANDON,
)


@dataclass(frozen=True)
class Option:
    """One decision, whether it is offered, and if not, why and what would make it possible."""

    kind: DecisionKind
    allowed: bool
    why_not: str = ""
    what_helps: str = ""


def options(facts: Facts, now: datetime, undoing: Undoing = Undoing.NOT_DECLARED) -> list[Option]:
    """Return the six decisions on a held operation, the offered ones first.

    Args:
        undoing: whether its workflow says how its effect is taken back.
    """
    if facts.state.is_settled:
        # A record has contradicted it since: nothing of it is moved any more.
        offers = [applied(facts), keep_holding(), *map(settled, MOVING)]
        return sorted(offers, key=lambda option: not option.allowed)
    offers = [
        applied(facts),
        send_again(facts, now),
        replace_it(facts, now),
        undo_it(facts, now, undoing),
        abandon(),
        keep_holding(),
    ]
    return sorted(offers, key=lambda option: not option.allowed)


def option(
    kind: DecisionKind, facts: Facts, now: datetime, undoing: Undoing = Undoing.NOT_DECLARED
) -> Option:
    """Raises `StopIteration` for a kind that is none of a held operation's."""
    return next(offer for offer in options(facts, now, undoing) if offer.kind is kind)


def replace_it(facts: Facts, now: datetime) -> Option:
    once_on = send_again(replace(facts, dispatch=Dispatch.ON), now)
    barred = why_not_replace(facts, now, may_send_again=once_on.allowed)
    return Option(DecisionKind.REPLACE, barred is None, *(barred or ()))


def undo_it(facts: Facts, now: datetime, undoing: Undoing) -> Option:
    barred = why_not_undo(facts, now, undoing)
    return Option(DecisionKind.UNDO, barred is None, *(barred or ()))


def applied(facts: Facts) -> Option:
    if any(sent.may_have_effect for sent in facts.sent) or effect_seen(facts):
        return Option(DecisionKind.APPLIED, True)
    return Option(
        DecisionKind.APPLIED,
        False,
        "Nothing was sent that could have taken effect.",
        "Nothing. Abandon it if it was done in another way.",
    )


def effect_seen(facts: Facts) -> bool:
    return any(known.completes or known.kind is EvidenceKind.CONFLICT for known in facts.known)


def send_again(facts: Facts, now: datetime) -> Option:
    """Offered when the core would then send it: the same bytes, under the same key."""
    if any(known.completes for known in facts.known):
        return Option(
            DecisionKind.SEND_AGAIN,
            False,
            "It has taken effect: a second send could do it twice.",
            "Nothing. Accept it as done, or abandon it.",
        )
    move = decide(after_denial(facts, now), now)
    match move:
        case Send():
            return Option(DecisionKind.SEND_AGAIN, True)
        case Wait(reason=WaitReason.DISPATCH):
            return Option(
                DecisionKind.SEND_AGAIN,
                False,
                "Dispatch to this provider is not on.",
                "Somebody turning dispatch on.",
            )
        case Wait(reason=WaitReason.IN_FLIGHT):
            return Option(
                DecisionKind.SEND_AGAIN,
                False,
                "An earlier send may still be on its way.",
                "Waiting until it cannot be.",
            )
        case Drop() | Hold(HoldReason.RUN_CANCELLED):
            return Option(
                DecisionKind.SEND_AGAIN,
                False,
                "The run's end was asked for: nothing more is sent for it.",
                "Nothing. Abandon it if nobody can see whether it was done.",
            )
        case Hold(reason):
            return Option(DecisionKind.SEND_AGAIN, False, *why_not_again(facts, reason))
        case _ if facts.contract.irreversible and not absence_proves(facts):
            return Option(DecisionKind.SEND_AGAIN, False, *CANNOT_BE_CALLED_BACK)
        case _:
            return Option(
                DecisionKind.SEND_AGAIN,
                False,
                "The provider has not been asked since the last send.",
                "Asking the provider again.",
            )


def absence_proves(facts: Facts) -> bool:
    rule = facts.contract.look_up
    return rule is not None and rule.absence_proof_after_seconds is not None


def after_denial(facts: Facts, now: datetime) -> Facts:
    """The facts as they would be if a person stated now that it was not done."""
    statement = Known(EvidenceKind.OPERATOR, now, denies=True)
    state = OperationState.UNKNOWN if facts.sent else OperationState.INTENDED
    return replace(facts, state=state, known=(*facts.known, statement), send_again=now)


def why_not_again(facts: Facts, reason: HoldReason) -> tuple[str, str]:
    if reason is HoldReason.UNGUARDED and facts.contract.irreversible:
        return CANNOT_BE_CALLED_BACK
    if reason is HoldReason.UNGUARDED and facts.contract.look_up is not None:
        return (
            "This provider has no key that guards a second send, and it has not yet shown that it "
            "has no record of the first.",
            "Asking the provider again and finding nothing.",
        )
    if reason is HoldReason.UNGUARDED:
        return (
            "This provider has no key that guards a second send. If the first one arrived, it "
            "would happen twice.",
            "Nothing at this provider.",
        )
    sentence = HOLD_SENTENCES[reason]
    return (sentence.known, sentence.settles)


def settled(kind: DecisionKind) -> Option:
    return Option(
        kind,
        False,
        "It is settled, and its run has gone on: nothing of it is sent or given up any more.",
        "Saying which record is right, and undoing the other one at the provider.",
    )


def abandon() -> Option:
    return Option(DecisionKind.ABANDON, True)


def keep_holding() -> Option:
    return Option(DecisionKind.KEEP_HOLDING, True)
