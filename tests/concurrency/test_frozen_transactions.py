"""A process that is frozen, or cut off, within a transaction holds nobody up for ever."""

from __future__ import annotations

import threading
import time
from uuid import UUID

import pytest
from django.db import OperationalError, connection, transaction
from pytest_django import Settings

from reconciliation.models import AuditEntry
from reconciliation.services.audit import add_entry
from tests.claiming import ATOMIC, attempts, claimed, ready_run, worker
from tests.factories import advanced
from tests.racing import beside
from tests.waiting import LIMIT_SECONDS, wait_for
from workflows.services.claims import Claim, claim_run, hold
from workflows.services.run_view import RunView

LEASE_SECONDS = 1.0  # longer than a loaded machine lets a transaction rest


@pytest.fixture(autouse=True)
def short_lease(committed_db: str, settings: Settings) -> None:
    settings.ROMULUS_LEASE_SECONDS = LEASE_SECONDS
    connection.close()  # what is opened from now on knows of it


def test_the_audit_record_is_free_again_after_a_lease() -> None:
    thawed = threading.Event()
    locked = threading.Event()

    def freeze() -> object:
        """Hold the audit record's lock, and do nothing more until all is over."""
        with transaction.atomic():
            add_entry("system", "held", "run:1", {})
            locked.set()
            thawed.wait(LIMIT_SECONDS)
            return add_entry("system", "held", "run:2", {})

    with beside() as run:
        frozen = run(freeze)
        assert locked.wait(LIMIT_SECONDS)
        run(lambda: add_entry("system", "held", "run:3", {})).result(timeout=LIMIT_SECONDS)
        thawed.set()
        with pytest.raises(OperationalError):  # an outage as any other, and no step's fault
            frozen.result(timeout=LIMIT_SECONDS)
    assert list(AuditEntry.objects.values_list("object", flat=True)) == ["run:3"]


def test_a_run_is_taken_over_from_a_worker_that_is_frozen_within_its_commit() -> None:
    run = ready_run()
    claim = claimed(run)
    thawed = threading.Event()
    locked = threading.Event()

    def freeze() -> None:
        with transaction.atomic():
            hold(claim)
            locked.set()
            thawed.wait(LIMIT_SECONDS)

    with beside() as beside_us:
        frozen = beside_us(freeze)
        assert locked.wait(LIMIT_SECONDS)
        taken = wait_for(lambda: taken_over(run.pk), "the run is taken over")
        thawed.set()
        assert taken.fence == claim.fence + 1
        with pytest.raises(OperationalError):
            frozen.result(timeout=LIMIT_SECONDS)


def taken_over(run: UUID) -> Claim | None:
    return claim_run(run, worker())


def test_an_atomic_step_may_compute_for_longer_than_a_lease() -> None:
    def compute(_: RunView) -> int:
        time.sleep(3 * LEASE_SECONDS)
        return 1

    run = advanced(ready_run(ATOMIC, compute))
    assert attempts(run)[0] == ("act", 1, "committed")
