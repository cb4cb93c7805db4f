"""Real processes on a database and a broker of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections
from pytest_django import Settings

from romulus_site.embedded import broker_options, ensure_pgmq
from tests.acceptance.counting import booking, counting
from tests.acceptance.hooking import Hooks
from tests.acceptance.refunding import counted, refunding, reporting
from tests.acceptance.settling import dated, settling
from tests.acceptance.shipfake import Shipfake, shipping
from tests.acceptance.web import web
from tests.databases import cloned
from tests.workers import LEASE_SECONDS, Crew, crew, environment_of
from workflows.registry import registry


@pytest.fixture(scope="module")
def hooks(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Hooks]:
    """One console for the tests of a module, on a database of its own."""
    folder = tmp_path_factory.mktemp("hooks")
    with django_db_blocker.unblock(), cloned(connection) as url:
        with web(environment_of(url), folder) as console:
            yield Hooks(console, folder / "web.log")
        connections.close_all()


@pytest.fixture
def shipfake(committed_db: str, tmp_path: Path) -> Iterator[Shipfake]:
    """The producer of events, beside a console of the test's own."""
    with shipping(committed_db, tmp_path) as producer:
        yield producer


@pytest.fixture
def workers(committed_db: str, tmp_path: Path, settings: Settings) -> Iterator[Crew]:
    """Start workers that run the tests' workflows; every one is ended after the test."""
    for workflow in (booking, counting, refunding, reporting, counted, settling, dated):
        registry.add(workflow)
    ensure_pgmq(broker_options(connection.settings_dict)["conn_string"])
    settings.ROMULUS_LEASE_SECONDS = LEASE_SECONDS
    with crew(committed_db, tmp_path) as started:
        yield started
