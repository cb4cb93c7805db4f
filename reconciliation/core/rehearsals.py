"""What a rehearsal's case shows: whether the contract's claims hold, and whether ours do.

Pure: from what was seen at the destination, in the ledger and of the run, to the claims that are
confirmed or contradicted, and the promises that are broken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from reconciliation.core.contracts import Contract, Meaning
from reconciliation.core.states import OperationState

# Tenant, queue and owner of everything that is rehearsed: nobody else's work is among it.
NAME = "rehearsal"


class Claim(StrEnum):
    """What a contract may claim, and a rehearsal can show."""

    REPLAY = "replay"  # the same key again: the first result, and no second effect
    MISMATCH = "mismatch"  # the same key with other parameters is refused
    LOOK_UP = "look_up"  # a record carries our marker, within the lag
    VERIFY = "verify"  # the result can be checked


class Verdict(StrEnum):
    CONFIRMED = "confirmed"
    CONTRADICTED = "contradicted"


@dataclass(frozen=True)
class Seen:
    """What one case came to.

    Attributes:
        effects: the resources at the destination that carry the operation, each once.
        counted: whether the destination could be asked for them; else `effects` are those that
            its answers named.
        requests: writes that came to the proxy.
        deliveries: writes that the proxy passed on.
        left: transmissions of which a byte may have left, by the ledger.
        found, absent, unfiltered: look-ups that showed our record, none when there must have been
            one, or records of others.
        mismatch: what changed parameters under the key were answered; None: not tried.
        verified: whether the result was checked and met; None: not checked.
    """

    run: str
    operation: OperationState
    resource: str
    effects: tuple[str, ...]
    counted: bool
    requests: int
    deliveries: int
    left: int
    found: int = 0
    absent: int = 0
    unfiltered: int = 0
    mismatch: Meaning | None = None
    verified: bool | None = None
    is_due: bool = False


ADVANCED = frozenset({OperationState.APPLIED, OperationState.VERIFIED})
OPEN_AND_SAFE = frozenset({OperationState.HELD, OperationState.POSTCONDITION_FAILED})


def claims_of(contract: Contract) -> set[Claim]:
    """What `contract` claims of those things that a rehearsal can show."""
    claimed = {
        Claim.REPLAY: contract.replay is not None,
        Claim.MISMATCH: contract.key is not None
        and any(rule.means is Meaning.KEY_MISMATCH for rule in contract.answers),
        Claim.LOOK_UP: contract.look_up is not None,
        Claim.VERIFY: contract.verifies,
    }
    return {claim for claim, is_claimed in claimed.items() if is_claimed}


def verdicts(seen: Seen, contract: Contract) -> dict[Claim, Verdict]:
    """What a case shows of the claims of `contract`; one that it does not touch is left out."""
    shown = {
        Claim.REPLAY: replay_shown(seen),
        Claim.MISMATCH: mismatch_shown(seen),
        Claim.LOOK_UP: look_up_shown(seen),
        Claim.VERIFY: None if seen.verified is None else seen.verified,
    }
    return {
        claim: Verdict.CONFIRMED if holds else Verdict.CONTRADICTED
        for claim, holds in shown.items()
        if holds is not None and claim in claims_of(contract)
    }


def replay_shown(seen: Seen) -> bool | None:
    """Two deliveries under one key show it, or that other parameters under it are refused: then
    the key is kept, also where nothing tells how many effects there are."""
    if len(seen.effects) > 1:
        return False
    twice = seen.deliveries > 1 and bool(seen.effects)
    return True if twice or seen.mismatch is Meaning.KEY_MISMATCH else None


def mismatch_shown(seen: Seen) -> bool | None:
    return None if seen.mismatch is None else seen.mismatch is Meaning.KEY_MISMATCH


def look_up_shown(seen: Seen) -> bool | None:
    if seen.unfiltered:
        return False
    if seen.found:
        return True
    return False if seen.absent and seen.effects else None


def breaches(seen: Seen) -> list[str]:
    """Which promises the case has broken, in words; empty when none."""
    broken: list[str] = []
    if len(seen.effects) > 1:
        broken.append(f"{len(seen.effects)} effects where one was meant")
    if seen.requests > seen.left:
        broken.append(
            f"{seen.requests} requests left for {seen.left} transmissions: something sends by "
            "itself"
        )
    if seen.operation in ADVANCED and wrong_advance(seen):
        broken.append(f"the run went on with {seen.resource!r}, which is not there")
    if seen.operation is OperationState.REJECTED and seen.effects:
        broken.append("the step failed as refused, and the effect is there")
    settled = seen.operation.is_settled or seen.operation in OPEN_AND_SAFE
    if not settled and not seen.is_due:
        broken.append(f"the operation is {seen.operation}, neither settled nor held nor due")
    return broken


def wrong_advance(seen: Seen) -> bool:
    return (seen.counted or bool(seen.effects)) and seen.resource not in seen.effects


def together(shown: Iterable[Mapping[Claim, Verdict]]) -> dict[Claim, Verdict]:
    """The verdicts of all cases as one: a claim that was contradicted once is contradicted."""
    whole: dict[Claim, Verdict] = {}
    for each in shown:
        for claim, verdict in each.items():
            if whole.get(claim) is not Verdict.CONTRADICTED:
                whole[claim] = verdict
    return whole
