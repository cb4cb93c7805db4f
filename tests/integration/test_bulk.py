"""The same small thing done to many cases: what was confirmed is done, once, whatever dies."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth import get_user_model
from django.core import mail
from guardian.shortcuts import assign_perm, remove_perm
from pytest_django import Settings

from reconciliation.core.errors import InvalidRequest
from reconciliation.core.review_work import BulkKind
from reconciliation.models import (
    AuditEntry,
    BulkAction,
    BulkItem,
    Evidence,
    Hold,
    Notification,
    Provider,
)
from reconciliation.selectors.letters import is_worth_telling, lost_by
from reconciliation.services import bulk
from reconciliation.services.bulk import (
    BATCH,
    MOST,
    Wanted,
    carry_out,
    confirm,
    hint_open_actions,
)
from tests.destination import RunningDestination
from tests.factories import (
    held_operation,
    many_held,
    open_hold_of,
    owner_of,
    person,
    ready_provider,
    settled,
    started_run,
    stranger,
)
from tests.hinting import hinted
from tests.telling import owner, told
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db


def fresh(user: Any) -> Any:
    return get_user_model().objects.get(pk=user.pk)


@pytest.fixture
def provider() -> Provider:
    return ready_provider("payments")


@pytest.fixture
def lead(provider: Provider) -> Any:
    user = owner_of(provider.default_queue, "lead_1")
    assign_perm("reconciliation.assign", user, provider.default_queue)
    return fresh(user)


def confirmed(kind: BulkKind, holds: list[Hold], by: Any, **fields: Any) -> BulkAction:
    if kind in (BulkKind.SNOOZE, BulkKind.REMIND):
        fields |= {"until": database_now() + timedelta(hours=1)}
    return confirm(Wanted(kind, **fields), [hold.pk for hold in holds], by, uuid4())


def results(action: BulkAction) -> list[tuple[str, str]]:
    return list(action.items.order_by("number").values_list("state", "said"))


def carried_out(action: BulkAction) -> BulkAction:
    """As workers would, however many messages it takes."""
    while action.ended_at is None:
        carry_out(action.pk)
        action.refresh_from_db()
    return action


def test_the_set_is_what_was_confirmed_and_each_case_has_its_result(
    provider: Provider, lead: Any
) -> None:
    holds = many_held(4, provider)
    owner = fresh(person())
    action = confirmed(BulkKind.ASSIGN, holds, lead, to=owner)
    many_held(1, provider)  # comes after it, and is not in it
    Hold.objects.filter(pk=holds[1].pk).update(state="closed", closed_at=database_now())
    Hold.objects.filter(pk=holds[2].pk).update(assignee=owner)
    carried_out(action)
    assert results(action) == [
        ("done", "Assigned."),
        ("skipped", "It was settled meanwhile: nothing is left to do."),
        ("done", "It was theirs already."),
        ("done", "Assigned."),
    ]
    assert Hold.objects.filter(assignee=owner, state="open").count() == 3
    entries = AuditEntry.objects.filter(verb="assigned")
    assert [entry.detail["bulk"] for entry in entries] == [str(action.pk)] * 2


# --- who loses cases by it ----------------------------------------------------------------------


def handed_to(to: Any, by: Any, holds: list[Hold], had: dict[Any, list[int]]) -> BulkAction:
    """All of `holds` go to `to`; `had` says which of them were whose."""
    for person_, places in had.items():
        chosen = [holds[place].pk for place in places]
        Hold.objects.filter(pk__in=chosen).update(assignee=person_)
    return carried_out(confirmed(BulkKind.ASSIGN, holds, by, to=to))


def test_who_loses_cases_to_another_is_told_once_of_all_of_them(
    provider: Provider, lead: Any, settings: Settings
) -> None:
    settings.ROMULUS_CONSOLE_URL = "https://romulus.example.com"
    queue = provider.default_queue
    assert queue is not None
    to = fresh(person())
    ada, bea, idle = (owner(queue, name) for name in ("ada_1", "bea_1", "idle_1"))
    holds = many_held(6, provider)
    action = handed_to(to, lead, holds, {ada: [0, 1, 2], bea: [3], lead: [4], to: [5]})
    lost = Notification.objects.filter(kind="taken")
    assert {row.person for row in lost} == {ada, bea}  # and nobody who gave or had it already
    bulk.end(action)  # once, whoever comes again
    assert lost.count() == 2
    told()
    letters = {sent.to[0].partition("@")[0]: sent for sent in mail.outbox}
    assert idle.username not in letters
    first, second = letters["ada_1"], letters["bea_1"]
    assert first.subject == "3 cases of yours went to reviewer_1"
    assert "lead_1 gave 3 cases of yours to reviewer_1" in first.body
    assert second.subject == "1 case of yours went to reviewer_1"
    assert f"https://romulus.example.com/review/?assignee={to.pk}" in first.body
    pages = [f"/operations/{hold.operation_id}/" for hold in holds]
    assert [page in first.body for page in pages] == [True] * 3 + [False] * 3


def test_what_is_theirs_again_decided_or_not_theirs_to_see_is_not_said_to_be_lost(
    provider: Provider, lead: Any
) -> None:
    queue = provider.default_queue
    assert queue is not None
    ada = owner(queue, "ada_1")
    back, settled_, kept = many_held(3, provider)
    handed_to(fresh(person()), lead, [back, settled_, kept], {ada: [0, 1, 2]})
    Hold.objects.filter(pk=back.pk).update(assignee=ada)
    Hold.objects.filter(pk=settled_.pk).update(state="closed", closed_at=database_now())
    (lost,) = Notification.objects.filter(kind="taken")
    assert list(lost_by(lost)) == [kept]
    remove_perm("reconciliation.view_reviewqueue", ada, queue)
    lost = Notification.objects.get(pk=lost.pk)
    assert not is_worth_telling(lost)
    told()
    assert [sent.subject for sent in mail.outbox if "ada_1" in sent.to[0]] == []


def test_one_who_loses_many_of_many_actions_gets_a_summary(provider: Provider, lead: Any) -> None:
    queue = provider.default_queue
    assert queue is not None
    ada, to = owner(queue, "ada_1"), fresh(person())
    for hold in many_held(12, provider):
        handed_to(to, lead, [hold], {ada: [0]})
    told()
    (sent,) = [sent for sent in mail.outbox if "ada_1" in sent.to[0]]
    assert sent.subject.startswith("12 notifications: 12 that went from you to somebody else")


@pytest.mark.parametrize("kind", [BulkKind.SNOOZE, BulkKind.REMIND])
def test_many_are_snoozed_or_reminded_of(provider: Provider, kind: BulkKind) -> None:
    owner = fresh(person())
    action = carried_out(confirmed(kind, many_held(2, provider), owner))
    assert {state for state, _ in results(action)} == {"done"}
    until = Hold.objects.values_list("snoozed_until", flat=True)
    assert set(until) == {action.until if kind is BulkKind.SNOOZE else None}
    assert owner.reminders.count() == (2 if kind is BulkKind.REMIND else 0)


def test_many_are_looked_up_and_proof_settles_them(destination: RunningDestination) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("apply_then_drop")
    destination.client.arm("lookup_unavailable", times=None)
    run = settled(started_run("replacement_worker"))
    found = open_hold_of(run.operations.get())
    ready_provider("desk", destination.url)
    blind = open_hold_of(held_operation(destination))
    destination.client.disarm()
    owner = fresh(person())
    action = carried_out(confirmed(BulkKind.LOOK_UP, [found, blind], owner))
    assert results(action) == [
        ("done", "Asked; proof settled it."),
        ("skipped", "This provider offers no look-up for it."),
    ]
    assert Evidence.objects.filter(operation=found.operation, completes=True).exists()
    # Nothing was decided for anybody.
    assert not found.decisions.exists()


@pytest.mark.parametrize(
    ("breaks", "says"),
    [
        ("lookup_unavailable", "no usable answer came"),
        ("lookup_lag", "it shows no record of it"),
    ],
)
def test_what_a_provider_said_that_settles_nothing_is_told_of_each(
    destination: RunningDestination, breaks: str, says: str
) -> None:
    """ "Asked" alone sends whoever asked about fifty of them through fifty pages."""
    ready_provider("machines", destination.url)
    destination.client.arm("apply_then_drop")
    destination.client.arm("lookup_unavailable", times=None)
    run = settled(started_run("replacement_worker"))
    hold = open_hold_of(run.operations.get())
    destination.client.disarm()
    destination.client.arm(breaks, times=None)
    ((state, said),) = results(carried_out(confirmed(BulkKind.LOOK_UP, [hold], fresh(person()))))
    assert state == "done"
    assert says in said


def test_a_record_that_does_not_settle_it_is_told_as_that(destination: RunningDestination) -> None:
    """What was seen before speaks against it, so a person says which of the two is right."""
    ready_provider("machines", destination.url)
    destination.client.arm("apply_then_drop")
    destination.client.arm("lookup_unavailable", times=None)
    hold = open_hold_of(settled(started_run("replacement_worker")).operations.get())
    Evidence.objects.create(operation=hold.operation, kind="conflict", source="look-up")
    destination.client.disarm()
    ((state, said),) = results(carried_out(confirmed(BulkKind.LOOK_UP, [hold], fresh(person()))))
    assert state == "done"
    assert "shows a record, and the case is not settled" in said


def test_rights_are_those_of_the_moment_when_an_item_is_done(provider: Provider, lead: Any) -> None:
    holds = many_held(2, provider)
    action = confirmed(BulkKind.ASSIGN, holds, lead, to=fresh(person()))
    remove_perm("reconciliation.assign", lead, provider.default_queue)
    carried_out(action)
    assert {state for state, _ in results(action)} == {"skipped"}
    assert not Hold.objects.exclude(assignee=None).exists()


def test_confirming_twice_does_it_once(provider: Provider, lead: Any) -> None:
    holds, token = [hold.pk for hold in many_held(2, provider)], uuid4()
    wanted = Wanted(BulkKind.ASSIGN, to=fresh(person()))
    first = confirm(wanted, holds, lead, token)
    assert confirm(wanted, holds, lead, token) == first
    carried_out(first)
    carry_out(first.pk)  # a message that comes again
    assert confirm(wanted, holds, lead, token) == first
    assert (BulkAction.objects.count(), BulkItem.objects.count()) == (1, 2)
    assert AuditEntry.objects.filter(verb="assigned").count() == 2
    with pytest.raises(InvalidRequest, match="used by somebody else"):
        confirm(wanted, holds, fresh(person()), token)


def test_it_goes_on_in_batches_and_tells_of_the_rest(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BATCH", 2)
    action = confirmed(BulkKind.REMIND, many_held(3, provider), fresh(person()))
    hinted("reconcile")
    carry_out(action.pk)
    assert [state for state, _ in results(action)] == ["done", "done", "pending"]
    assert hinted("reconcile") == [action.pk]
    carry_out(action.pk)
    action.refresh_from_db()
    assert action.ended_at is not None
    assert hinted("reconcile") == []
    assert BATCH > 2


def test_one_process_at_a_time_is_at_it_and_the_sweep_finds_what_a_dead_one_left(
    provider: Provider,
) -> None:
    action = confirmed(BulkKind.REMIND, many_held(1, provider), fresh(person()))
    assert hint_open_actions() == 1
    BulkAction.objects.update(taken_until=database_now() + timedelta(minutes=1))
    assert hint_open_actions() == 0
    carry_out(action.pk)
    assert [state for state, _ in results(action)] == ["pending"]
    BulkAction.objects.update(taken_until=database_now() - timedelta(seconds=1))
    assert hint_open_actions() == 1
    carry_out(action.pk)
    assert [state for state, _ in results(action)] == ["done"]
    assert hint_open_actions() == 0


def test_one_case_that_breaks_does_not_keep_the_others_waiting(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    holds = many_held(2, provider)
    broken, remind = holds[0].pk, bulk.remind

    def breaks(hold: UUID, *rest: Any) -> bool:
        if hold == broken:
            raise RuntimeError("a bug")
        return remind(hold, *rest)

    monkeypatch.setattr(bulk, "remind", breaks)
    action = carried_out(confirmed(BulkKind.REMIND, holds, fresh(person())))
    assert results(action) == [
        ("failed", "It could not be done (RuntimeError)."),
        ("done", "You will be reminded."),
    ]


@pytest.mark.parametrize(
    ("kind", "fields", "field"),
    [
        (BulkKind.ASSIGN, {}, "to"),
        (BulkKind.SNOOZE, {}, "until"),
        (BulkKind.REMIND, {"until": timedelta(hours=-1)}, "until"),
        (BulkKind.SNOOZE, {"until": timedelta(days=40)}, "until"),
    ],
)
def test_what_lacks_something_is_not_confirmed(
    provider: Provider, kind: BulkKind, fields: dict[str, Any], field: str
) -> None:
    (hold,) = many_held(1, provider)
    given = {name: database_now() + away for name, away in fields.items()}
    with pytest.raises(InvalidRequest) as refused:
        confirm(Wanted(kind, **given), [hold.pk], fresh(person()), uuid4())
    assert refused.value.field == field
    assert not BulkAction.objects.exists()


def test_only_cases_that_somebody_may_see_are_taken_and_not_too_many(provider: Provider) -> None:
    (hold,) = many_held(1, provider)
    soon = database_now() + timedelta(hours=1)
    for by, holds in (
        (stranger(), [hold.pk]),
        (fresh(person()), []),
        (fresh(person()), [hold.pk, hold.pk]),
        (fresh(person()), [uuid4() for _ in range(MOST + 1)]),
    ):
        with pytest.raises(InvalidRequest):
            confirm(Wanted(BulkKind.REMIND, until=soon), holds, by, uuid4())
    assert not BulkAction.objects.exists()
    # An ID that is none, or not theirs, is left out without a word.
    wanted = Wanted(BulkKind.REMIND, until=soon)
    action = confirm(wanted, [uuid4(), hold.pk], fresh(person()), uuid4())
    assert list(action.items.values_list("hold", flat=True)) == [hold.pk]
