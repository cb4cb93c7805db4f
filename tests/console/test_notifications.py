"""The page of notifications, its banner, and channels and rota in the admin."""

from __future__ import annotations

import re
from datetime import datetime
from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core import mail
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from guardian.shortcuts import assign_perm, remove_perm
from pytest_django import Settings

from reconciliation.channels.mail import TO_THE_LOG
from reconciliation.core.channels import ChannelKind
from reconciliation.models import (
    AuditEntry,
    Channel,
    Decision,
    Delivery,
    Digest,
    Hold,
    Message,
    Notification,
    ReviewQueue,
    Shift,
)
from reconciliation.services.telling import tell_opened
from tests.factories import administrator, many_held, person, ready_provider, stranger
from tests.telling import SECRET, always_on_call, channel, owner, told

pytestmark = pytest.mark.django_db

URL = "/notifications/"
# Nobody listens there.
NOWHERE = "http://127.0.0.1:9/hook/s3cret"


@pytest.fixture
def queue() -> ReviewQueue:
    found = ready_provider("desk").default_queue
    assert found is not None
    return found


@pytest.fixture
def failing(queue: ReviewQueue) -> Channel:
    """A channel of the queue that nothing arrives by, with what it was to tell."""
    made = channel(queue, ChannelKind.SLACK, NOWHERE)
    (hold,) = many_held(1, queue.default_of.get())
    Hold.objects.update(tell_at=None)
    tell_opened(hold)
    told()
    made.refresh_from_db()
    assert made.failing_since is not None
    return made


def as_user(client: Client, user: Any) -> Client:
    client.force_login(user)
    return client


def page_at(client: Client, url: str = URL) -> Any:
    answer = client.get(url)
    assert answer.status_code == HTTPStatus.OK
    return answer.context["page"]


# --- the page ---------------------------------------------------------------------------------


def test_an_owner_sees_what_did_not_arrive_and_why_on_every_page(
    client: Client, queue: ReviewQueue, failing: Channel
) -> None:
    client = as_user(client, owner(queue))
    page = page_at(client)
    (row,) = page.channels
    assert (row.state, row.address, row.setup_url) == ("failing", "http://127.0.0.1:9/…", "")
    assert row.problem.startswith("It did not answer")
    (message,) = page.messages
    assert (message.what, message.state, message.attempts) == ("Held", "waiting", 1)
    assert message.about.text == "Refund order 0"
    text = client.get("/review/").content.decode()
    assert f"{failing} is failing" in text
    assert "s3cret" not in text + client.get(URL).content.decode()


def test_what_is_others_to_see_to_is_not_shown(
    client: Client, queue: ReviewQueue, failing: Channel
) -> None:
    client = as_user(client, stranger())
    page = page_at(client)
    assert (page.channels, page.messages, page.on_call) == ((), (), ())
    assert b"is failing" not in client.get(URL).content
    # Somebody who owns it no more, or may not see it any more, neither.
    user = owner(queue, "ada_1")
    remove_perm("reconciliation.view_reviewqueue", user, queue)
    assert page_at(as_user(client, get_user_model().objects.get(pk=user.pk))).channels == ()


def test_a_case_that_its_reader_may_see_no_more_is_not_named(
    client: Client, queue: ReviewQueue, failing: Channel
) -> None:
    user = owner(queue)
    tenant = Hold.objects.get().held_run.tenant
    remove_perm("workflows.view_tenant", user, tenant)
    page = page_at(as_user(client, get_user_model().objects.get(pk=user.pk)))
    assert page.messages[0].about is None


def test_it_says_who_is_on_call_and_what_reached_nobody(
    client: Client, queue: ReviewQueue, settings: Settings
) -> None:
    always_on_call(queue, "night_1")
    (hold,) = many_held(1, queue.default_of.get())
    tell_opened(hold)
    settings.EMAIL_BACKEND = TO_THE_LOG  # there is no mail server
    told()
    page = page_at(as_user(client, administrator()))
    duty = page.on_call[0]
    assert (duty.queue, [one.name for one in duty.people], duty.until) == (
        "desk",
        ["night_1"],
        None,
    )
    assert [row.about.text for row in page.unreached] == ["Refund order 0"]
    assert page.no_mail.startswith("No mail server")
    # The queue's list and the case name them too, while nobody is assigned.
    row = client.get("/review/").context["page"].rows[0]
    assert (row.owner.name, row.owner.on_call) == ("night_1", True)
    assert "night_1, on call" in client.get(row.url).content.decode()


def test_who_is_on_call_without_the_right_is_said_to_decide_nothing(
    client: Client, queue: ReviewQueue
) -> None:
    night = always_on_call(queue, "night_1")
    (hold,) = many_held(1, queue.default_of.get())
    case, help_is_here = f"/operations/{hold.operation_id}/", "who is on call, may not decide here"
    as_user(client, administrator())
    for path in (case, "/notifications/"):
        assert "may not decide" not in client.get(path).content.decode()

    remove_perm("reconciliation.decide", night, queue)
    said = client.get(case).content.decode()
    assert "night_1, on call, may not decide" in said
    assert help_is_here in said
    assert "night_1, may not decide" in client.get("/notifications/").content.decode()

    # Somebody who may, on call as well, comes first.
    always_on_call(queue, "night_2")
    said = client.get(case).content.decode()
    assert "night_2, on call" in said
    assert help_is_here not in said


def test_its_queries_do_not_grow_with_what_was_told(client: Client, queue: ReviewQueue) -> None:
    made = channel(queue, ChannelKind.SLACK, NOWHERE)
    client = as_user(client, owner(queue))

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page_at(client)
        return len(captured)

    always_on_call(queue, "night_1")
    holds = many_held(61, queue.default_of.get())
    tell_opened(holds[0])
    told()
    queries()
    few = queries()
    for hold in holds[1:]:
        tell_opened(hold)
        sent = Message.objects.create(channel=made, state="sent", ended_at=Now())
        notification = Notification.objects.get(hold=hold)
        Delivery.objects.create(notification=notification, channel=made, message=sent)
    assert queries() == few <= 12
    page = page_at(client)
    assert (len(page.messages), bool(page.pager.older)) == (50, True)
    assert len(page_at(client, page.pager.older).messages) == 11


def test_a_digest_is_chosen_and_refused_with_what_does_not_fit(
    client: Client, queue: ReviewQueue
) -> None:
    client = as_user(client, owner(queue))
    chosen = {"every": "week", "at": "07:30", "zone": "Europe/Berlin"}
    answer = client.post(f"{URL}digest/", chosen)
    assert (answer.status_code, answer["Location"]) == (HTTPStatus.SEE_OTHER, f"{URL}#digest")
    digest = Digest.objects.get()
    assert (digest.every, f"{digest.at:%H:%M}", digest.zone) == ("week", "07:30", "Europe/Berlin")
    text = client.get(URL).content.decode()
    assert '<option value="Europe/Berlin" selected>' in text
    refused = client.post(f"{URL}digest/", chosen | {"at": "soon", "zone": "Mars/Base"})
    assert refused.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "Give a time such as 08:00." in refused.content.decode()
    assert client.get(f"{URL}digest/").status_code == HTTPStatus.METHOD_NOT_ALLOWED
    client.post(f"{URL}digest/", chosen | {"every": ""})
    assert not Digest.objects.exists()


def test_links_that_machines_open_ask_to_sign_in_and_change_nothing(
    client: Client, queue: ReviewQueue, settings: Settings
) -> None:
    """A20, of notifications: mail scanners open every link before a person does."""
    settings.ROMULUS_CONSOLE_URL = "http://testserver"
    user = owner(queue)
    (hold,) = many_held(1, queue.default_of.get())
    tell_opened(hold)
    told()
    links = set(re.findall(r"http://testserver(/[^\s\"<>]*)", mail.outbox[0].body))
    assert links == {f"/operations/{hold.operation_id}/"}
    before = Hold.objects.values().get()
    for link in links:
        for method in (client.get, client.head):
            client.logout()
            assert method(link)["Location"] == f"/login/?next={link}"
            client.force_login(user)
            assert method(link).status_code == HTTPStatus.OK
    assert (Hold.objects.values().get(), Decision.objects.count()) == (before, 0)


def test_whoever_is_not_signed_in_is_asked_to(client: Client) -> None:
    assert client.get(URL)["Location"] == f"/login/?next={URL}"
    assert client.post(f"{URL}digest/")["Location"].startswith("/login/")


# --- the admin --------------------------------------------------------------------------------

ADMIN = "/admin/reconciliation"


def channel_form(queue: ReviewQueue, **changes: Any) -> dict[str, Any]:
    fields = {"kind": "webhook", "queue": str(queue.pk), "person": "", "per_minute": "6"}
    return fields | {"enabled": "on", "target": NOWHERE, "secret": SECRET} | changes


def test_an_administrator_sets_a_channel_up_tests_it_and_is_told(
    client: Client, queue: ReviewQueue
) -> None:
    client = as_user(client, administrator())
    refused = client.post(f"{ADMIN}/channel/add/", channel_form(queue, secret="short"))
    assert "Give a secret of Standard Webhooks" in refused.content.decode()
    assert client.post(f"{ADMIN}/channel/add/", channel_form(queue)).status_code == HTTPStatus.FOUND
    made = Channel.objects.get()
    shown = client.get(f"{ADMIN}/channel/{made.pk}/change/").content.decode()
    assert "http://127.0.0.1:9/…" not in shown  # the field is empty: it keeps the one there is
    assert "s3cret" not in shown
    assert SECRET not in shown

    url = f"{ADMIN}/channel/{made.pk}/test/"
    assert client.get(url).status_code == HTTPStatus.OK
    assert not Message.objects.exists()
    told_so = client.post(url, follow=True).content.decode()
    assert "did not take it. It did not answer" in told_so
    assert Message.objects.get().state == "failed"

    changed = channel_form(queue, target="", secret="", per_minute="2")
    client.post(f"{ADMIN}/channel/{made.pk}/change/", changed)
    made.refresh_from_db()
    assert (made.per_minute, bool(made.address_sealed), bool(made.secret_sealed)) == (2, True, True)
    noted = AuditEntry.objects.filter(verb="set channel").latest("seq").detail
    assert [noted[when]["per minute"] for when in ("before", "after")] == [6, 2]
    assert made.address == "http://127.0.0.1:9/…"
    assert client.post(f"{ADMIN}/channel/{made.pk}/delete/").status_code == HTTPStatus.FORBIDDEN


def test_only_who_may_change_a_channel_tests_it(client: Client, failing: Channel) -> None:
    user = person("staff_1", is_staff=True)
    assign_perm("reconciliation.view_channel", user)
    answer = as_user(client, user).post(f"{ADMIN}/channel/{failing.pk}/test/")
    assert answer.status_code == HTTPStatus.FORBIDDEN


def test_who_is_on_call_without_the_rights_is_said_to_hear_nothing(
    client: Client, queue: ReviewQueue
) -> None:
    night = always_on_call(queue, "night_1")
    page = f"{ADMIN}/reviewqueue/{queue.pk}/change/"
    as_user(client, administrator())
    assert "passed over" not in client.get(page).content.decode()
    remove_perm("reconciliation.decide", night, queue)
    assert "night_1 (passed over: lacks the rights)" in client.get(page).content.decode()


def shift_form(queue: ReviewQueue, **changes: Any) -> dict[str, Any]:
    fields = {"queue": str(queue.pk), "person": str(owner(queue).pk), "zone": "Europe/Berlin"}
    empty = dict.fromkeys(
        ("starts", "ends", "starts_at_0", "starts_at_1", "ends_at_0", "ends_at_1"), ""
    )
    return fields | empty | changes


WEEKLY = {"days": ["0", "6"], "starts": "20:00", "ends": "08:00"}
DATED = {
    "starts_at_0": "2026-03-10",
    "starts_at_1": "08:00",
    "ends_at_0": "2026-03-11",
    "ends_at_1": "08:00",
}


def test_the_rota_is_set_up_shown_and_on_record(client: Client, queue: ReviewQueue) -> None:
    client = as_user(client, administrator())
    url = f"{ADMIN}/shift/add/"
    assert client.post(url, shift_form(queue, **WEEKLY)).status_code == HTTPStatus.FOUND
    assert client.post(url, shift_form(queue, **DATED)).status_code == HTTPStatus.FOUND
    weekly, dated = Shift.objects.order_by("starts_at")[::-1]
    assert weekly.when == "Mon, Sun, 20:00 to 08:00 Europe/Berlin"
    assert dated.starts_at == datetime.fromisoformat("2026-03-10T08:00Z")
    assert client.get(f"{ADMIN}/shift/{weekly.pk}/change/").content.decode().count(" checked") == 2
    assert "On call now" in client.get(f"{ADMIN}/reviewqueue/{queue.pk}/change/").content.decode()
    client.post(f"{ADMIN}/shift/{weekly.pk}/delete/", {"post": "yes"})
    assert Shift.objects.get() == dated
    record = AuditEntry.objects.filter(verb="set rota", object="queue:desk")
    assert [bool(row.detail["after"]) for row in record.order_by("seq")] == [True, True, False]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "Give weekdays with both local times"),
        (WEEKLY | {"days": []}, "Give weekdays with both local times"),
        (WEEKLY | DATED, "one of the two, whole"),
        (DATED | {"ends_at_0": "2026-03-09"}, "It ends before it begins."),
        (WEEKLY | {"person": "stranger"}, "and would be passed over"),
        (WEEKLY | {"zone": "Mars/Base"}, "Mars/Base is not one of the available choices"),
    ],
)
def test_a_shift_that_says_nothing_clear_is_refused(
    client: Client, queue: ReviewQueue, changes: dict[str, Any], said: str
) -> None:
    if "person" in changes:
        changes = changes | {"person": str(stranger().pk)}
    answer = as_user(client, administrator()).post(
        f"{ADMIN}/shift/add/", shift_form(queue, **changes)
    )
    assert said in answer.content.decode()
    assert not Shift.objects.exists()
