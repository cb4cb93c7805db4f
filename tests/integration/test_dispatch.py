"""Turning dispatch on again while somebody looks at what waits for it."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.db.models.functions import Now

from reconciliation.core.decide import decide
from reconciliation.core.facts import Dispatch
from reconciliation.models import Operation, Provider
from reconciliation.services.dispatch import set_dispatch
from reconciliation.services.facts import load_facts
from reconciliation.services.ledger import operation_of
from reconciliation.services.reconcile import LOOK_AGAIN, follow, load, reconcile
from reconciliation.services.transmit import give_up_lost_sends
from reconciliation.services.write_step import settle
from tests.claiming import expire_lease
from tests.destination import RunningDestination
from tests.factories import administrator, advanced, ready_provider, started_run
from tests.sending import about_to_send, the_operation
from workflows.services import kinds
from workflows.services.claims import Claim, claim_run
from workflows.services.clock import database_now
from workflows.services.ownership import Keeper

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


def takes_over_lost_send() -> tuple[Claim, Operation]:
    """The worker after one that went quiet while it sent."""
    stale = about_to_send(started_run())
    expire_lease(stale.operation.run)
    later = claim_run(stale.operation.run_id, Keeper().worker)
    assert later is not None
    operation = operation_of(later)
    assert operation is not None
    give_up_lost_sends(operation, later)
    return later, operation


def test_a_replay_that_was_about_to_wait_when_dispatch_was_turned_on_is_looked_at_soon(
    destination: RunningDestination,
) -> None:
    """Its run did not wait yet, so nothing released it; its window is open for hours."""
    provider = ready_provider("payments", destination.url)
    later, operation = takes_over_lost_send()
    admin = administrator()
    set_dispatch(provider, Dispatch.PAUSED, admin, "An incident there.")
    parking = settle(later, operation)
    assert isinstance(parking, kinds.Park)

    set_dispatch(provider, Dispatch.ON, admin, "The provider is mended.")
    with transaction.atomic():
        parking.also()
    due = the_operation().due_at
    assert due is not None
    assert due <= database_now() + LOOK_AGAIN


def test_what_waits_for_dispatch_inside_its_window_is_looked_at_again_and_again(
    destination: RunningDestination,
) -> None:
    provider = ready_provider("payments", destination.url)
    takes_over_lost_send()
    set_dispatch(provider, Dispatch.PAUSED, administrator(), "An incident there.")
    run = the_operation().run
    expire_lease(run)
    assert advanced(run).failure["reason"] == "dispatch"
    Operation.objects.update(due_at=Now())
    reconcile(the_operation().pk)
    due = the_operation().due_at
    assert due is not None
    assert database_now() < due <= database_now() + LOOK_AGAIN
