"""The full matrix of every state table: each pair is legal or refused, and finals stay final."""

from __future__ import annotations

from enum import StrEnum
from itertools import product
from typing import Any

import pytest

from reconciliation.core import states as operations
from workflows.core import states as runs
from workflows.core.errors import IllegalTransition

TABLES: list[tuple[dict[Any, frozenset[Any]], Any, set[str]]] = [
    (runs.RUN_TRANSITIONS, runs.ensure_legal, {"completed", "failed", "cancelled"}),
    (runs.ATTEMPT_TRANSITIONS, runs.ensure_legal, {"committed", "failed", "superseded"}),
    (
        operations.OPERATION_TRANSITIONS,
        operations.ensure_legal,
        {"verified", "rejected", "abandoned"},
    ),
    (
        operations.TRANSMISSION_TRANSITIONS,
        operations.ensure_legal,
        {"acknowledged", "rejected", "not_sent", "unknown"},
    ),
]


@pytest.mark.parametrize(("table", "ensure_legal", "finals"), TABLES)
def test_every_pair_is_legal_or_refused(
    table: dict[StrEnum, frozenset[StrEnum]], ensure_legal: Any, finals: set[str]
) -> None:
    members = list(type(next(iter(table))))
    assert set(table) == set(members)
    assert {state.value for state, following in table.items() if not following} == finals
    for current, target in product(members, members):
        if target in table[current]:
            ensure_legal(table, current, target)
        else:
            with pytest.raises(IllegalTransition):
                ensure_legal(table, current, target)


def test_a_write_of_unknown_outcome_is_never_called_failed() -> None:
    assert "failed" not in {state.value for state in operations.OperationState}
    assert "failed" not in {state.value for state in operations.TransmissionState}
