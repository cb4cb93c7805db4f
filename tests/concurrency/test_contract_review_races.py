"""Somebody reviews a broken contract at the very moment at which something else happens to it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from reconciliation.core.errors import ContradictionMoved
from reconciliation.models import AuditEntry, Provider
from reconciliation.services.contradictions import contradict, review_contradiction
from tests.destination import RunningDestination
from tests.factories import administrator, ready_provider, started_run
from tests.racing import at_once, beside, wait_until_blocked
from tests.sending import about_to_send
from tests.waiting import LIMIT_SECONDS
from workflows.services.clock import database_now

pytestmark = pytest.mark.usefixtures("committed_db")

WHY = "Their support confirms a fault of 2 March, ticket 4711."


def broken(base_url: str = "http://127.0.0.1:9") -> Provider:
    return ready_provider(
        "payments", base_url, contradicted_at=database_now(), contradiction="two for one key"
    )


def reviewed(provider: Provider, by: User) -> Any:
    return review_contradiction(provider, provider.contradicted_at, by=by, note=WHY)


def test_a_contradiction_that_comes_meanwhile_is_not_reviewed_with_the_one_before_it(
    destination: RunningDestination,
) -> None:
    provider, by = broken(destination.url), administrator()
    operation = about_to_send(started_run("refund")).operation
    with beside() as do:
        with transaction.atomic():
            contradict(operation, "a third one")
            review = do(lambda: reviewed(provider, by))
            wait_until_blocked(review)
        with pytest.raises(ContradictionMoved, match="once more"):
            review.result(timeout=LIMIT_SECONDS)
    provider.refresh_from_db()
    assert provider.contradiction == "a third one"
    assert provider.contradicted_at is not None


def test_a_contradiction_that_waits_for_a_review_stops_repeats_again(
    destination: RunningDestination,
) -> None:
    provider, by = broken(destination.url), administrator()
    operation = about_to_send(started_run("refund")).operation

    def contradicted() -> None:
        with transaction.atomic():
            contradict(operation, "a third one")

    with beside() as do:
        with transaction.atomic():
            reviewed(provider, by)
            later = do(contradicted)
            wait_until_blocked(later)
        later.result(timeout=LIMIT_SECONDS)
    provider.refresh_from_db()
    assert (provider.contradiction, provider.replay_trust) == ("a third one", "")
    assert provider.contradicted_at is not None


def test_of_two_who_review_at_once_one_is_recorded() -> None:
    provider = broken()
    ada, ben = administrator("ada"), administrator("ben")
    ends = at_once(lambda: reviewed(provider, ada), lambda: reviewed(provider, ben))
    (refused,) = [end for end in ends if end is not None]
    assert isinstance(refused, ContradictionMoved)
    assert "has reviewed it already" in str(refused)
    assert AuditEntry.objects.filter(verb="reviewed contradiction").count() == 1
