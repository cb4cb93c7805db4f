"""One's own account: a new password, where one is signed in, second factors, throttling."""

from __future__ import annotations

import json
import re
import time
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.core import mail
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from reconciliation.models import AuditEntry, PasswordReset
from romulus_site.accounts.resets import send_due
from romulus_site.accounts.sessions import forget_ended
from tests.console.posting import HTMX
from tests.factories import administrator, person
from tests.ports import LOOPBACK, free_port

pytestmark = pytest.mark.django_db

NEW = "a-much-better-one"


def sign_in(client: Client, name: str = "reviewer_1", password: str = "") -> Any:
    fields = {"username": name, "password": password or name}
    return client.post("/login/", fields, headers={"User-Agent": "Firefox/1 (X11; Linux)"})


def signed_in(name: str = "reviewer_1") -> Client:
    client = Client()
    person(name)
    assert sign_in(client, name)["Location"] == "/review/"
    return client


def verbs() -> list[str]:
    return list(AuditEntry.objects.order_by("seq").values_list("verb", flat=True))


def is_out(client: Client) -> bool:
    return client.get("/review/").status_code == HTTPStatus.FOUND


# --- passwords --------------------------------------------------------------------------------


def test_a_link_by_mail_sets_a_new_password_once_and_ends_every_session(client: Client) -> None:
    person(email="reviewer@northwind.example")
    elsewhere = signed_in()
    asked = client.post("/account/reset/", {"email": "Reviewer@northwind.example"})
    assert asked["Location"] == "/account/reset/sent/"
    assert mail.outbox == []  # whoever asks waits for no mail server, and learns nothing from one
    send_due()
    (sent,) = mail.outbox
    assert sent.to == ["reviewer@northwind.example"]
    link = re.search(r"http://testserver(\S+)", str(sent.body))
    assert link is not None
    form = client.get(link[1], follow=True)
    url = form.redirect_chain[-1][0]
    done = client.post(url, {"password1": NEW, "password2": NEW})
    assert done["Location"] == "/account/reset/done/"
    assert is_out(elsewhere)
    assert sign_in(Client()).status_code == HTTPStatus.OK  # the old one counts no more
    assert sign_in(Client(), password=NEW)["Location"] == "/review/"
    again = Client().get(link[1], follow=True)
    assert "no longer works" in again.content.decode()
    assert "changed password" in verbs()
    assert NEW not in str(list(AuditEntry.objects.values_list("detail")))


def test_an_address_that_nobody_has_is_answered_alike_and_gets_no_mail(client: Client) -> None:
    asked = client.post("/account/reset/", {"email": "nobody@northwind.example"})
    assert asked["Location"] == "/account/reset/sent/"
    assert send_due() == 0
    assert mail.outbox == []


def ask_for_link(client: Client) -> PasswordReset:
    person(email="reviewer@northwind.example")
    client.post("/account/reset/", {"email": "reviewer@northwind.example"})
    return PasswordReset.objects.get()


def test_a_link_waits_for_a_mail_server_that_is_away_for_an_hour(
    client: Client, settings: Any
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = LOOPBACK, free_port()
    ask_for_link(client)
    assert (send_due(), send_due()) == (1, 0)  # and tried again in a minute
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    PasswordReset.objects.update(next_at=Now())
    send_due()
    assert len(mail.outbox) == 1
    assert not PasswordReset.objects.exists()
    ask_for_link(client)
    PasswordReset.objects.update(asked_at=Now() - timedelta(hours=2))
    assert send_due() == 0
    assert not PasswordReset.objects.exists()


def test_asking_twice_sends_one_link_and_asking_again_another(client: Client) -> None:
    ask_for_link(client)
    ask_for_link(client)
    send_due()
    assert len(mail.outbox) == 1
    ask_for_link(client)
    send_due()
    assert len(mail.outbox) == 2


def test_a_link_begins_with_the_console_s_own_address(client: Client, settings: Any) -> None:
    settings.ROMULUS_CONSOLE_URL = "https://romulus.example.com"
    ask_for_link(client)
    send_due()
    assert "https://romulus.example.com/account/reset/" in str(mail.outbox[0].body)
    assert "testserver" not in str(mail.outbox[0].body)


@pytest.mark.parametrize("kind", ["console", "smtp"])
def test_the_page_says_where_the_link_goes_without_a_mail_server(
    client: Client, settings: Any, kind: str
) -> None:
    settings.EMAIL_BACKEND = f"django.core.mail.backends.{kind}.EmailBackend"
    text = client.get("/account/reset/").content.decode()
    assert ("No mail server is set up here" in text) == (kind == "console")


def test_changing_the_password_keeps_this_session_and_ends_the_others() -> None:
    here, elsewhere = signed_in(), signed_in()
    fields = {"oldpassword": "reviewer_1", "password1": NEW, "password2": NEW}
    assert here.post("/account/password/", fields).status_code == HTTPStatus.FOUND
    assert not is_out(here)
    assert is_out(elsewhere)


# --- sessions ---------------------------------------------------------------------------------


def test_another_session_is_ended_and_can_do_nothing_more() -> None:
    here, elsewhere = signed_in(), signed_in()
    stranger = signed_in("stranger_1")
    page = here.get("/account/sessions/")
    rows = page.context["rows"]
    assert [row.current for row in rows] == [False, True]
    assert "Firefox on Linux" in page.content.decode()
    other = {"session": str(rows[0].id)}
    stranger.post("/account/sessions/", other)  # not theirs: nothing happens
    assert not is_out(elsewhere)
    assert here.post("/account/sessions/", other)["Location"] == "/account/sessions/"
    assert is_out(elsewhere)
    assert elsewhere.get("/review/", headers=HTMX).status_code == HTTPStatus.UNAUTHORIZED
    assert not is_out(here)
    assert verbs().count("ended sessions") == 1


def test_all_other_sessions_end_at_once_and_never_the_one_that_asks() -> None:
    here, *others = signed_in(), signed_in(), signed_in()
    own = UserSession.objects.get(session_key=here.session.session_key)
    here.post("/account/sessions/", {"session": str(own.pk)})
    here.post("/account/sessions/", {"session": "others"})
    assert all(map(is_out, others))
    assert not is_out(here)


@pytest.mark.parametrize("digits", [30, 5000], ids=["no session's", "no number that is read"])
def test_a_number_that_no_session_has_ends_none(digits: int) -> None:
    mine, other = signed_in(), signed_in()
    answer = mine.post("/account/sessions/", {"session": "9" * digits})
    assert answer.status_code == HTTPStatus.SEE_OTHER
    assert not is_out(other)


def test_what_is_kept_of_sessions_ends_some_time_after_them() -> None:
    open_one, ended = signed_in(), signed_in()
    key = ended.session.session_key
    Session.objects.filter(session_key=key).update(expire_date=Now() - timedelta(days=2))
    UserSession.objects.update(created_at=Now() - timedelta(days=3))
    assert forget_ended() == 1
    assert not UserSession.objects.filter(session_key=key).exists()
    assert not is_out(open_one)
    assert len(open_one.get("/account/sessions/").context["rows"]) == 1


def test_the_list_takes_as_many_queries_for_many_sessions_as_for_one() -> None:
    here = signed_in()

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            here.get("/account/sessions/")
        return len(asked)

    queries()  # what is remembered from the first time on
    few = queries()
    for _ in range(5):
        signed_in()
    assert queries() == few <= 12


def test_a_session_ends_when_it_was_said_whatever_is_polled_in_it() -> None:
    """Case A24: nothing that a page does by itself keeps a session alive."""
    client = signed_in()
    row = Session.objects.get(session_key=client.session.session_key)
    for _ in range(2):
        client.get("/needs-you/", headers=HTMX)
        client.get("/review/")
    session = client.session
    session["something"] = "changed"
    session.save()
    before, row = row.expire_date, Session.objects.get(pk=row.pk)
    assert row.expire_date == before
    assert "hidden" in form_of(client)
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    ended = client.get("/needs-you/", headers=HTMX)
    assert ended.status_code == HTTPStatus.UNAUTHORIZED


def test_a_session_that_is_about_to_end_is_lengthened_by_whoever_asks(settings: Any) -> None:
    settings.SESSION_COOKIE_AGE = 100
    client = signed_in()
    assert "hidden" not in form_of(client)
    settings.SESSION_COOKIE_AGE = 3600
    assert client.get("/account/sessions/longer/").status_code == HTTPStatus.METHOD_NOT_ALLOWED
    answer = client.post("/account/sessions/longer/", {"next": "/runs/"})
    assert answer["Location"] == "/runs/"
    assert "hidden" in form_of(client)
    away = client.post("/account/sessions/longer/", {"next": "https://elsewhere.example/"})
    assert away["Location"] == "/"


def form_of(client: Client) -> str:
    """How the page begins to say that the session ends."""
    page = client.get("/review/").content.decode()
    begun = re.search(r'<form class="banner tone-hold"[^>]*>', page)
    assert begun is not None
    return begun[0]


# --- second factors ---------------------------------------------------------------------------


def code_for(secret: str, steps: int = 0) -> str:
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30 + steps))


def confirmed(client: Client, name: str = "reviewer_1") -> Client:
    """Having shown just now whose session it is."""
    client.post("/account/confirm/", {"password": name})
    return client


def with_an_app(client: Client, name: str = "reviewer_1") -> str:
    """Set up an authenticator app; gives its key."""
    form = confirmed(client, name).get("/account/factors/app/").context["form"]
    answer = client.post("/account/factors/app/", {"code": code_for(form.secret, -1)})
    assert answer["Location"] == "/account/factors/codes/"
    secret: str = form.secret
    return secret


def test_with_an_app_the_password_alone_lets_nobody_in() -> None:
    secret = with_an_app(signed_in())
    client = Client()
    assert sign_in(client)["Location"] == "/account/factors/code/"
    assert is_out(client)
    assert "Use a passkey" not in client.get("/account/factors/code/").content.decode()
    wrong = client.post("/account/factors/code/", {"code": "000000"})
    assert "Incorrect code" in wrong.content.decode()
    assert is_out(client)
    code = code_for(secret)
    assert client.post("/account/factors/code/", {"code": code})["Location"] == "/review/"
    assert not is_out(client)
    again = Client()  # whoever has seen it over a shoulder is too late
    sign_in(again)
    again.post("/account/factors/code/", {"code": code})
    assert is_out(again)


def test_a_recovery_code_lets_in_once() -> None:
    client = signed_in()
    with_an_app(client)
    code = client.get("/account/factors/codes/").context["unused_codes"][0]
    for lets_in in (True, False):
        other = Client()
        sign_in(other)
        other.post("/account/factors/code/", {"code": code})
        assert is_out(other) != lets_in


def test_the_keys_of_second_factors_are_kept_sealed() -> None:
    secret = with_an_app(signed_in())
    kept = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert secret not in kept
    assert verbs().count("added second factor") == 2  # the app, and the recovery codes with it
    assert secret not in str(list(AuditEntry.objects.values_list("detail")))


PASSKEYS = "/account/factors/passkeys/"
NO_PASSKEY = {"id": "eA", "rawId": "eA", "type": "public-key", "response": {"userHandle": "eA"}}


@pytest.mark.parametrize(
    "credential",
    ["{}", "[]", "1", '{"id": 1, "response": []}', json.dumps(NO_PASSKEY), "[" * 50_000],
    ids=["empty", "list", "number", "parts", "another one's", "deep"],
)
def test_what_is_no_passkey_lets_nobody_in_and_breaks_nothing(
    client: Client, credential: str
) -> None:
    client.get(f"{PASSKEYS}login/", headers={"X-Requested-With": "XMLHttpRequest"})
    refused = client.post(f"{PASSKEYS}login/", {"credential": credential})
    assert refused.status_code in (HTTPStatus.OK, HTTPStatus.FOUND)
    assert is_out(client)
    mine = signed_in()
    mine.post("/account/confirm/", {"password": "reviewer_1"})
    mine.get(f"{PASSKEYS}add/")
    assert mine.post(f"{PASSKEYS}add/", {"credential": credential}).status_code == HTTPStatus.OK
    assert not Authenticator.objects.exists()


def test_on_a_telephone_the_times_of_a_passkey_say_what_they_are(client: Client) -> None:
    mine = signed_in()
    data = {"name": "Key", "credential": {}, "passwordless": False}
    Authenticator.objects.create(user=person(), type="webauthn", data=data)
    text = mine.get(PASSKEYS).content.decode()
    for label in ("Added", "Last used"):
        assert f'data-l="{label}"' in text


def test_a_passkey_that_was_removed_is_called_that_and_not_a_wrong_code(client: Client) -> None:
    client.get(f"{PASSKEYS}login/", headers={"X-Requested-With": "XMLHttpRequest"})
    credential = {"credential": json.dumps(NO_PASSKEY)}
    said = client.post(f"{PASSKEYS}login/", credential, follow=True).content.decode()
    assert "This passkey lets nobody in here" in said
    assert "Incorrect code" not in said
    mine = signed_in()
    mine.post("/account/confirm/", {"password": "reviewer_1"})
    added = mine.get(f"{PASSKEYS}add/").content.decode()
    assert "your finger, your face or a PIN" in added
    kept = mine.post(f"{PASSKEYS}add/", credential).content.decode()
    assert "no passkey that can be kept here" in kept


def test_a_session_that_was_left_open_changes_no_factor() -> None:
    client = signed_in()
    asked = client.get("/account/factors/app/")
    assert asked["Location"].startswith("/account/confirm/?next=")
    wrong = client.post("/account/confirm/", {"password": "wrong"})
    assert wrong.status_code == HTTPStatus.OK
    with_an_app(client)
    later = signed_in("reviewer_2")
    assert later.post("/account/factors/app/remove/").status_code == HTTPStatus.NOT_FOUND
    session = client.session
    session["account_authentication_methods"] = [
        each | {"at": time.time() - 3600} for each in session["account_authentication_methods"]
    ]
    session.save()
    asked = client.post("/account/factors/app/remove/")
    assert "/confirm/" in asked["Location"]
    assert Authenticator.objects.filter(type="totp").exists()
    done = client.post(asked["Location"], {"password": "reviewer_1", "next": "/account/factors/"})
    assert done["Location"] == "/account/factors/"


@pytest.mark.parametrize(
    "path",
    ["", "app/", "passkeys/", "passkeys/add/"],
)
def test_the_pages_of_factors_are_shown(path: str) -> None:
    assert confirmed(signed_in()).get(f"/account/factors/{path}").status_code == HTTPStatus.OK


# --- one way in -------------------------------------------------------------------------------


def test_tries_are_counted_against_the_account_wherever_they_come_from(client: Client) -> None:
    person()
    for place in range(5):
        Client(REMOTE_ADDR=f"198.51.100.{place}").post(
            "/login/", {"username": "reviewer_1", "password": "wrong"}
        )
    right = Client(REMOTE_ADDR="198.51.100.99")
    text = sign_in(right).content.decode()
    assert "Too many wrong passwords or codes. Wait five minutes" in text
    assert is_out(right)
    assert sign_in(client, "reviewer_2" if person("reviewer_2") else "")["Location"] == "/review/"


def test_the_admin_has_no_login_page_of_its_own(client: Client) -> None:
    admin = administrator()
    with_an_app(signed_in("admin_1"), "admin_1")
    asked = client.get("/admin/", follow=True)
    assert asked.redirect_chain[-1][0].startswith("/login/?next=")
    fields = {"username": "admin_1", "password": "admin_1"}
    client.post("/admin/login/", fields)
    person("admin_2", is_staff=True)
    staff = signed_in("admin_2")
    assert staff.get("/admin/password_change/")["Location"] == "/account/password/"
    assert "_auth_user_id" not in client.session
    assert admin.is_staff


@pytest.mark.parametrize("path", ["/account/signup/", "/signup/", "/account/email/"])
def test_nobody_makes_an_account_or_changes_its_address(client: Client, path: str) -> None:
    client.force_login(person())
    assert client.get(path).status_code == HTTPStatus.NOT_FOUND
