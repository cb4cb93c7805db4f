"""A far side of the wire for each test: a decision point, or a provider whose state is read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.far_side import FarSide, far_side
from tests.destination import RunningDestination
from tests.factories import ready_provider


@pytest.fixture
def side() -> Iterator[FarSide]:
    with far_side() as made:
        yield made


@pytest.fixture
def payments(destination: RunningDestination) -> RunningDestination:
    """The rehearsal destination, and the provider `payments` that lacks nothing there."""
    ready_provider("payments", destination.url)
    return destination
