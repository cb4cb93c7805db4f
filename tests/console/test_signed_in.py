"""Who a request comes from: the session and the account are read as Django would read them."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from reconciliation.models import Profile
from romulus_site.accounts.backend import WithProfile
from tests.factories import person
from tests.statements import statements

pytestmark = pytest.mark.django_db

store = import_module(settings.SESSION_ENGINE)
PAGE = "/runs/"


def kept(**held: Any) -> str:
    session = store.SessionStore()
    session.update(held)
    session.save()
    key: str = session.session_key
    return key


def test_a_session_is_what_django_s_own_reads_and_writes() -> None:
    ours = kept(place="here")
    assert db.SessionStore(ours)["place"] == "here"
    assert store.SessionStore(ours)["place"] == "here"
    theirs = db.SessionStore()
    theirs["place"] = "there"
    theirs.save()
    assert store.SessionStore(theirs.session_key)["place"] == "there"


def test_a_session_that_has_ended_is_none() -> None:
    key = kept(place="here")
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    session = store.SessionStore(key)
    assert "place" not in session
    assert session.session_key is None


@pytest.mark.parametrize("tail", ["x", "\0", "\0x", " ", "é", "'", "²"])
def test_a_key_that_is_nearly_that_of_a_session_is_none(tail: str) -> None:
    session = store.SessionStore(kept(place="here") + tail)
    assert "place" not in session
    assert session.session_key is None


def test_whoever_sends_a_strange_cookie_is_led_to_the_login_page(client: Client) -> None:
    client.force_login(person())
    key = client.cookies[settings.SESSION_COOKIE_NAME].value
    assert client.get(PAGE).status_code == 200
    client.cookies[settings.SESSION_COOKIE_NAME] = f"{key}\0"
    assert client.get(PAGE).status_code == 302


def test_an_account_is_read_with_all_that_django_reads_of_it() -> None:
    made = person("ada", first_name="Ada", email="ada@example.com", is_staff=True)
    Profile.objects.create(user=made, time_zone="Asia/Tokyo", letters=False)
    Client().force_login(made)  # it has a time of its last login, too
    read, own = WithProfile().get_user(made.pk), Profile.objects.get()
    assert read is not None
    found = User.objects.get(pk=made.pk)
    for expected, got in ((found, read), (own, read.profile)):
        names = [field.attname for field in expected._meta.concrete_fields]
        assert [getattr(got, name) for name in names] == [getattr(expected, name) for name in names]
        assert not got._state.adding
    with statements() as sent:
        assert read.profile.user is read
    assert sent == []
    read.first_name = "Ada L."
    read.save()
    assert User.objects.get(pk=made.pk).first_name == "Ada L."


def test_that_somebody_has_no_profile_is_known_without_asking_again() -> None:
    read = WithProfile().get_user(person().pk)
    with statements() as sent, pytest.raises(Profile.DoesNotExist):
        _ = read.profile  # type: ignore[union-attr]
    assert sent == []


def test_nobody_and_whose_account_is_closed_are_nobody() -> None:
    closed = person()
    User.objects.update(is_active=False)
    assert WithProfile().get_user(closed.pk) is None
    assert WithProfile().get_user(closed.pk + 1) is None
