"""The record of a torture without any blow is read once; each test breaks one thing in a copy."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from romulus_site.torture.record import Record
from tests.databases import cloned
from tests.destination import RunningDestination
from tests.peaceful import own_registry, peaceful_record


@pytest.fixture(scope="package")
def whole(
    django_db_setup: None, django_db_blocker: Any, destination_process: RunningDestination
) -> Record:
    destination_process.client.reset()
    with django_db_blocker.unblock(), cloned(connection), own_registry():
        return peaceful_record(destination_process)


@pytest.fixture
def record(whole: Record) -> Iterator[Record]:
    """A copy that a test may break."""
    fields = dataclasses.fields(whole)
    with own_registry():
        yield Record(**{each.name: copy.deepcopy(getattr(whole, each.name)) for each in fields})
