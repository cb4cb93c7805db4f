"""Signing in and out, and the frame around every page."""

from __future__ import annotations

import re
from http import HTTPStatus

import pytest
from django.test import Client
from django.urls import reverse

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
