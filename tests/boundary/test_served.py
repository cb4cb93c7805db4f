"""Executors elsewhere ask the same boundary: the AuthZEN API as it is served."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client

from reconciliation.models import DecisionPoint
from reconciliation.services.decision_points import save_decision_point
from tests.approving import policy
from tests.contract.far_side import FarSide, Said
from tests.factories import administrator, tenant
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


@pytest.mark.parametrize(
    "change",
    [
        '"action": {"name": "a\\u0000"}',
        '"subject": {"type": "user", "id": "\\ud800"}',
        '"resource": {"type": "r", "id": "\\ud800"}',
        '"resource": {"type": "r", "id": "x", "properties": {"parameters": {"n": 9e99999}}}',
        f'"resource": {{"type": "r", "id": "x", "properties": {{"parameters": {{"n": {2**60}}}}}}}',
        '"context": []',
    ],
)
def test_what_cannot_be_kept_is_refused_in_words(client: Client, token: str, change: str) -> None:
    policy()
    rest = {name: said for name, said in ASKED.items() if f'"{name}"' not in change}
    whole = json.dumps(rest).removesuffix("}")
    answer = ask(client, ONE, f"{whole}, {change}}}", token)
    assert answer.status_code == HTTPStatus.BAD_REQUEST, answer.content
    assert answer.json()["error"]
    assert not AuthorisationRecord.objects.exists()


def test_too_much_is_refused_and_a_great_deal_is_not_kept(client: Client, token: str) -> None:
    policy()
    large = {"type": "r", "id": "x", "properties": {"parameters": {"text": "x" * 100_000}}}
    assert ask(client, ONE, ASKED | {"resource": large}, token).json()["decision"] is True
    assert AuthorisationRecord.objects.get().inputs_sealed is None
    huge = {"type": "r", "id": "x", "properties": {"parameters": {"text": "x" * 300_000}}}
    answer = ask(client, ONE, ASKED | {"resource": huge}, token)
    assert answer.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE


def test_of_several_one_that_is_none_is_denied_and_the_rest_are_answered(
    client: Client, token: str
) -> None:
    policy()
    body: dict[str, Any] = ASKED | {"evaluations": [{}, {"action": {}}, {}]}
    answers = ask(client, ALL, body, token).json()["evaluations"]
    assert [each["decision"] for each in answers] == [True, False, True]
    assert answers[1]["context"]["error"]["status"] == HTTPStatus.BAD_REQUEST
    assert AuthorisationRecord.objects.count() == 2
    body["options"] = {"evaluations_semantic": "deny_on_first_deny"}
    assert len(ask(client, ALL, body, token).json()["evaluations"]) == 2
    body["options"] = {"evaluations_semantic": "permit_on_first_permit"}
    assert len(ask(client, ALL, body, token).json()["evaluations"]) == 1


def test_what_needs_an_approval_is_not_given_without_one(client: Client, token: str) -> None:
    policy(approvals=[{"actions": ["refunds.*"]}])
    answer = ask(client, ONE, ASKED, token).json()
    assert answer["decision"] is False
    assert AuthorisationRecord.objects.get().failed == "proposal"


def test_the_decision_point_of_the_policy_must_allow_it_too(
    client: Client, token: str, side: FarSide
) -> None:
    made = DecisionPoint(slug="pdp", name="PDP", base_url=side.url, timeout_seconds=0.5)
    save_decision_point(made, by=administrator(), changed=["name"])
    policy(decision_point="pdp")
    side.answers = lambda _seen: Said(body=b'{"decision": true, "context": {"id": "d-1"}}')
    assert ask(client, ONE, ASKED, token).json()["decision"] is True
    assert AuthorisationRecord.objects.get().decision_id == "d-1"
    side.answers = lambda _seen: Said(body=b'{"decision": false}')
    assert ask(client, ONE, ASKED, token).json()["decision"] is False
    # One that does not answer is waited for once, however much is asked.
    side.seen.clear()
    side.answers = lambda _seen: Said(fault="hang")
    body = ASKED | {"evaluations": [{}, {}, {}]}
    answers = ask(client, ALL, body, token).json()["evaluations"]
    assert [each["decision"] for each in answers] == [False, False, False]
    assert len(side.seen) == 1
    # What the policy denies is not asked about.
    side.seen.clear()
    assert ask(client, ONE, ASKED | OTHER, token).json()["decision"] is False
    assert side.seen == []
