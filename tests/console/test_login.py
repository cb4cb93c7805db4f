"""Signing in and out, and the frame around every page."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from reconciliation.services.profiles import profile_of, save_preferences
from romulus_site.accounts.backend import WithProfile
from tests.console.posting import HTMX
from tests.factories import person

pytestmark = pytest.mark.django_db

PAGES = ("/review/", "/runs/", "/needs-you/")


def test_signing_in_leads_back_to_where_one_was_going(client: Client) -> None:
    person()
    asked = client.get("/runs/", follow=True)
    assert asked.redirect_chain == [("/login/?next=/runs/", HTTPStatus.FOUND)]
    answer = client.post(
        "/login/", {"username": "reviewer_1", "password": "reviewer_1", "next": "/runs/"}
    )
    assert answer["Location"] == "/runs/"
    assert client.get("/runs/").status_code == HTTPStatus.OK


def test_a_wrong_password_says_so_and_keeps_the_name(client: Client) -> None:
    person()
    answer = client.post("/login/", {"username": "reviewer_1", "password": "wrong"})
    text = answer.content.decode()
    assert answer.status_code == HTTPStatus.OK
    assert 'id="login-error"' in text
    assert 'value="reviewer_1"' in text
    assert "wrong" not in text.replace("went wrong", "")


def test_an_inactive_account_cannot_sign_in(client: Client) -> None:
    person(is_active=False)
    client.post("/login/", {"username": "reviewer_1", "password": "reviewer_1"})
    assert client.get("/review/").status_code == HTTPStatus.FOUND


def test_it_never_leads_to_another_site(client: Client) -> None:
    person()
    fields = {"username": "reviewer_1", "password": "reviewer_1"}
    answer = client.post("/login/", fields | {"next": "https://elsewhere.example/"})
    assert answer["Location"] == "/review/"


def test_signing_out_takes_a_post_and_ends_the_session(client: Client) -> None:
    client.force_login(person())
    assert client.get("/logout/").status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert client.post("/logout/")["Location"] == "/login/"
    assert client.get("/review/").status_code == HTTPStatus.FOUND


@pytest.mark.parametrize("url", PAGES)
def test_every_page_is_closed_to_nobody(client: Client, url: str) -> None:
    assert client.get(url)["Location"] == f"{reverse('login')}?next={url}"
    ended = client.get(url, headers=HTMX)
    assert ended.status_code == HTTPStatus.UNAUTHORIZED
    assert ended["HX-Redirect"].startswith("/login/")
    assert ended.content == b""


@pytest.mark.parametrize("url", PAGES)
def test_every_answer_forbids_inline_code_and_is_kept_by_no_cache(client: Client, url: str) -> None:
    client.force_login(person())
    answer = client.get(url)
    assert "default-src 'self'" in answer["Content-Security-Policy"]
    assert "unsafe" not in answer["Content-Security-Policy"]
    assert answer["Cache-Control"] == "private, no-cache"


def test_the_count_in_the_navigation_is_sent_only_when_it_has_changed(client: Client) -> None:
    client.force_login(person())
    (seen,) = re.findall(r"/needs-you/\?seen=(\w+)", client.get("/runs/").content.decode())
    assert client.get(f"/needs-you/?seen={seen}").status_code == HTTPStatus.NO_CONTENT
    assert client.get("/needs-you/?seen=another").context["count"] == 0


@pytest.mark.parametrize(
    "cookie",
    ["no-session-has-this-key", "short", "a" * 40 + "\x00", "é" * 32],
    ids=["unknown", "short", "nul", "no_ascii"],
)
def test_a_session_that_is_none_leads_to_the_login_page(client: Client, cookie: str) -> None:
    client.cookies[settings.SESSION_COOKIE_NAME] = cookie
    assert client.get("/review/")["Location"] == "/login/?next=/review/"


def test_a_session_that_is_over_or_whose_account_is_gone_leads_there_too(client: Client) -> None:
    client.force_login(person())
    Session.objects.update(expire_date=Now())
    assert client.get("/review/").status_code == HTTPStatus.FOUND
    client.force_login(person("reviewer_2"))
    User.objects.filter(username="reviewer_2").delete()
    assert client.get("/review/").status_code == HTTPStatus.FOUND


@pytest.mark.parametrize("zone", ["", "Asia/Tokyo"])
def test_the_account_of_a_session_is_the_stored_one_read_with_its_profile(zone: str) -> None:
    user = person(first_name="Ada", last_login=datetime(2026, 3, 10, 4, 12, 40, 18, tzinfo=UTC))
    user.refresh_from_db()
    if zone:
        save_preferences(user, time_zone=zone, letters=False)
    with CaptureQueriesContext(connection) as asked:
        found = WithProfile().get_user(user.pk)
        assert profile_of(found).time_zone == zone
        assert profile_of(found).letters is not bool(zone)
    assert (found, asked.captured_queries) == (user, [])
    assert stored(found) == stored(user)
    found.first_name = "Grace"
    found.save()  # it is a row to be changed, and no new one
    assert User.objects.get(pk=user.pk).first_name == "Grace"


def stored(user: User | None) -> dict[str, Any]:
    assert user is not None
    return {field.attname: getattr(user, field.attname) for field in User._meta.concrete_fields}
