"""How a rehearsed case ended, from what is kept of it."""

from __future__ import annotations

from typing import Any

import pytest

from reconciliation.core.rehearsal_ends import End, end_of, staged


def case(state: str, *sends: str, effects: int = 1, what: str = "nothing goes wrong") -> Any:
    return {
        "what": what,
        "destination": {"effects": [f"re_{number}" for number in range(effects)]},
        "ledger": {"state": state, "transmissions": list(sends)},
    }


@pytest.mark.parametrize(
    ("kept", "end"),
    [
        (case("verified", "first: acknowledged"), End.AT_ONCE),
        (case("rejected", "first: rejected"), End.AT_ONCE),
        # What never left is no send that was lost.
        (case("verified", "first: not_sent", "first: acknowledged"), End.AT_ONCE),
        (case("verified", "first: unknown", "replay: acknowledged"), End.REPLAY),
        (case("verified", "first: unknown"), End.LOOK_UP),
        (case("applied", "first: unknown", "replay: unknown"), End.LOOK_UP),
        (case("held", "first: unknown"), End.HELD),
        (case("postcondition_failed", "first: acknowledged"), End.HELD),
        (case("abandoned", "first: unknown"), End.HELD),
        (case("unknown", "first: unknown"), End.OPEN),
    ],
)
def test_what_settled_it(kept: Any, end: End) -> None:
    assert end_of(kept) is end


def test_cases_are_counted_by_what_was_staged() -> None:
    lost = "the answer is lost"
    rows = staged(
        [
            case("verified", "first: acknowledged"),
            case("held", "first: unknown", what=lost),
            case("verified", "first: unknown", "replay: acknowledged", effects=2, what=lost),
        ]
    )
    assert [(row.what, row.played, row.twice) for row in rows] == [
        ("nothing goes wrong", 1, 0),
        (lost, 2, 1),
    ]
    assert dict(rows[1].ends) == {End.HELD: 1, End.REPLAY: 1}
