"""What several files here start from: a provider that the test scripts, and a hold to decide."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection

from reconciliation.models import Hold
from tests.destination import RunningDestination
from tests.factories import held_operation, open_hold_of, ready_provider
from tests.scripted import Scripted, scripted_provider


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    with scripted_provider() as provider:
        yield provider


@pytest.fixture
def hold(destination: RunningDestination) -> Hold:
    """The open hold of a write whose answer was lost, at a provider without key and look-up."""
    ready_provider("desk", destination.url)
    return open_hold_of(held_operation(destination))


@pytest.fixture
def lost_session() -> Iterator[None]:
    """The session is to be given up, as after an answer that only a standby gives."""
    connection.ensure_connection()
    before, connection.close_at = connection.close_at, 0
    yield
    connection.close_at = before
