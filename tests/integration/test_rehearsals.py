"""What follows from a rehearsal: what a provider is trusted with after, and what it is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from pytest_django import Settings

from reconciliation.core.contracts import Meaning
from reconciliation.core.errors import InvalidProvider
from reconciliation.core.rehearsals import Claim, Verdict
from reconciliation.models import AuditEntry, Operation, Provider, Rehearsal, Sandbox
from reconciliation.rehearsal.far_side import FarSide
from reconciliation.services.rehearsals import (
    Outcome,
    keep_rehearsal,
    sandbox_of,
    set_trust,
    stand_in_for,
)
from tests.destination import RunningDestination
from tests.factories import ready_provider, started_run
from tests.sending import about_to_send
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

C, X = Verdict.CONFIRMED, Verdict.CONTRADICTED
BOTH = {Claim.REPLAY: C, Claim.LOOK_UP: C}


def kept(claims: dict[Claim, Verdict], **changes: Any) -> Provider:
    """A provider that an owner trusted in writing, after a rehearsal that showed `claims`."""
    provider = ready_provider("payments", replay_trust="accepted", look_up_trust="accepted")
    outcome = Outcome(database_now(), claims, [], breaches=0, complete=True)
    keep_rehearsal(provider, replace(outcome, **changes), by="system")
    provider.refresh_from_db()
    return provider


def trusts(provider: Provider) -> tuple[str, str]:
    return provider.replay_trust.partition(" on ")[0], provider.look_up_trust.partition(" on ")[0]


SHOWN = "Shown by a rehearsal"


@pytest.mark.parametrize(
    ("claims", "changes", "trust"),
    [
        (BOTH, {}, (SHOWN, SHOWN)),
        ({Claim.REPLAY: C}, {}, (SHOWN, "accepted")),
        (BOTH, {"complete": False}, ("accepted", "accepted")),
        ({Claim.REPLAY: X, Claim.LOOK_UP: C}, {}, ("", SHOWN)),
        ({Claim.REPLAY: C, Claim.MISMATCH: X}, {}, ("", "accepted")),
        ({Claim.REPLAY: C, Claim.LOOK_UP: X}, {}, ("", "")),
        # Also one that was not complete, and Romulus' own mistake.
        ({Claim.REPLAY: X}, {"complete": False}, ("", "accepted")),
        (BOTH, {"breaches": 1}, ("", "")),
    ],
)
def test_what_is_trusted_after(
    claims: dict[Claim, Verdict], changes: dict[str, Any], trust: tuple[str, str]
) -> None:
    provider = kept(claims, **changes)
    assert trusts(provider) == trust
    assert (provider.contradicted_at is not None) == (X in claims.values())
    assert AuditEntry.objects.filter(verb="rehearsed", object="provider:payments").exists()


def test_a_contradiction_says_what_was_seen_and_only_a_person_takes_it_back() -> None:
    provider = kept({Claim.REPLAY: X})
    assert provider.contradiction == "Rehearsal: the same key again made another result"
    again = Outcome(database_now(), BOTH, [], breaches=0, complete=True)
    keep_rehearsal(provider, again, by="system")
    provider.refresh_from_db()
    assert provider.contradicted_at is not None


def test_a_rehearsal_is_added_and_never_changed() -> None:
    kept(BOTH)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Rehearsal.objects.update(breaches=7)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Rehearsal.objects.all().delete()


def test_what_stands_in_trusts_nothing_and_is_made_once() -> None:
    sandbox = sandbox_of(ready_provider("payments"))
    first = stand_in_for(sandbox, "http://127.0.0.1:1")
    set_trust(first, replay=True, look_up=True)
    Provider.objects.filter(pk=first.pk).update(contradicted_at=database_now())
    second = stand_in_for(Sandbox.objects.get(), "http://127.0.0.1:2")
    assert (second.pk, second.slug) == (first.pk, "payments-rehearsal")
    assert (second.replay_trust, second.look_up_trust, second.contradicted_at) == ("", "", None)
    assert second.contract_version == first.contract_version


def test_a_sandbox_that_became_the_live_account_is_refused() -> None:
    provider = ready_provider("payments", adapter="http")
    Sandbox.objects.create(
        provider=provider,
        base_url=provider.base_url,
        account=provider.account,
        action="refunds.create",
    )
    with pytest.raises(InvalidProvider, match="is the account that real work goes to"):
        sandbox_of(provider)


# --- the probe of other parameters --------------------------------------------------------------


@pytest.mark.parametrize(
    ("answered", "shown"),
    [
        ({}, Meaning.KEY_MISMATCH),
        ({"status": 503}, None),
        ({"status": 429}, None),
        ({"status": 400}, Meaning.REJECTED),
    ],
)
def test_an_answer_that_says_nothing_of_other_parameters_shows_nothing(
    answered: dict[str, Any], shown: Meaning | None, destination: RunningDestination
) -> None:
    provider = ready_provider("payments", destination.url)
    sender = about_to_send(started_run())
    sender.transmit()
    if answered:
        destination.client.arm("error_before", **answered)
    assert probed(provider, sender.operation) is shown


def test_a_probe_that_never_came_there_shows_nothing(
    destination: RunningDestination, settings: Settings
) -> None:
    provider = ready_provider("payments", destination.url)
    operation = about_to_send(started_run()).operation
    settings.ROMULUS_ALLOWED_ADDRESSES = []
    assert probed(provider, operation) is None


def probed(provider: Provider, operation: Operation) -> Meaning | None:
    sandbox = sandbox_of(provider)
    far_side = FarSide(sandbox, stand_in_for(sandbox, "http://127.0.0.1:1"))
    return far_side.with_other_parameters(
        operation, {"order": "ORD-7001", "amount": 12500, "currency": "USD"}
    )
