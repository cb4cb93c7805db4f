"""Real processes on a database and a broker of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection
from pytest_django import Settings

from romulus_site.embedded import broker_options, ensure_pgmq
from tests.acceptance.counting import booking, counting
from tests.acceptance.refunding import counted, refunding, reporting
from tests.workers import LEASE_SECONDS, Crew, crew
from workflows.registry import registry


@pytest.fixture
def workers(committed_db: str, tmp_path: Path, settings: Settings) -> Iterator[Crew]:
    """Start workers that run the tests' workflows; every one is ended after the test."""
    for workflow in (booking, counting, refunding, reporting, counted):
        registry.add(workflow)
    ensure_pgmq(broker_options(connection.settings_dict)["conn_string"])
    settings.ROMULUS_LEASE_SECONDS = LEASE_SECONDS
    with crew(committed_db, tmp_path) as started:
        yield started
