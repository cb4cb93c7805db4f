"""Who is told of what: causes written with what they tell, the ladder, the rota, rights, bursts."""

from __future__ import annotations

from datetime import UTC, time, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.core import mail
from django.db import connection, transaction
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from guardian.shortcuts import remove_perm
from pytest_django import Settings

from reconciliation.channels.mail import TO_THE_LOG
from reconciliation.core.digests import Every
from reconciliation.core.facts import Dispatch
from reconciliation.core.states import DecisionKind
from reconciliation.models import (
    Digest,
    Hold,
    Message,
    Notification,
    Operation,
    Profile,
    Provider,
    ReviewQueue,
    Sandbox,
    Shift,
)
from reconciliation.selectors.letters import item_of, write
from reconciliation.selectors.words import clock
from reconciliation.services.addressing import pass_on
from reconciliation.services.contradictions import contradict, review_contradiction
from reconciliation.services.decisions import Answer, record_decision
from reconciliation.services.delivering import deliver_due, due_messages
from reconciliation.services.digests import set_digest
from reconciliation.services.dispatch import Scope, set_dispatch
from reconciliation.services.escalating import WINDOW_AGAIN, begin_digests, escalate_holds
from reconciliation.services.holds import close_by_proof, open_hold
from reconciliation.services.rehearsals import queue_of_rehearsals, tenant_of_rehearsals
from reconciliation.services.telling import tell_opened
from tests.factories import NOTE, administrator, code_of, many_held, person, ready_provider
from tests.telling import aged, always_on_call, owner, reached, told, with_mail
from workflows.models import Run
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture(autouse=True)
def console_has_an_address(settings: Settings) -> None:
    settings.ROMULUS_CONSOLE_URL = "https://romulus.example.com"


@pytest.fixture
def provider() -> Provider:
    return ready_provider("desk")


@pytest.fixture
def hold(provider: Provider) -> Hold:
    """An open hold, of which nobody was told yet; due in four hours."""
    (held,) = many_held(1, provider)
    Hold.objects.filter(pk=held.pk).update(due_at=Now() + 4 * HOUR)
    held.refresh_from_db()
    return held


def subjects_to(name: str) -> list[str]:
    return [each.subject for each in mail.outbox if each.to == [f"{name}@example.com"]]


# --- causes -----------------------------------------------------------------------------------


def test_what_is_rolled_back_tells_nothing_and_a_cause_is_told_once(hold: Hold) -> None:
    with transaction.atomic():
        tell_opened(hold)
        transaction.set_rollback(True)
    assert not Notification.objects.exists()
    tell_opened(hold)
    tell_opened(hold)
    assert Notification.objects.get().cause == f"opened:{hold.pk}"


def test_a_hold_that_opens_is_told_of_with_its_case_and_a_link(hold: Hold) -> None:
    queue, operation = hold.queue, hold.operation
    assert queue is not None
    assert operation is not None
    Profile.objects.create(user=owner(queue), time_zone="Asia/Kathmandu")
    tell_opened(hold)
    told()
    (sent,) = mail.outbox
    assert sent.subject == f"Held: {operation.summary}"
    # What a locked phone shows beside it: until when, and what nobody knows.
    first = sent.body.splitlines()[0]
    assert first.startswith(f"A person decides it, by {clock(hold.due_at)} (")
    assert first.endswith("It may have happened once, or not at all.")
    assert f"https://romulus.example.com/operations/{operation.pk}/" in sent.body
    assert "Not known: " in sent.body
    # By the database's clock, and by their own where they have chosen one.
    assert f"Due: {clock(hold.due_at)} (" in sent.body
    assert "Asia/Kathmandu)" in sent.body
    assert "Nothing is decided by opening it" in sent.body
    assert sent.extra_headers["Message-ID"].startswith(f"<{Message.objects.get().pk}@")


@pytest.mark.parametrize(
    "fields",
    [{"replay_trust": ""}, {"contradicted_at": Now(), "contradiction": "two"}],
    ids=["never shown", "contradicted"],
)
def test_a_message_names_no_guard_on_which_nobody_relies(
    hold: Hold, fields: dict[str, Any]
) -> None:
    assert hold.operation is not None
    Operation.objects.filter(pk=hold.operation.pk).update(replay_not_after=Now() + 9 * HOUR)
    Provider.objects.update(replay_trust="shown by the tests")
    guard = "Guarded by the provider until"
    assert guard in dict(item_of(Hold.objects.get(), UTC).facts)
    Provider.objects.update(**fields)
    assert guard not in dict(item_of(Hold.objects.get(), UTC).facts)


def test_opening_a_hold_writes_its_notification(provider: Provider) -> None:
    (held,) = many_held(1, provider)
    assert held.operation is not None
    Hold.objects.filter(pk=held.pk).update(state="decided", closed_at=Now())
    hold = open_hold(held.run_id, held.operation, held.queue, "unguarded", "Because.")  # type: ignore[arg-type]
    assert Notification.objects.get().hold == hold


def test_what_is_rehearsed_is_told_to_nobody(provider: Provider) -> None:
    queue = queue_of_rehearsals()
    (held,) = many_held(1, provider)
    Run.objects.update(tenant=tenant_of_rehearsals())
    Hold.objects.update(queue=queue, due_at=Now())
    assert held.operation is not None
    sandbox = Sandbox.objects.create(provider=ready_provider("payments"), stand_in=provider)
    tell_opened(held)
    contradict(held.operation, "It is a rehearsal.")
    escalate_holds()
    assert close_by_proof(held.operation)
    assert not Notification.objects.exists()
    contradict(Operation(provider=sandbox.provider), "It is none.")
    assert Notification.objects.get().provider == sandbox.provider


def test_late_proof_tells_whoever_had_the_case(hold: Hold) -> None:
    assert hold.operation is not None
    assert hold.queue is not None
    Hold.objects.update(assignee=owner(hold.queue, "ada_1"))
    assert close_by_proof(hold.operation)
    told()
    assert subjects_to("ada_1") == [f"Settled by proof: {hold.operation.summary}"]


def test_a_provider_that_breaks_its_contract_is_told_of_to_its_owners_once(hold: Hold) -> None:
    operation = hold.operation
    assert operation is not None
    assert hold.queue is not None
    owner(hold.queue)
    contradict(operation, "Two resources for one key.")
    contradict(operation, "And again.")
    told()
    (sent,) = mail.outbox
    assert sent.subject == "Desk broke its contract"
    assert "And again." in sent.body  # as it is when it is told
    assert "https://romulus.example.com/providers/desk/" in sent.body


def test_who_may_not_see_the_provider_any_more_when_it_is_sent_is_not_told(hold: Hold) -> None:
    """A channel that fails keeps what waits for it for hours, or until somebody has mended it."""
    operation, queue = hold.operation, hold.queue
    assert operation is not None
    assert queue is not None
    user = owner(queue)
    contradict(operation, "Two resources for one key.")
    pass_on()
    remove_perm("reconciliation.view_reviewqueue", user, queue)
    for message in due_messages():
        deliver_due(message, write)
    assert mail.outbox == []
    assert Message.objects.get().state == "dropped"


def test_what_is_told_after_a_review_says_that_it_was_reviewed(hold: Hold) -> None:
    operation = hold.operation
    assert operation is not None
    assert hold.queue is not None
    owner(hold.queue)
    contradict(operation, "Two resources for one key.")
    provider = Provider.objects.get(pk=operation.provider_id)
    review_contradiction(provider, provider.contradicted_at, by=administrator(), note=NOTE)
    told()
    (sent,) = mail.outbox
    assert "and somebody has reviewed that." in sent.body
    assert "Nothing is repeated" not in sent.body


def test_a_switch_is_told_of_to_the_owners_of_what_it_covers(provider: Provider) -> None:
    other = ready_provider("payments")
    assert provider.default_queue is not None
    assert other.default_queue is not None
    owner(provider.default_queue, "ada_1")
    owner(other.default_queue, "ben_1")
    set_dispatch(Scope(provider), Dispatch.PAUSED, administrator(), "The bank called us.")
    told()
    assert subjects_to("ada_1") == ["Dispatch of Desk is paused"]
    assert not subjects_to("ben_1")
    set_dispatch(Scope(), Dispatch.OFF, administrator(), "Everything stands still.")
    told()
    assert subjects_to("ben_1") == ["Dispatch of everything is off"]


# --- the ladder -------------------------------------------------------------------------------


def test_a_hold_that_nobody_decides_goes_up_the_ladder_each_step_once(hold: Hold) -> None:
    queue = hold.queue
    assert queue is not None
    owner(queue, "owner_1")
    always_on_call(queue, "night_1")
    with_mail(administrator("admin_7"))
    Hold.objects.update(assignee=owner(queue, "ada_1"))
    queue.owners.remove(person("ada_1"))
    queue.owners.remove(person("reviewer_1"))
    far = timedelta(days=9)
    ReviewQueue.objects.update(
        tell_on_call_after=far, tell_owners_after=far, tell_administrators_after=far
    )
    Hold.objects.update(due_at=Now() + HOUR / 2, opened_at=Now() - HOUR)
    told()
    assert (reached("due_soon"), reached("overdue")) == (["ada_1"], [])
    Hold.objects.update(due_at=Now() - MINUTE, tell_at=Now())
    for step, overdue in (
        ("", ["ada_1"]),
        ("tell_on_call_after", ["ada_1", "night_1"]),
        ("tell_owners_after", ["ada_1", "night_1", "owner_1"]),
        ("tell_administrators_after", ["ada_1", "admin_7", "night_1", "owner_1"]),
    ):
        ReviewQueue.objects.update(**({step: timedelta()} if step else {"slug": "desk"}))
        for _ in range(2):
            Hold.objects.update(tell_at=Now())
            told()
            assert reached("overdue") == overdue
    assert Hold.objects.get().tell_at is None


def test_what_has_just_become_due_is_not_called_0_s_late(hold: Hold) -> None:
    owner(hold.queue, "owner_1")
    Hold.objects.update(due_at=Now() - MINUTE / 4, tell_at=Now(), opened_at=Now() - HOUR)
    told()
    late = [each.body for each in mail.outbox if each.subject.startswith("Overdue")]
    assert late
    assert all(body.startswith("It is due now, and nobody has decided it.") for body in late)


NOT_RELIED_ON = [{"replay_trust": ""}, {"contradicted_at": Now(), "contradiction": "two"}]


def closing(hold: Hold) -> None:
    """Its assignee can be reached, and its provider guards a second send for half an hour more."""
    owner(hold.queue, "ada_1")
    Hold.objects.update(assignee=person("ada_1"))
    Operation.objects.update(replay_not_after=Now() + HOUR / 2)


@pytest.mark.parametrize("fields", NOT_RELIED_ON, ids=["never shown", "contradicted"])
def test_a_window_on_which_nobody_relies_is_not_said_to_close(
    hold: Hold, provider: Provider, fields: dict[str, Any]
) -> None:
    closing(hold)
    trusted = {name: getattr(provider, name) for name in fields}
    Provider.objects.update(**fields)
    told()
    assert not Notification.objects.filter(kind="window").exists()
    # Looked at again while it lasts: the key may be relied on by then.
    hold.refresh_from_db()
    assert hold.tell_at is not None
    assert hold.tell_at - database_now() <= WINDOW_AGAIN
    Provider.objects.update(**trusted)
    Hold.objects.update(tell_at=Now())
    told()
    (sent,) = mail.outbox
    assert sent.subject.startswith("Window closing: ")


def test_a_closing_window_is_not_told_of_when_the_key_is_relied_on_no_more(hold: Hold) -> None:
    closing(hold)
    escalate_holds()
    pass_on()
    assert reached("window") == ["ada_1"]
    Provider.objects.update(replay_trust="")
    told()
    assert not mail.outbox
    assert Message.objects.get().state == "dropped"


def test_where_nobody_stands_on_a_rung_the_next_one_hears(hold: Hold) -> None:
    assert hold.queue is not None
    hold.queue.owners.clear()
    with_mail(administrator("admin_7"))
    aged(hold, 4 * HOUR + MINUTE)
    told()
    assert reached("overdue") == ["admin_7"]


@pytest.mark.parametrize("why", ["inactive", "no right", "no mailbox", "channel off"])
def test_who_cannot_or_may_not_hear_is_passed_over(hold: Hold, why: str) -> None:
    queue = hold.queue
    assert queue is not None
    night = always_on_call(queue, "night_1")
    queue.owners.set([owner(queue, "owner_1")])
    tell_opened(hold)
    match why:
        case "inactive":
            get_user_model().objects.filter(pk=night.pk).update(is_active=False)
        case "no right":
            remove_perm("reconciliation.view_reviewqueue", night, queue)
        case "no mailbox":
            get_user_model().objects.filter(pk=night.pk).update(email="")
        case _:
            night.channels.create(kind="email", enabled=False)
    told()
    assert reached("opened") == ["owner_1"]


def test_a_right_that_is_gone_when_it_is_sent_counts(hold: Hold) -> None:
    queue = hold.queue
    assert queue is not None
    user = owner(queue)
    tell_opened(hold)
    pass_on()
    remove_perm("reconciliation.view_reviewqueue", user, queue)
    told()
    assert not mail.outbox
    assert Message.objects.get().state == "dropped"


def test_what_was_decided_meanwhile_is_not_told(hold: Hold) -> None:
    assert hold.queue is not None
    owner(hold.queue)
    tell_opened(hold)
    Hold.objects.update(state="decided", closed_at=Now())
    told()
    assert not mail.outbox
    assert Message.objects.get().problem == "Nothing of it waited any more."


def test_keeping_a_hold_begins_the_ladder_anew(hold: Hold) -> None:
    assert hold.queue is not None
    user = owner(hold.queue)
    aged(hold, 9 * HOUR)
    told()
    before = Notification.objects.filter(kind="overdue").count()
    assert (before, Hold.objects.get().tell_at) == (4, None)
    until = database_now() + 2 * HOUR
    answer = Answer(
        DecisionKind.KEEP_HOLDING, NOTE, hold.version, uuid4(), code_of(hold.case_id), until=until
    )
    record_decision(hold.pk, user, answer)
    assert escalate_holds() == 1
    assert Hold.objects.get().tell_at == until - HOUR
    aged(hold, 2 * HOUR + MINUTE)
    told()
    assert Notification.objects.filter(kind="overdue").count() == before + 1


def test_a_dated_shift_takes_the_place_of_the_week(hold: Hold) -> None:
    queue = hold.queue
    assert queue is not None
    always_on_call(queue, "week_1")
    stands_in = always_on_call(queue, "stands_in_1")
    Shift.objects.filter(person=stands_in).update(
        weekdays="", starts=None, ends=None, starts_at=Now() - HOUR, ends_at=Now() + HOUR
    )
    tell_opened(hold)
    told()
    assert reached("opened") == ["stands_in_1"]


# --- many -------------------------------------------------------------------------------------


def test_a_burst_of_holds_is_one_summary_in_a_bounded_number_of_queries(
    provider: Provider,
) -> None:
    assert provider.default_queue is not None
    owner(provider.default_queue)
    for hold in many_held(500, provider):
        tell_opened(hold)
    Hold.objects.update(tell_at=None)
    told()
    (sent,) = mail.outbox
    assert sent.subject == "500 notifications: 500 held"
    assert "And 490 more." in sent.body
    assert "https://romulus.example.com/review/" in sent.body
    # Until the minute is over nothing else goes out by that channel, and then as one.
    for hold in many_held(3, provider):
        tell_opened(hold)
    told()
    assert len(mail.outbox) == 1
    Message.objects.update(created_at=Now() - MINUTE)
    told()
    assert len(mail.outbox) == 4


def test_the_sweep_costs_next_to_nothing_when_nothing_is_to_be_told(hold: Hold) -> None:
    Hold.objects.update(tell_at=Now() + HOUR)
    with CaptureQueriesContext(connection) as captured:
        told()
        begin_digests()
    assert len(captured) <= 6


# --- digests ----------------------------------------------------------------------------------


def test_a_digest_comes_once_at_its_time_and_not_when_nothing_waits(hold: Hold) -> None:
    assert hold.queue is not None
    user = owner(hold.queue)
    set_digest(user, Every.DAY, time(8), "Europe/Berlin")
    assert begin_digests() == 0
    for _ in range(2):
        Digest.objects.update(next_at=Now() - MINUTE)
        assert begin_digests() == 1
        assert Digest.objects.get().next_at > database_now()
    told()
    (sent,) = mail.outbox  # both are of one minute
    assert sent.subject == "1 case waits, 0 overdue"
    Hold.objects.update(state="decided", closed_at=Now())
    Digest.objects.update(next_at=Now() - HOUR)
    begin_digests()
    told()
    assert len(mail.outbox) == 1
    set_digest(user, None, time(8), "UTC")
    assert not Digest.objects.exists()


def test_a_notification_that_reaches_nobody_says_so(hold: Hold, settings: Any) -> None:
    settings.EMAIL_BACKEND = TO_THE_LOG  # there is no mail server
    tell_opened(hold)
    told()
    row = Notification.objects.get()
    assert (row.reached, row.addressed_at is not None) == (0, True)
