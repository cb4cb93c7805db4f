"""A far side for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.far_side import FarSide, far_side


@pytest.fixture
def side() -> Iterator[FarSide]:
    with far_side() as made:
        yield made
