"""How the cases of rehearsals ended, and how often: what was staged by what settled it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from reconciliation.core.states import OperationState, TransmissionState

ANSWERED = frozenset({TransmissionState.ACKNOWLEDGED, TransmissionState.REJECTED})
FOR_A_PERSON = frozenset(
    {OperationState.HELD, OperationState.POSTCONDITION_FAILED, OperationState.ABANDONED}
)
SETTLED = frozenset({OperationState.APPLIED, OperationState.VERIFIED, OperationState.REJECTED})


class End(StrEnum):
    """What settled a case."""

    AT_ONCE = "at_once"  # the answer to the only send that left
    LOOK_UP = "look_up"
    REPLAY = "replay"  # the answer to a later send
    HELD = "held"  # for a person
    OPEN = "open"  # nothing, until the rehearsal ended


@dataclass(frozen=True)
class Staged:
    """One case over all rehearsals: how often it ended how, and made two effects."""

    what: str
    ends: Mapping[End, int]
    twice: int

    @property
    def played(self) -> int:
        return sum(self.ends.values())


def end_of(case: Mapping[str, Any]) -> End:
    """How a case ended, from what is kept of it."""
    state = OperationState(case["ledger"]["state"])
    if state in FOR_A_PERSON:
        return End.HELD
    if state not in SETTLED:
        return End.OPEN
    sends = [said.partition(": ")[2] for said in case["ledger"]["transmissions"]]
    left = [send for send in sends if send != TransmissionState.NOT_SENT]
    if left and left[-1] not in ANSWERED:
        return End.LOOK_UP
    return End.AT_ONCE if len(left) < 2 else End.REPLAY  # noqa: PLR2004 (one send is the first)


def staged(cases: Iterable[Mapping[str, Any]]) -> list[Staged]:
    """All cases by what was staged, in the order in which they first came."""
    ends: dict[str, Counter[End]] = {}
    twice: Counter[str] = Counter()
    for case in cases:
        what = str(case["what"])
        ends.setdefault(what, Counter())[end_of(case)] += 1
        twice[what] += len(case["destination"]["effects"]) > 1
    return [Staged(what, counted, twice[what]) for what, counted in ends.items()]
