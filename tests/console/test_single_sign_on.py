"""OpenID Connect, against a real provider over HTTP: who comes in, and who does not."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import httpx
import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from reconciliation.models import AuditEntry
from tests.factories import person
from tests.openid import OpenIDProvider, running_openid_provider

pytestmark = pytest.mark.django_db

PERSON = {"sub": "42", "email": "ada@northwind.example", "email_verified": True}
BEGIN = "/account/oidc/sso/login/"


@pytest.fixture
def provider(settings: Any) -> Iterator[OpenIDProvider]:
    with running_openid_provider() as running:
        running.claims = dict(PERSON)
        settings.SOCIALACCOUNT_PROVIDERS = running.settings
        yield running


def come_back(client: Client, begin: str = BEGIN) -> Any:
    """Go to the provider and come back, as a browser does; gives the console's answer."""
    there = client.get(begin)
    assert there.status_code == HTTPStatus.FOUND
    back = httpx.get(there["Location"], follow_redirects=False).headers["Location"]
    return client.get(back.removeprefix("http://testserver"))


def test_the_login_page_leads_there_and_the_account_with_that_address_comes_in(
    client: Client, provider: OpenIDProvider
) -> None:
    ada = person("ada", email="Ada@Northwind.example")
    page = client.get("/login/?next=/runs/").content.decode()
    assert "Sign in with Northwind" in page
    answer = come_back(client, f"{BEGIN}?process=login&next=/runs/")
    assert answer["Location"] == "/runs/"
    assert client.get("/runs/").context["user"] == ada
    ours = AuditEntry.objects.filter(object=f"user:{ada.pk}").order_by("seq")
    assert [entry.verb for entry in ours] == ["joined to single sign-on", "signed in"]
    assert ada.has_usable_password()


def test_whoever_came_in_once_is_known_by_the_providers_id(
    client: Client, provider: OpenIDProvider
) -> None:
    ada = person("ada", email=PERSON["email"])
    come_back(client)
    get_user_model().objects.filter(pk=ada.pk).update(email="elsewhere@northwind.example")
    again = Client()
    assert come_back(again)["Location"] == "/review/"
    assert again.get("/review/").context["user"] == ada


@pytest.mark.parametrize(
    ("claims", "accounts"),
    [
        ({}, []),
        ({"email_verified": False}, [{"email": PERSON["email"]}]),
        ({}, [{"email": PERSON["email"], "is_active": False}]),
        ({}, [{"email": PERSON["email"]}, {"email": PERSON["email"]}]),
    ],
    ids=["no account", "address not verified", "account closed", "two accounts"],
)
def test_nobody_else_comes_in_and_no_account_is_made(
    client: Client,
    provider: OpenIDProvider,
    claims: dict[str, Any],
    accounts: list[dict[str, Any]],
) -> None:
    provider.claims |= claims
    for place, fields in enumerate(accounts):
        person(f"person_{place}", **fields)
    answer = come_back(client)
    assert "There is no account for you here" in answer.content.decode()
    assert get_user_model().objects.count() == len(accounts)
    assert client.get("/review/").status_code == HTTPStatus.FOUND


@pytest.mark.parametrize("process", ["connect", "redirect", "anything"])
def test_no_link_joins_whom_the_provider_knows_to_whoever_is_signed_in(
    client: Client, provider: OpenIDProvider, process: str
) -> None:
    """Led through this link while another identity is signed in at the provider, a person's
    account would be that one's from then on."""
    provider.claims |= {"sub": "66", "email": "mallory@elsewhere.example"}
    ada = person("ada", email="ada@northwind.example")
    client.force_login(ada)
    answer = come_back(client, f"{BEGIN}?process={process}&next=/review/")
    assert answer.status_code == HTTPStatus.FORBIDDEN
    assert "Nothing was changed" in answer.content.decode()
    assert client.get("/review/").context["user"] == ada
    theirs = Client()
    assert "There is no account for you here" in come_back(theirs).content.decode()
    assert theirs.get("/review/").status_code == HTTPStatus.FOUND


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("mike@northwind.example", "m\u0131ke@northwind.example"),
        ("sam@northwind.example", "\u017fam@northwind.example"),
        ("kim@northwind.example", "\u212aim@northwind.example"),
    ],
    ids=["dotless i", "long s", "kelvin"],
)
def test_an_address_that_only_the_database_takes_for_the_same_is_somebody_elses(
    client: Client, provider: OpenIDProvider, ours: str, theirs: str
) -> None:
    person("ada", email=ours)
    provider.claims |= {"email": theirs}
    assert "There is no account for you here" in come_back(client).content.decode()
    assert client.get("/review/").status_code == HTTPStatus.FOUND


@pytest.mark.parametrize(
    "said",
    ["", "a\0b@northwind.example", "a\ud800@northwind.example", None],
    ids=["empty", "nul", "surrogate", "none"],
)
def test_what_is_no_address_is_that_of_no_account(
    client: Client, provider: OpenIDProvider, said: str | None
) -> None:
    """Least of all of the one account that has none."""
    person("ada", email="")
    provider.claims |= {"email": said}
    client.raise_request_exception = False
    come_back(client)
    assert client.get("/review/").status_code == HTTPStatus.FOUND


def test_an_answer_that_was_not_asked_for_signs_nobody_in(
    client: Client, provider: OpenIDProvider
) -> None:
    person("ada", email=PERSON["email"])
    there = Client().get(BEGIN)["Location"]  # another browser began
    back = httpx.get(there, follow_redirects=False).headers["Location"]
    answer = client.get(back.removeprefix("http://testserver"))
    assert "You are not signed in" in answer.content.decode()
    assert client.get("/review/").status_code == HTTPStatus.FOUND


def test_without_a_provider_no_page_speaks_of_it(client: Client) -> None:
    assert "oidc" not in client.get("/login/").content.decode()
    assert client.get(BEGIN).status_code == HTTPStatus.NOT_FOUND
