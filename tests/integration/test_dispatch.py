"""Turning dispatch on again while somebody looks at what waits for it."""

from __future__ import annotations

import pytest

from reconciliation.core.decide import decide
from reconciliation.core.facts import Dispatch
from reconciliation.models import Operation, Provider
from reconciliation.services.dispatch import set_dispatch
from reconciliation.services.facts import load_facts
from reconciliation.services.reconcile import follow, load, reconcile
from tests.destination import RunningDestination
from tests.factories import administrator, advanced, ready_provider, started_run
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db


def test_what_was_decided_before_dispatch_was_turned_on_puts_nothing_off(
    destination: RunningDestination,
) -> None:
    ready_provider("payments", destination.url, dispatch=Dispatch.OFF)
    run = advanced(started_run())
    assert run.failure["reason"] == "dispatch"
    parked = load(Operation.objects.get(run=run).pk)
    facts = load_facts(parked)
    move = decide(facts, database_now())

    provider = Provider.objects.get(slug="payments")
    assert set_dispatch(provider, Dispatch.ON, administrator(), "The provider is mended.")
    follow(parked, move, facts.missing)

    parked.refresh_from_db()
    assert parked.due_at is not None
    assert parked.due_at <= database_now()
    reconcile(parked.pk)
    run.refresh_from_db()
    assert run.state == "ready"
