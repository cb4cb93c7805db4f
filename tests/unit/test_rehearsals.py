"""What a case of a rehearsal shows: of the contract's claims, and of the promises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciliation.core.contracts import Contract, KeyRule, LookUpRule, Meaning, ReplayRule
from reconciliation.core.rehearsals import Claim, Seen, Verdict, breaches, together, verdicts
from reconciliation.core.states import OperationState
from reconciliation.rehearsal.cases import CASES, cases_for, is_complete
from tests.unit.facts import contract

GOOD = Seen(
    run="completed",
    operation=OperationState.VERIFIED,
    resource="r_1",
    effects=("r_1",),
    counted=True,
    requests=1,
    deliveries=1,
    left=1,
)
C, X = Verdict.CONFIRMED, Verdict.CONTRADICTED


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({}, []),
        ({"effects": ("r_1", "r_2")}, ["2 effects where one was meant"]),
        ({"requests": 2}, ["2 requests left for 1 transmissions: something sends by itself"]),
        ({"effects": ()}, ["the run went on with 'r_1', which is not there"]),
        ({"effects": ("r_9",)}, ["the run went on with 'r_1', which is not there"]),
        # Where nothing can be asked, what no answer named is no proof that it is not there.
        ({"effects": (), "counted": False}, []),
        (
            {"operation": OperationState.REJECTED},
            ["the step failed as refused, and the effect is there"],
        ),
        ({"operation": OperationState.HELD, "effects": ()}, []),
        (
            {"operation": OperationState.UNKNOWN},
            ["the operation is unknown, neither settled nor held nor due"],
        ),
        ({"operation": OperationState.UNKNOWN, "is_due": True}, []),
    ],
)
def test_which_promises_are_broken(changes: dict[str, Any], broken: list[str]) -> None:
    assert breaches(replace(GOOD, **changes)) == broken


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, {}),  # one delivery shows nothing of a key
        ({"deliveries": 2}, {Claim.REPLAY: C}),
        ({"deliveries": 2, "effects": ("r_1", "r_2")}, {Claim.REPLAY: X}),
        ({"mismatch": Meaning.KEY_MISMATCH}, {Claim.MISMATCH: C, Claim.REPLAY: C}),
        ({"mismatch": Meaning.ACKNOWLEDGED}, {Claim.MISMATCH: X}),
        ({"mismatch": Meaning.UNKNOWN}, {Claim.MISMATCH: X}),
        ({"found": 1, "absent": 2}, {Claim.LOOK_UP: C}),
        ({"absent": 2}, {Claim.LOOK_UP: X}),
        ({"absent": 2, "effects": ()}, {}),
        ({"found": 1, "unfiltered": 1}, {Claim.LOOK_UP: X}),
        ({"verified": True}, {Claim.VERIFY: C}),
        ({"verified": False}, {Claim.VERIFY: X}),
    ],
)
def test_what_is_shown_of_the_claims(changes: dict[str, Any], shown: dict[Claim, Verdict]) -> None:
    assert verdicts(replace(GOOD, **changes), everything()) == shown


def test_nothing_is_shown_of_what_is_not_claimed() -> None:
    seen = replace(GOOD, deliveries=2, found=1, verified=True, mismatch=Meaning.KEY_MISMATCH)
    assert verdicts(seen, contract()) == {}


def test_a_claim_that_was_contradicted_once_is_contradicted() -> None:
    shown = [{Claim.REPLAY: C}, {Claim.REPLAY: X, Claim.VERIFY: C}, {Claim.REPLAY: C}]
    assert together(shown) == {Claim.REPLAY: X, Claim.VERIFY: C}


def test_probes_come_along_and_only_the_whole_matrix_is_complete() -> None:
    named = cases_for(set(Claim), ["lost_answer"])
    assert [case.name for case in named] == [
        "plain",
        "same_key_twice",
        "other_parameters",
        "lost_answer",
    ]
    assert not is_complete(named, set(Claim))
    assert is_complete(CASES, set(Claim))
    assert {case.needs for case in cases_for(set())} == {None}


def everything() -> Contract:
    """A contract that claims all that a rehearsal can show."""
    return contract(
        key=KeyRule(carrier="header", name="Idempotency-Key"),
        replay=ReplayRule(retention_floor_seconds=86_400, margin_seconds=3600),
        look_up=LookUpRule(marker="metadata.operation", visibility_lag_seconds=0),
        verifies=True,
    )
