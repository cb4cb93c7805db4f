"""What the lanes share: their adapters are known for as long as a test is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciliation.adapters.registry import ADAPTERS


@pytest.fixture(autouse=True)
def adapters_of_one_test() -> Iterator[None]:
    shipped = dict(ADAPTERS)
    yield
    ADAPTERS.clear()
    ADAPTERS.update(shipped)
