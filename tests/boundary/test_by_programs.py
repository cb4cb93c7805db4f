"""Approving without a browser: at a terminal, and over HTTP with one's own token."""

from __future__ import annotations

import json
from datetime import timedelta
from http import HTTPStatus
from io import StringIO
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from guardian.shortcuts import assign_perm, remove_perm

from tests.approving import answered, approver, proposed
from tests.destination import RunningDestination
from tests.factories import advanced, person, stranger, tenant
from tests.sending import effects
from workflows.core.proposals import Answer
from workflows.models import AccessToken, Approval, Proposal
from workflows.services.access_tokens import add_own_token, add_token, end_own_token

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("payments")]

URL = "/api/approvals/"
LONG = "a-long-one-that-nobody-guesses-8"
CHECKED = "It was checked against the order."


def typed(*arguments: str) -> Any:
    """What `manage.py approvals …` answers."""
    out = StringIO()
    call_command("approvals", *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def named(verb: str, proposal: Proposal, *more: str, by: str = "approver_1") -> Any:
    return typed(verb, str(proposal.pk), "--by", by, *more)


# --- at a terminal --------------------------------------------------------------------------------


def test_it_is_listed_read_approved_and_sent_once(payments: RunningDestination) -> None:
    run, proposal = proposed()
    approver()
    (row,) = typed("list", "--tenant", "northwind")
    assert (row["id"], row["amount"]) == (str(proposal.pk), "125")
    shown = named("show", proposal)
    assert shown["parameters"]["amount"] == 12500
    token = str(uuid4())
    for _ in range(2):
        said = named("approve", proposal, "--digest", shown["digest"], "--token", token)
        assert said["state"] == "approved"
    assert Approval.objects.get().by == approver()
    assert advanced(run).state == "completed"
    assert effects(payments) == 1
    assert typed("list") == []


def test_a_terminal_keeps_to_the_rules_of_the_console() -> None:
    _, proposal = proposed(on_behalf_of="ada")
    approver("ada")
    digest = ("--digest", proposal.parameters_digest)
    looker = stranger("looker_1")
    for by, verb, more, said in (
        ("ada", "approve", digest, "somebody else approves it"),
        ("ada", "deny", digest, "Write at least"),
        ("ada", "approve", ("--digest", "0:0"), "What you were shown is not what is proposed"),
        ("ada", "withdraw", digest, "no approval here"),
        ("ada", "again", (), "Whoever may control"),
        (looker.get_username(), "show", (), "no proposal"),
        ("nobody_1", "show", (), "no active account"),
    ):
        with pytest.raises(CommandError, match=said) as refused:
            named(verb, proposal, *more, by=by)
        assert refused.value.returncode == 1
    assert not Approval.objects.exists()


def test_without_the_digest_of_what_was_read_no_script_answers() -> None:
    _, proposal = proposed()
    approver()
    with pytest.raises(CommandError, match="--digest") as wrong:
        named("approve", proposal)
    assert wrong.value.returncode == 2


def test_the_same_is_asked_for_again_at_a_terminal() -> None:
    run, proposal = proposed()
    user = approver()
    answered(proposal, user)
    remove_perm("workflows.approve_actions", user, tenant())
    assert advanced(run).state == "held"
    assign_perm("workflows.control_runs", user, tenant())
    assert named("again", proposal)["digest"] == proposal.parameters_digest


# --- over HTTP ------------------------------------------------------------------------------------


def asked(client: Client, url: str, token: str) -> Any:
    return client.get(url, headers={"Authorization": f"Bearer {token}"})


def told(client: Client, proposal: Proposal, bearer: str, **said: str) -> Any:
    given = {"answer": "approve", "digest": proposal.parameters_digest, "token": str(uuid4())}
    headers = {"Authorization": f"Bearer {bearer}"}
    url = f"{URL}{proposal.pk}/answers/"
    return client.post(url, given | said, content_type="application/json", headers=headers)


def test_a_program_reads_approves_and_repeats_itself_harmlessly(
    client: Client, payments: RunningDestination
) -> None:
    run, proposal = proposed()
    token = add_own_token("The night desk's script", approver())
    (row,) = asked(client, URL, token).json()["proposals"]
    shown = asked(client, f"{URL}{row['id']}/", token).json()
    assert (shown["parameters"]["order"], shown["answers"]) == ("ORD-7001", [])
    form = str(uuid4())
    first, second = (told(client, proposal, token, token=form, note=CHECKED) for _ in range(2))
    assert (first.status_code, first.json()) == (HTTPStatus.OK, second.json())
    assert (first.json()["state"], first.json()["by"]) == ("approved", "person:approver_1")
    assert Approval.objects.count() == 1
    assert advanced(run).state == "completed"
    assert effects(payments) == 1


def test_over_http_the_rules_are_those_of_the_console(client: Client) -> None:
    _, proposal = proposed(on_behalf_of="ada")
    own = add_own_token("Mine", approver("ada"))
    answer = told(client, proposal, own)
    assert answer.status_code == HTTPStatus.FORBIDDEN
    assert "somebody else approves it" in answer.json()["error"]
    token = add_own_token("Mine", approver())
    for said, status in (
        ({"digest": "0:0"}, HTTPStatus.UNPROCESSABLE_ENTITY),
        ({"digest": "\ud800"}, HTTPStatus.UNPROCESSABLE_ENTITY),
        ({"note": "\ud800"}, HTTPStatus.UNPROCESSABLE_ENTITY),
        ({"answer": "perhaps"}, HTTPStatus.UNPROCESSABLE_ENTITY),
        ({"token": "x"}, HTTPStatus.UNPROCESSABLE_ENTITY),
        ({"answer": "deny"}, HTTPStatus.UNPROCESSABLE_ENTITY),
    ):
        assert told(client, proposal, token, **said).status_code == status, said
    other = add_own_token("Theirs", stranger())
    assert told(client, proposal, other).status_code == HTTPStatus.NOT_FOUND
    assert asked(client, f"{URL}{proposal.pk}/", other).status_code == HTTPStatus.NOT_FOUND
    assert asked(client, URL, other).json()["proposals"] == []
    assert not Approval.objects.exists()
    answered(proposal, approver("first_1"), Answer.DENY)
    answer = told(client, proposal, token)
    assert answer.status_code == HTTPStatus.CONFLICT
    assert "denied by first_1" in answer.json()["error"]


@pytest.mark.parametrize("body", ["{", "[]", '{"answer": 1}', '{"answer": "deny", "answer": "x"}'])
def test_what_a_program_sends_and_nobody_can_read_is_refused(client: Client, body: str) -> None:
    _, proposal = proposed()
    headers = {"Authorization": f"Bearer {add_own_token('Mine', approver())}"}
    url = f"{URL}{proposal.pk}/answers/"
    answer = client.post(url, body, content_type="application/json", headers=headers)
    assert answer.status_code in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)
    assert client.post(url, headers=headers).status_code == HTTPStatus.UNSUPPORTED_MEDIA_TYPE


def test_a_token_that_counts_no_more_lets_nobody_in(client: Client) -> None:
    _, proposal = proposed()
    user = approver()

    def is_let_in(token: str) -> bool:
        return asked(client, URL, token).status_code == HTTPStatus.OK  # type: ignore[no-any-return]

    ended, old, closed = (add_own_token(label, user) for label in ("ended", "old", "closed"))
    assert is_let_in(ended)
    assert end_own_token(UUID(ended.partition(".")[0]), user)
    assert not end_own_token(UUID(old.partition(".")[0]), person("other_1"))
    assert not is_let_in(ended)
    AccessToken.objects.filter(label="old").update(created_at=F("created_at") - timedelta(days=90))
    assert not is_let_in(old)
    assert is_let_in(closed)
    get_user_model().objects.filter(pk=user.pk).update(is_active=False)
    assert not is_let_in(closed)
    # One that asks the boundary for an executor answers no proposal, and the other way round.
    executor = add_token("The other executor", tenant(), by="user:1 admin_1")
    assert told(client, proposal, executor).status_code == HTTPStatus.UNAUTHORIZED
    get_user_model().objects.filter(pk=user.pk).update(is_active=True)
    headers = {"Authorization": f"Bearer {closed}"}
    served = client.post(
        "/access/v1/evaluation", {}, content_type="application/json", headers=headers
    )
    assert served.status_code == HTTPStatus.UNAUTHORIZED
    assert asked(client, URL, "").headers["WWW-Authenticate"] == "Bearer"


def test_a_session_alone_is_not_a_token(client: Client) -> None:
    """So that no page of another site answers with the cookie of somebody who is signed in."""
    _, proposal = proposed()
    client.force_login(approver())
    given = {"answer": "approve", "digest": proposal.parameters_digest, "token": str(uuid4())}
    url = f"{URL}{proposal.pk}/answers/"
    answer = client.post(url, given, content_type="application/json")
    assert answer.status_code == HTTPStatus.UNAUTHORIZED
    assert not Approval.objects.exists()


def test_a_list_costs_the_same_however_much_there_is(client: Client) -> None:
    token = add_own_token("Mine", approver())
    counts = []
    for number in range(3):
        proposed(order=f"ORD-800{number}")
        with CaptureQueriesContext(connection) as made:
            assert len(asked(client, URL, token).json()["proposals"]) == number + 1
        counts.append(len(made))
    assert len(set(counts)) == 1


# --- one's own tokens -----------------------------------------------------------------------------


def test_a_person_makes_a_token_sees_it_once_and_lets_it_end(client: Client) -> None:
    user = approver()
    client.post("/login/", {"username": "approver_1", "password": "approver_1"})
    asked_again = client.post("/account/tokens/", {"label": "The night desk's script"})
    assert not AccessToken.objects.exists()
    # What was pressed is done once it is certain who has pressed it.
    page = client.post(asked_again["Location"], {"password": "approver_1"})
    made = page.context["made"]
    assert made in page.content.decode()
    row = AccessToken.objects.get(person=user)
    assert made.partition(".")[2] not in str(AccessToken.objects.values().get())
    shown = client.get("/account/tokens/").content.decode()
    assert "The night desk" in shown
    assert made.partition(".")[2] not in shown
    wrong = client.post("/account/tokens/", {"label": "\u200b"})
    assert wrong.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    client.post("/account/tokens/", {"end": str(row.pk)})
    assert asked(client, URL, made).status_code == HTTPStatus.UNAUTHORIZED
    other = client.post("/account/tokens/", {"label": "Another"}).context["made"]
    assert asked(client, URL, other).status_code == HTTPStatus.OK
    chosen = {"oldpassword": "approver_1", "password1": LONG, "password2": LONG}
    assert client.post("/account/password/", chosen).status_code == HTTPStatus.FOUND
    assert asked(client, URL, other).status_code == HTTPStatus.UNAUTHORIZED


def test_a_session_that_was_left_open_makes_no_token_without_the_password(client: Client) -> None:
    client.force_login(approver())
    answer = client.post("/account/tokens/", {"label": "Mine"})
    assert answer.status_code == HTTPStatus.FOUND
    assert "/account/confirm/" in answer["Location"]
    assert not AccessToken.objects.exists()
