"""Whose a held case is, when it comes back, and what people say about it: the services."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from guardian.shortcuts import assign_perm

from reconciliation.access import deciders_of
from reconciliation.core.errors import CaseMoved, InvalidRequest
from reconciliation.models import AuditEntry, CaseNote, Hold, Notification, Provider, Reminder
from reconciliation.selectors.letters import is_worth_telling
from reconciliation.services.assigning import assign, claim
from reconciliation.services.audit import actor_of, add_entry, first_broken_entry
from reconciliation.services.escalating import tell_reminders
from reconciliation.services.notes import answer, ask, comment
from reconciliation.services.snoozing import (
    due_reminders,
    end_reminder,
    mark_told,
    remind,
    snooze,
    wake,
)
from tests.factories import many_held, owner_of, person, reader, ready_provider, stranger
from workflows.models import Tenant
from workflows.services.clock import database_now
from workflows.services.runs import STARTED

pytestmark = pytest.mark.django_db


def fresh(user: Any) -> Any:
    return get_user_model().objects.get(pk=user.pk)


@pytest.fixture
def provider() -> Provider:
    return ready_provider("payments")


@pytest.fixture
def hold(provider: Provider) -> Hold:
    return many_held(1, provider)[0]


@pytest.fixture
def owner(provider: Provider) -> Any:
    """May see and decide."""
    return fresh(person())


@pytest.fixture
def lead(provider: Provider) -> Any:
    """May assign too."""
    user = owner_of(provider.default_queue, "lead_1")
    assign_perm("reconciliation.assign", user, provider.default_queue)
    return fresh(user)


def assignee_of(hold: Hold) -> Any:
    return Hold.objects.get(pk=hold.pk).assignee


def verbs() -> list[str]:
    return list(AuditEntry.objects.order_by("seq").values_list("verb", flat=True))


# --- whose it is ------------------------------------------------------------------------------


def test_a_case_goes_to_nobody_who_started_its_run(hold: Hold, owner: Any, lead: Any) -> None:
    add_entry(actor_of(owner), STARTED, f"run:{hold.run_id}", {})
    with pytest.raises(PermissionDenied, match="You started this run"):
        claim(hold.pk, owner)
    with pytest.raises(InvalidRequest, match="started this run or approved this write"):
        assign(hold.pk, owner, lead, seen=None)
    assert assignee_of(hold) is None
    assert claim(hold.pk, lead)


def test_a_case_is_claimed_handed_over_and_put_back_and_each_is_on_record(
    hold: Hold, owner: Any, lead: Any
) -> None:
    assert claim(hold.pk, owner)
    assert not claim(hold.pk, owner)  # again changes nothing
    assert assign(hold.pk, lead, lead, seen=owner.pk)
    assert assign(hold.pk, owner, lead, seen=lead.pk, note="Knows the desk.")
    assert assign(hold.pk, None, owner, seen=owner.pk)
    assert assignee_of(hold) is None
    assert verbs() == ["claimed", "took over", "handed over", "put back"]
    entry = AuditEntry.objects.get(verb="handed over")
    assert entry.object == f"operation:{hold.operation_id}"
    assert entry.detail == {"hold": str(hold.pk), "to": "reviewer_1", "from": "lead_1"}
    note = CaseNote.objects.get()
    assert (note.kind, note.text, note.to_name) == ("handover", "Knows the desk.", "reviewer_1")
    assert first_broken_entry() is None


def test_a_form_that_was_read_before_a_decision_is_not_void_because_of_an_assignment(
    hold: Hold, owner: Any
) -> None:
    claim(hold.pk, owner)
    assert Hold.objects.get(pk=hold.pk).version == hold.version


def test_the_second_who_claims_is_told_who_has_it(hold: Hold, owner: Any, lead: Any) -> None:
    claim(hold.pk, lead)
    with pytest.raises(CaseMoved, match="lead_1 has it now"):
        claim(hold.pk, owner)
    with pytest.raises(CaseMoved, match="lead_1 has it now"):
        assign(hold.pk, owner, lead, seen=None)
    assert assignee_of(hold) == lead


def test_ones_own_case_is_handed_over_with_a_word(hold: Hold, owner: Any, lead: Any) -> None:
    claim(hold.pk, lead)
    for note in ("", "  ", "a\x00b"):
        with pytest.raises(InvalidRequest) as refused:
            assign(hold.pk, owner, lead, seen=lead.pk, note=note)
        assert refused.value.field == "note"
    assert assignee_of(hold) == lead


def test_only_who_may_assign_gives_a_case_to_others(hold: Hold, owner: Any, lead: Any) -> None:
    with pytest.raises(PermissionDenied):
        assign(hold.pk, lead, owner, seen=None)
    with pytest.raises(PermissionDenied):
        claim(hold.pk, fresh(reader(hold.queue)))
    assert assignee_of(hold) is None
    assert verbs() == []


def closed(user: Any) -> Any:
    get_user_model().objects.filter(pk=user.pk).update(is_active=False)
    return fresh(user)


def of_another_tenant(hold: Hold) -> Any:
    user = person("elsewhere_1")
    for right in ("view_reviewqueue", "decide"):
        assign_perm(f"reconciliation.{right}", user, hold.queue)
    assign_perm(
        "workflows.view_tenant", user, Tenant.objects.create(slug="elsewhere", name="Elsewhere")
    )
    return fresh(user)


@pytest.mark.parametrize(
    "whom",
    [
        lambda hold: reader(hold.queue),
        lambda _: stranger(),
        lambda hold: closed(owner_of(hold.queue, "gone_1")),
        of_another_tenant,
    ],
    ids=["a reader", "a stranger", "a closed account", "another tenant's"],
)
def test_nobody_gets_a_case_who_may_not_see_and_decide_it(
    hold: Hold, lead: Any, whom: Callable[[Hold], Any]
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        assign(hold.pk, whom(hold), lead, seen=None)
    assert refused.value.field == "to"
    assert assignee_of(hold) is None


@pytest.mark.parametrize("as_group", [False, True], ids=["by oneself", "by a group"])
def test_who_may_see_all_tenants_and_decide_in_the_queue_gets_a_case(
    hold: Hold, lead: Any, as_group: bool
) -> None:
    user = person("everywhere_1")
    assign_perm("reconciliation.decide", user, hold.queue)
    see = Permission.objects.filter(codename__in=("view_tenant", "view_reviewqueue"))
    if as_group:
        group = Group.objects.create(name="All tenants")
        group.permissions.set(see)
        user.groups.add(group)
    else:
        user.user_permissions.set(see)
    assert list(deciders_of(hold).filter(pk=user.pk)) == [user]
    assert assign(hold.pk, fresh(user), lead, seen=None)
    assert assignee_of(hold) == user


def test_a_case_that_was_settled_is_nobodys_to_take(hold: Hold, owner: Any, lead: Any) -> None:
    Hold.objects.filter(pk=hold.pk).update(state="closed", closed_at=database_now())
    until = database_now() + timedelta(hours=1)
    acts: list[Callable[[], Any]] = [
        lambda: claim(hold.pk, owner),
        lambda: assign(hold.pk, owner, lead, seen=None),
        lambda: snooze(hold.pk, owner, until),
        lambda: remind(hold.pk, owner, until),
        lambda: ask(Hold.objects.get(pk=hold.pk), owner, lead, "Why?", uuid4()),
    ]
    for act in acts:
        with pytest.raises(CaseMoved, match="settled"):
            act()


# --- when it comes back -----------------------------------------------------------------------


def test_a_snooze_moves_neither_the_due_time_nor_the_version(hold: Hold, owner: Any) -> None:
    until = database_now() + timedelta(hours=2)
    assert snooze(hold.pk, owner, until)
    assert not snooze(hold.pk, owner, until)
    now = Hold.objects.get(pk=hold.pk)
    assert (now.snoozed_until, now.due_at, now.version) == (until, hold.due_at, hold.version)
    assert wake(hold.pk, owner)
    assert not wake(hold.pk, owner)
    assert Hold.objects.get(pk=hold.pk).snoozed_until is None
    assert verbs() == ["snoozed", "ended a snooze of"]


@pytest.mark.parametrize("away", [timedelta(0), timedelta(hours=-1), timedelta(days=31)])
def test_a_snooze_ends_in_the_days_to_come(hold: Hold, owner: Any, away: timedelta) -> None:
    for act in (snooze, remind):
        with pytest.raises(InvalidRequest) as refused:
            act(hold.pk, owner, database_now() + away)
        assert refused.value.field == "until"


def test_whoever_may_only_look_snoozes_nothing_and_is_reminded_all_the_same(hold: Hold) -> None:
    reads, until = fresh(reader(hold.queue)), database_now() + timedelta(hours=1)
    with pytest.raises(PermissionDenied):
        snooze(hold.pk, reads, until)
    assert remind(hold.pk, reads, until)
    with pytest.raises(PermissionDenied):
        remind(hold.pk, stranger(), until)


def test_a_reminder_is_moved_told_of_once_and_ended(hold: Hold, owner: Any, lead: Any) -> None:
    now = database_now()
    remind(hold.pk, lead, now + timedelta(hours=1))
    remind(hold.pk, owner, now + timedelta(hours=1))
    assert remind(hold.pk, owner, now + timedelta(hours=2))
    assert not remind(hold.pk, owner, now + timedelta(hours=2))
    assert Reminder.objects.count() == 2
    assert due_reminders() == []
    Reminder.objects.filter(person=owner).update(at=now)
    (due,) = due_reminders()
    assert (due.person, due.hold) == (owner, hold)
    assert mark_told(due)
    assert not mark_told(due)
    assert due_reminders() == []
    # Told, and not seen to yet: moved, it is told of again.
    remind(hold.pk, owner, now + timedelta(hours=3))
    assert Reminder.objects.get(person=owner).told_at is None
    assert end_reminder(hold.pk, owner)
    assert not end_reminder(hold.pk, owner)


def told() -> list[tuple[str, str]]:
    """What people are to hear, and who."""
    rows = Notification.objects.exclude(person=None).order_by("pk")
    return list(rows.values_list("kind", "person__username"))


def test_people_hear_what_others_make_theirs_and_what_they_wanted_to_hear(
    hold: Hold, owner: Any, lead: Any
) -> None:
    claim(hold.pk, lead)  # by one's own hand: no news
    assign(hold.pk, owner, lead, seen=lead.pk, note="Knows the desk.")
    question = ask(hold, owner, lead, "Which card?", uuid4())
    ask(hold, owner, owner, "To myself.", uuid4())
    answer(question, lead, "The blue one.", uuid4())
    remind(hold.pk, owner, database_now() + timedelta(hours=1))
    assert tell_reminders() == 0
    Reminder.objects.update(at=database_now())
    assert tell_reminders() == 1
    assert tell_reminders() == 0
    assert told() == [("assigned", "reviewer_1"), ("asked", "lead_1"), ("reminder", "reviewer_1")]
    texts = str(list(Notification.objects.values()))
    assert "card" not in texts


def test_who_loses_a_case_to_another_by_another_s_hand_hears_of_it(
    hold: Hold, owner: Any, lead: Any
) -> None:
    other = owner_of(hold.queue, "reviewer_2")
    assign(hold.pk, owner, lead, seen=None)
    assign(hold.pk, other, lead, seen=owner.pk)
    assert told() == [
        ("assigned", "reviewer_1"),
        ("assigned", "reviewer_2"),
        ("taken", "reviewer_1"),
    ]
    lost = Notification.objects.get(kind="taken")
    assert is_worth_telling(lost)
    assign(hold.pk, owner, lead, seen=other.pk)  # and back
    lost = Notification.objects.get(pk=lost.pk)
    assert not is_worth_telling(lost)


def test_a_reminder_that_was_moved_meanwhile_is_not_told_of(hold: Hold, owner: Any) -> None:
    remind(hold.pk, owner, database_now() + timedelta(hours=1))
    Reminder.objects.update(at=database_now())
    (due,) = due_reminders()
    remind(hold.pk, owner, database_now() + timedelta(hours=1))
    assert not mark_told(due)


def test_a_case_that_was_settled_reminds_nobody(hold: Hold, owner: Any) -> None:
    remind(hold.pk, owner, database_now() + timedelta(hours=1))
    Reminder.objects.update(at=database_now())
    Hold.objects.filter(pk=hold.pk).update(state="closed", closed_at=database_now())
    assert due_reminders() == []


# --- what people say --------------------------------------------------------------------------


def test_what_was_said_is_never_changed_and_never_goes_away(hold: Hold, owner: Any) -> None:
    note = comment(hold, owner, "  The desk calls back by noon. ", uuid4())
    assert note.text == "The desk calls back by noon."
    for act in (
        lambda: CaseNote.objects.update(text="Nothing."),
        lambda: CaseNote.objects.all().delete(),
        note.delete,
    ):
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            act()
    assert CaseNote.objects.get().text == "The desk calls back by noon."


def test_a_form_that_is_submitted_twice_says_it_once(hold: Hold, owner: Any) -> None:
    token = uuid4()
    first = comment(hold, owner, "Once.", token)
    assert comment(hold, owner, "Once.", token) == first
    assert verbs() == ["commented"]


def test_a_question_is_answered_once_and_the_record_tells_nothing_of_the_text(
    hold: Hold, owner: Any, lead: Any
) -> None:
    question = ask(hold, owner, lead, "Which secret card?", uuid4())
    assert (question.to, question.to_name) == (lead, "lead_1")
    answer(question, lead, "The blue one.", uuid4())
    with pytest.raises(CaseMoved, match="answered it first"):
        answer(question, owner, "The red one.", uuid4())
    assert verbs() == ["asked for information", "answered a question"]
    for entry in AuditEntry.objects.all():
        assert "card" not in str(entry.detail)
        assert "blue" not in str(entry.detail)


@pytest.mark.parametrize("text", ["\u200b", "", " \n ", "x" * 4001, "a\x00b"])
def test_a_note_is_text_that_can_be_kept(hold: Hold, owner: Any, text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        comment(hold, owner, text, uuid4())
    assert refused.value.field == "text"
    assert not CaseNote.objects.exists()


def test_only_who_may_see_a_case_speaks_of_it_and_is_asked(hold: Hold, owner: Any) -> None:
    with pytest.raises(PermissionDenied):
        comment(hold, stranger(), "Hello.", uuid4())
    with pytest.raises(InvalidRequest) as refused:
        ask(hold, owner, stranger(), "Which card?", uuid4())
    assert refused.value.field == "to"
    assert not CaseNote.objects.exists()


def test_a_settled_case_can_still_be_spoken_of(hold: Hold, owner: Any, lead: Any) -> None:
    question = ask(hold, owner, lead, "Which card?", uuid4())
    Hold.objects.filter(pk=hold.pk).update(state="closed", closed_at=database_now())
    comment(hold, owner, "It was the blue card.", uuid4())
    answer(question, lead, "So it was.", uuid4())
    assert CaseNote.objects.count() == 3
