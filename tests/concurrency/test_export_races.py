"""A case is exported while more of it is put on record: the pack is whole all the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import transaction

from reconciliation.exports import verify
from reconciliation.exports.pack import evidence_pack
from reconciliation.models import Operation
from reconciliation.services.audit import add_entry
from tests.destination import RunningDestination
from tests.factories import held_operation, person, ready_provider
from tests.racing import beside, wait_until_blocked
from tests.waiting import LIMIT_SECONDS

pytestmark = pytest.mark.usefixtures("committed_db")


def pack_of(operation: Operation) -> bytes:
    with evidence_pack(operation, person()) as pack:
        return pack.read()


def test_an_entry_that_comes_while_a_case_is_exported_is_counted(
    destination: RunningDestination, tmp_path: Path
) -> None:
    """Else an honest pack would say of itself that an entry is missing."""
    ready_provider("desk", destination.url)
    operation = held_operation(destination)
    with beside() as run:
        with transaction.atomic():
            add_entry("system", "looked up", f"operation:{operation.pk}", {})
            exporting = run(lambda: pack_of(operation))
            wait_until_blocked(exporting)
        pack = tmp_path / "pack.zip"
        pack.write_bytes(exporting.result(timeout=LIMIT_SECONDS))
    assert verify.main([str(pack)]) == 0
