"""How sure a median is: by counting alone, whatever the figures scatter like."""

from __future__ import annotations

import pytest

from romulus_site.bench.report import median_between


@pytest.mark.parametrize(
    ("number", "between"),
    [(1, None), (5, None), (6, [1, 6]), (8, [1, 8]), (9, [2, 8]), (21, [6, 16])],
)
def test_so_many_figures_at_either_end_leave_a_doubt_of_a_twentieth(
    number: int, between: list[float] | None
) -> None:
    """As tables of the sign test have them."""
    assert median_between(range(number, 0, -1)) == between
