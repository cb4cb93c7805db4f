"""The fault matrix: what is done to a write in each case of a rehearsal (architecture, section 13).

Pure. Probes come first: until they have shown that a second send under one key is one effect, and
that a look-up shows our marker, nothing that is rehearsed relies on either.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reconciliation.core.rehearsals import Claim
from reconciliation.rehearsal.breaks import Break


@dataclass(frozen=True)
class Case:
    """One way in which a write can go wrong.

    Attributes:
        write: what the proxy does to the first write.
        asking: what it does to every look-up and check.
        asked_again: look-ups and checks are broken only until the budget of them is spent once.
        dies_at: the failpoint at which the worker that sends is killed; another takes over.
        needs: the claim without which there is nothing to try.
        probes: it shows what later cases rely on.
    """

    name: str
    sentence: str
    write: Break | None = None
    asking: Break | None = None
    asked_again: bool = False
    dies_at: str = ""
    needs: Claim | None = None
    probes: bool = False


CASES = (
    Case("plain", "nothing goes wrong", probes=True),
    Case(
        "same_key_twice",
        "the network delivers the request twice",
        write=Break.DELIVER_TWICE,
        needs=Claim.REPLAY,
        probes=True,
    ),
    Case(
        "other_parameters",
        "after it, other parameters come under the same key",
        needs=Claim.MISMATCH,
        probes=True,
    ),
    Case(
        "killed_before_send",
        "the worker is killed before a byte leaves",
        dies_at="after_dispatch",
    ),
    Case(
        "killed_after_answer",
        "the worker is killed after the answer and before it is recorded",
        dies_at="after_answer",
    ),
    Case(
        "killed_after_loss",
        "the answer is lost, and the worker is killed before that is recorded",
        write=Break.DROP_AFTER,
        dies_at="after_answer",
    ),
    Case("lost_answer", "it is applied and the answer is lost", write=Break.DROP_AFTER),
    Case("never_arrived", "it is lost on the way there", write=Break.DROP_BEFORE),
    Case("late_answer", "the answer comes when nobody waits for it", write=Break.LATE),
    Case("cut_answer", "half of the answer comes", write=Break.TRUNCATE),
    Case("bad_gateway", "a proxy's 502 comes in place of the answer", write=Break.BAD_GATEWAY),
    Case("answered_twice", "the answer comes twice", write=Break.ANSWER_TWICE),
    Case(
        "look_up_away",
        "the answer is lost, and look-ups are away",
        write=Break.DROP_AFTER,
        asking=Break.UNAVAILABLE,
        needs=Claim.LOOK_UP,
    ),
    Case(
        "look_up_back",
        "the answer is lost, and look-ups come back when a replay is due",
        write=Break.DROP_AFTER,
        asking=Break.UNAVAILABLE,
        asked_again=True,
        needs=Claim.LOOK_UP,
    ),
)
BY_NAME = {case.name: case for case in CASES}


def cases_for(claims: Iterable[Claim], names: Iterable[str] = ()) -> list[Case]:
    """The cases that a contract with these claims has something to show in; those named, or all.

    Probes come along with any that are named: what is rehearsed may rely on them.
    """
    claimed, wanted = set(claims), set(names)
    return [
        case
        for case in CASES
        if (case.needs is None or case.needs in claimed)
        and (not wanted or case.name in wanted or case.probes)
    ]


def is_complete(tried: Iterable[Case], contract_claims: Iterable[Claim]) -> bool:
    return {case.name for case in tried} >= {case.name for case in cases_for(contract_claims)}
