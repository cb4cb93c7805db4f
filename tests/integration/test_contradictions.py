"""A provider broke its contract: repeats stop, and go on only after review and trust shown anew."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import transaction
from guardian.shortcuts import assign_perm

from reconciliation.core.errors import ContradictionMoved, InvalidDecision
from reconciliation.core.matching import Found, compare
from reconciliation.core.rehearsals import Claim, Verdict
from reconciliation.core.states import EvidenceKind
from reconciliation.models import AuditEntry, Hold, Notification, Operation, Provider
from reconciliation.services.contradictions import contradict, review_contradiction
from reconciliation.services.offers import ground_of
from reconciliation.services.records import add_record_evidence, intended_by
from reconciliation.services.rehearsals import Outcome, keep_rehearsal
from reconciliation.services.setup import save_provider
from tests.deciding import SEND_AGAIN, decide
from tests.destination import RunningDestination
from tests.factories import administrator, advanced, person, ready_provider, settled, started_run
from tests.sending import about_to_send, effects
from workflows.models import Run
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

WHY = "Their support confirms a fault of 2 March, ticket 4711."


def contradicted(**fields: Any) -> Provider:
    return ready_provider(
        "payments", contradicted_at=database_now(), contradiction="two for one key", **fields
    )


def review(provider: Provider, by: Any = None, note: str = WHY, **given: Any) -> None:
    shown: datetime | None = given.get("shown", provider.contradicted_at)
    review_contradiction(provider, shown, by=by or administrator(), note=note)


def stop_of(provider: Provider) -> tuple[bool, str, str]:
    provider.refresh_from_db()
    return (provider.contradicted_at is not None, provider.contradiction, provider.replay_trust)


STOPPED = (True, "two for one key", "shown by the tests")
REVIEWED = (False, "", "")


def test_a_review_ends_the_stop_and_the_trust_in_repeats_on_record() -> None:
    provider = contradicted()
    at = provider.contradicted_at
    assert at is not None
    configurer = person("setter_1")
    assign_perm("reconciliation.configure", configurer, provider)
    review(provider, by=configurer, note=f"  {WHY} ")
    assert stop_of(provider) == REVIEWED
    assert provider.look_up_trust == "shown by the tests"
    entry = AuditEntry.objects.get(verb="reviewed contradiction")
    assert (entry.object, entry.detail["reason"]) == ("provider:payments", WHY)
    assert entry.actor.endswith("setter_1")
    assert entry.detail["changes"] == {
        "contradicted_at": [at.isoformat(), None],
        "contradiction": ["two for one key", ""],
        "replay_trust": ["shown by the tests", ""],
    }


@pytest.mark.parametrize("note", ["", "fine", "x" * 4001, "a" + " " * 40])
def test_without_a_reason_that_can_be_read_nothing_is_reviewed(note: str) -> None:
    provider = contradicted()
    with pytest.raises(InvalidDecision) as refused:
        review(provider, note=note)
    assert refused.value.field == "note"
    assert stop_of(provider) == STOPPED


@pytest.mark.parametrize("right", ["view_provider", "pause_dispatch"])
def test_who_may_not_set_it_up_does_not_review_it(right: str) -> None:
    provider = contradicted()
    other = person("other_1")
    assign_perm(f"reconciliation.{right}", other, provider)
    with pytest.raises(PermissionDenied):
        review(provider, by=other)
    assert stop_of(provider) == STOPPED
    assert not AuditEntry.objects.filter(verb="reviewed contradiction").exists()


def test_the_second_of_two_reviews_is_told_who_was_first() -> None:
    provider = contradicted()
    shown = provider.contradicted_at
    review(provider, by=administrator("ada"))
    Provider.objects.update(replay_trust="shown anew")
    with pytest.raises(ContradictionMoved, match="ada has reviewed it already"):
        review(provider, shown=shown)
    assert stop_of(provider) == (False, "", "shown anew")
    assert AuditEntry.objects.filter(verb="reviewed contradiction").count() == 1


def test_what_was_never_contradicted_cannot_be_reviewed() -> None:
    provider = ready_provider("payments")
    for shown in (None, database_now()):
        with pytest.raises(ContradictionMoved, match="nothing to review"):
            review(provider, shown=shown)
    assert stop_of(provider)[2] == "shown by the tests"


def test_a_contradiction_that_was_not_shown_is_not_reviewed(
    destination: RunningDestination,
) -> None:
    provider = contradicted(base_url=destination.url)
    shown = provider.contradicted_at
    operation = about_to_send(started_run("refund")).operation
    with transaction.atomic():
        contradict(operation, "a third one")
    with pytest.raises(ContradictionMoved, match="once more"):
        review(provider, shown=shown)
    assert stop_of(provider) == (True, "a third one", "shown by the tests")
    told = Notification.objects.filter(kind="contradicted")
    assert not told.exists()  # its owners know already that it is stopped
    review(provider)
    with transaction.atomic():
        contradict(operation, "a fourth one")
    assert told.count() == 1


def test_a_rehearsal_that_contradicts_it_once_more_is_not_reviewed_unseen() -> None:
    provider = contradicted()
    shown = provider.contradicted_at
    outcome = Outcome(database_now(), {Claim.REPLAY: Verdict.CONTRADICTED}, [], 0, complete=True)
    keep_rehearsal(provider, outcome, by="system")
    with pytest.raises(ContradictionMoved, match="once more"):
        review(provider, shown=shown)
    # The rehearsal began while the stop was on, and ends after its review: it stops it again.
    provider.refresh_from_db()
    began_with = Provider.objects.get()
    review(provider)
    keep_rehearsal(began_with, outcome, by="system")
    assert stop_of(provider)[0]


def shows(operation: Operation, resource: str) -> None:
    record = Found(resource=resource, operation=str(operation.pk))
    comparison = compare(intended_by(operation), record, marker_required=True)
    with transaction.atomic():
        add_record_evidence(operation, EvidenceKind.LOOKUP, record, comparison, "look-up")


def test_to_see_what_was_reviewed_once_more_stops_nothing_and_another_effect_does() -> None:
    provider = ready_provider("machines", dispatch="paused")
    operation = Operation.objects.get(run=advanced(started_run("replacement_worker")))
    shows(operation, "m_1")
    shows(operation, "m_2")
    provider.refresh_from_db()
    review(provider)
    shows(operation, "m_2")
    assert not stop_of(provider)[0]
    shows(operation, "m_3")
    assert stop_of(provider)[:2] == (True, "m_1 and m_3 for one operation")


def test_a_held_write_is_sent_again_only_after_review_and_trust_shown_anew(
    destination: RunningDestination,
) -> None:
    provider = contradicted(base_url=destination.url)
    destination.client.arm("apply_then_drop")
    operation = Operation.objects.get(run=settled(started_run("refund")))
    hold = Hold.objects.get(state="open")
    assert hold.reason == "contract_contradicted"

    def offered() -> bool:
        as_it_is = Hold.objects.get(pk=hold.pk)
        again = next(o for o in ground_of(as_it_is).offers if o.kind is SEND_AGAIN)
        return bool(again.allowed)

    assert not offered()
    before = Run.objects.values().get()
    review(provider)
    assert Run.objects.values().get() == before  # a review moves and sends nothing
    hold.refresh_from_db()
    assert (hold.state, operation.transmissions.count()) == ("open", 1)
    assert not offered()
    shown = Outcome(database_now(), {Claim.REPLAY: Verdict.CONFIRMED}, [], 0, complete=True)
    keep_rehearsal(provider, shown, by="system")
    assert offered()
    decide(hold, SEND_AGAIN)
    assert settled(operation.run).state == "completed"
    assert (operation.transmissions.count(), effects(destination)) == (2, 1)


def test_saving_a_provider_that_was_read_before_it_was_contradicted_keeps_the_stop() -> None:
    read = ready_provider("payments")
    Provider.objects.update(
        contradicted_at=database_now(), contradiction="two for one key", replay_trust=""
    )
    read.name = "Payments of ours"
    save_provider(read, by=administrator(), changed=["name"])
    assert stop_of(read) == (True, "two for one key", "")
    assert read.name == "Payments of ours"
