"""Runs and holds over HTTP: with one's own token, by one's own rights, and nothing is decided."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from guardian.shortcuts import assign_perm, remove_perm

from reconciliation.models import Hold, ReviewQueue
from tests.factories import many_held, person, reader, ready_provider, stranger, tenant
from workflows.models import Run
from workflows.services.access_tokens import add_own_token

pytestmark = pytest.mark.django_db

ADDRESSES = ("runs", "holds")


def get(user: User, path: str, **query: str) -> Any:
    shown = {"Authorization": f"Bearer {add_own_token('script', user)}"}
    return Client().get(f"/api/{path}/", query, headers=shown)


@pytest.fixture
def holds() -> list[Hold]:
    return many_held(3, ready_provider("payments"))


@pytest.fixture
def queue(holds: list[Hold]) -> ReviewQueue:
    assert holds[0].queue is not None
    return holds[0].queue


@pytest.fixture
def seeing(queue: ReviewQueue) -> User:
    user: User = reader(queue)
    return user


def test_who_may_see_them_reads_the_newest_first_and_older_ones_by_the_id(
    holds: list[Hold], seeing: User
) -> None:
    for name, ids in (
        ("runs", Run.objects.order_by("-pk")),
        ("holds", Hold.objects.order_by("-pk")),
    ):
        newest, *older = [str(row.pk) for row in ids]
        listed = get(seeing, name).json()
        assert [row["id"] for row in listed[name]] == [newest, *older]
        assert listed["before"] is None
        rest = get(seeing, name, before=newest).json()
        assert [row["id"] for row in rest[name]] == older
        assert get(seeing, f"{name}/{newest}").json()["id"] == newest


def test_nothing_of_what_was_given_or_sent_is_in_it(holds: list[Hold], seeing: User) -> None:
    Run.objects.update(input={"card": "marker-of-a-payload"})
    for path in ("runs", f"runs/{holds[0].run_id}", "holds", f"holds/{holds[0].pk}"):
        assert "marker-of-a-payload" not in get(seeing, path).content.decode()


@pytest.mark.parametrize("name", ADDRESSES)
def test_what_one_may_not_see_is_as_what_is_not_there(holds: list[Hold], name: str) -> None:
    theirs: UUID = holds[0].pk if name == "holds" else holds[0].run.pk  # type: ignore[union-attr]
    nobody = stranger()
    assert get(nobody, name).json() == {name: [], "before": None}
    answers = [get(nobody, f"{name}/{key}") for key in (theirs, uuid4())]
    assert [each.status_code for each in answers] == [HTTPStatus.NOT_FOUND] * 2
    assert answers[0].content == answers[1].content


@pytest.mark.parametrize("name", ADDRESSES)
def test_a_right_that_is_taken_is_gone_at_the_next_request(
    holds: list[Hold], seeing: User, name: str
) -> None:
    shown = {"Authorization": f"Bearer {add_own_token('script', seeing)}"}
    client = Client()
    assert client.get(f"/api/{name}/", headers=shown).json()[name]
    remove_perm("workflows.view_tenant", seeing, tenant())
    assert client.get(f"/api/{name}/", headers=shown).json()[name] == []


def test_a_hold_takes_the_right_on_its_queue_too(holds: list[Hold]) -> None:
    user = person("viewer_1")
    assign_perm("workflows.view_tenant", user, tenant())
    assert len(get(user, "runs").json()["runs"]) == len(holds)
    assert get(user, "holds").json()["holds"] == []
    assert get(user, f"holds/{holds[0].pk}").status_code == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize(
    ("path", "query", "number"),
    [
        ("runs", {"state": "held"}, 3),
        ("runs", {"state": "completed"}, 0),
        ("runs", {"tenant": "southbay"}, 0),
        ("runs", {"tenant": "northwind"}, 3),
        ("holds", {"queue": "payments"}, 3),
        ("holds", {"queue": "others"}, 0),
    ],
)
def test_lists_are_narrowed_by_words(
    holds: list[Hold], seeing: User, path: str, query: dict[str, str], number: int
) -> None:
    assert len(get(seeing, path, **query).json()[path]) == number


@pytest.mark.parametrize("query", [{"tenant": "\x00"}, {"workflow": 301 * "x"}])
def test_a_word_that_no_column_holds_is_refused(seeing: User, query: dict[str, str]) -> None:
    assert get(seeing, "runs", **query).status_code == HTTPStatus.UNPROCESSABLE_ENTITY


@pytest.mark.parametrize("name", ADDRESSES)
def test_no_session_and_no_closed_account_reads_and_nothing_is_written(
    seeing: User, name: str
) -> None:
    client = Client()
    client.force_login(seeing)
    assert client.get(f"/api/{name}/").status_code == HTTPStatus.UNAUTHORIZED
    assert client.post(f"/api/{name}/").status_code == HTTPStatus.METHOD_NOT_ALLOWED
    shown = {"Authorization": f"Bearer {add_own_token('script', seeing)}"}
    User.objects.filter(pk=seeing.pk).update(is_active=False)
    answer = client.get(f"/api/{name}/", headers=shown)
    assert answer.status_code == HTTPStatus.UNAUTHORIZED


@pytest.mark.parametrize("name", ADDRESSES)
def test_a_list_takes_as_many_queries_for_many_as_for_few(
    holds: list[Hold], seeing: User, name: str
) -> None:
    shown = {"Authorization": f"Bearer {add_own_token('script', seeing)}"}

    def asked() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert Client().get(f"/api/{name}/", headers=shown).json()[name]
        return len(queries)

    few = asked()
    assert holds[0].operation is not None
    many_held(20, holds[0].operation.provider)
    assert asked() == few <= 6
