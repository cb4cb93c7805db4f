"""Executors elsewhere ask the same boundary: the AuthZEN API as it is served."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client

from tests.approving import policy
from tests.factories import tenant
from workflows.models import AccessToken, AuthorisationRecord
from workflows.services.access_tokens import add_token, end_token

pytestmark = pytest.mark.django_db

ONE, ALL = "/access/v1/evaluation", "/access/v1/evaluations"
ASKED: dict[str, Any] = {
    "subject": {"type": "workflow", "id": "elsewhere"},
    "action": {"name": "refunds.create"},
    "resource": {"type": "refunds", "id": "ORD-1"},
}
OTHER = {"action": {"name": "accounts.close"}}


@pytest.fixture
def token() -> str:
    return add_token("The other executor", tenant(), by="user:1 admin_1")


def ask(client: Client, url: str, body: Any, token: str, **headers: str) -> Any:
    given = {"Authorization": f"Bearer {token}"} | headers
    return client.post(url, body, content_type="application/json", headers=given)


def test_it_answers_by_the_policy_and_records_each_answer(client: Client, token: str) -> None:
    version = policy()
    answer = ask(client, ONE, ASKED, token, **{"X-Request-ID": "req-1"})
    assert (answer.status_code, answer.json()["decision"]) == (HTTPStatus.OK, True)
    assert answer.headers["X-Request-ID"] == "req-1"
    row = AuthorisationRecord.objects.get()
    assert (str(row.pk), row.policy) == (answer.json()["context"]["id"], version)
    answer = ask(client, ONE, ASKED | OTHER, token).json()
    assert answer["decision"] is False
    assert "no tool" in answer["context"]["reason_user"]["en"]
    assert AuthorisationRecord.objects.filter(asked="served").count() == 2


def test_several_at_once(client: Client, token: str) -> None:
    policy()
    body = ASKED | {"evaluations": [{}, OTHER, {}]}
    answers = ask(client, ALL, body, token).json()["evaluations"]
    assert [each["decision"] for each in answers] == [True, False, True]
    body["options"] = {"evaluations_semantic": "deny_on_first_deny"}
    answers = ask(client, ALL, body, token).json()["evaluations"]
    assert [each["decision"] for each in answers] == [True, False]
    assert ask(client, ALL, ASKED, token).json()["decision"] is True


def test_without_a_policy_it_says_no(client: Client, token: str) -> None:
    assert ask(client, ONE, ASKED, token).json()["decision"] is False


@pytest.mark.parametrize("shown", ["", "x", "not.one", "{id}.wrong", "{id}"])
def test_who_has_no_token_is_not_let_in(client: Client, token: str, shown: str) -> None:
    wrong = shown.format(id=AccessToken.objects.get().pk)
    answer = ask(client, ONE, ASKED, wrong)
    assert answer.status_code == HTTPStatus.UNAUTHORIZED
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert not AuthorisationRecord.objects.exists()


def test_a_token_that_has_ended_is_none(client: Client, token: str) -> None:
    policy()
    assert end_token(AccessToken.objects.get().pk, by="user:1 admin_1")
    assert ask(client, ONE, ASKED, token).status_code == HTTPStatus.UNAUTHORIZED
    assert token.partition(".")[2] not in str(AccessToken.objects.values().get())


@pytest.mark.parametrize("body", ["{", "[]", '{"subject": 1}', '{"subject": {}, "subject": {}}'])
def test_what_cannot_be_read_is_refused_and_not_recorded(
    client: Client, token: str, body: str
) -> None:
    assert ask(client, ONE, body, token).status_code == HTTPStatus.BAD_REQUEST
    assert not AuthorisationRecord.objects.exists()


def test_a_token_asks_about_its_own_tenant_alone(client: Client) -> None:
    policy()
    other = add_token("Southbay", tenant("southbay"), by="user:1 admin_1")
    assert ask(client, ONE, ASKED, other).json()["decision"] is False


def test_it_says_where_it_is(client: Client) -> None:
    found = client.get("/.well-known/authzen-configuration").json()
    assert found["access_evaluation_endpoint"].endswith(ONE)
