"""Case A23: rights that outlive their object, or do not end when they are taken away.

In Romulus rights are held on what runs belong to, not on each run: `northwind` stands for run R,
seen by `viewer_1` directly and through a group. Runs are never deleted, so what is deleted is a
tenant, before it has any; the one that comes after it has its key, and 5,000 runs. There is no web
API of runs: the command line is the other edge.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from guardian.models import GroupObjectPermission, UserObjectPermission
from guardian.shortcuts import assign_perm, remove_perm

from tests.factories import many_runs, person
from tests.statements import statements
from workflows.models import Run, Tenant

pytestmark = pytest.mark.django_db

RUNS, PEOPLE, GROUPS = 5000, 50, 10
BATCH = 200
VIEW, PAYLOADS = "workflows.view_tenant", "workflows.view_payloads"
NOBODY = UUID("01900000-0000-7000-8000-000000000000")
VARIES = re.compile(
    r'data-now="[^"]*"|<span class="clock" data-clock>.*?</span>|since=[^"]*'
    r'|name="csrfmiddlewaretoken" value="[^"]*"',
    re.DOTALL,
)
LISTS = ("runs", "review", "events", "start", "audit", "search")


@pytest.fixture
def northwind() -> Tenant:
    return Tenant.objects.create(slug="northwind", name="Northwind")


@pytest.fixture
def groups(northwind: Tenant) -> list[Group]:
    """Ten groups that see the tenant, with five people each; `viewer_1` is in the first."""
    made = [Group.objects.create(name=f"team {place}") for place in range(GROUPS)]
    for place in range(PEOPLE):
        user = person("viewer_1" if not place else f"colleague_{place}")
        user.groups.add(made[place % GROUPS])
        assign_perm(VIEW, user, northwind)
    for team in made:
        assign_perm(VIEW, team, northwind)
    return made


def all_runs(of: Tenant) -> Run:
    """All the runs of a tenant; gives the last. Not at once: a transaction that waits for so many
    to be made is taken for one that hangs."""
    for _ in range(RUNS // BATCH):
        runs = many_runs(BATCH, tenant=of)
    return runs[-1]


def browser() -> Client:
    client = Client()
    client.force_login(person("viewer_1"))
    return client


def answers(client: Client, run: UUID) -> Iterator[tuple[int, str]]:
    """What pages, fragments and actions answer about a run, but for its ID, the time and tokens."""
    for name in ("run", "run_cancel", "run_pause", "held_run"):
        for headers in ({}, {"HX-Request": "true", "HX-Target": "live"}):
            answer = client.get(reverse(name, args=[run]), headers=headers)
            text = answer.content.decode().replace(str(run), "")
            yield answer.status_code, VARIES.sub("", text)


def exported(client: Client) -> list[Any]:
    answer: Any = client.post(reverse("runs_export"), {"as": "json"})
    found: list[Any] = json.loads(b"".join(answer.streaming_content))
    return found


def test_a_new_object_with_the_same_key_is_as_one_that_is_not_there(
    northwind: Tenant, groups: list[Group]
) -> None:
    client = browser()
    many_runs(1, tenant=Tenant.objects.create(slug="southbay", name="Southbay"))
    key = northwind.pk
    northwind.delete()
    assert not UserObjectPermission.objects.filter(object_pk=str(key)).exists()
    assert not GroupObjectPermission.objects.filter(object_pk=str(key)).exists()
    again = Tenant.objects.create(pk=key, slug="northwind", name="Northwind")
    run = all_runs(again)

    assert list(answers(client, run.pk)) == list(answers(client, NOBODY))
    assert exported(client) == []
    found = client.get(reverse("search"), {"q": str(run.pk)}).context["page"]
    assert not found.groups
    assert client.get(reverse("runs")).context["page"].rows == ()
    said = io.StringIO()
    call_command("runs", "--json", stdout=said)  # whoever runs commands sees all there is
    assert json.loads(said.getvalue())


def test_leaving_a_group_counts_at_the_next_request_of_an_open_session(
    northwind: Tenant, groups: list[Group]
) -> None:
    (run,) = many_runs(1, tenant=northwind)
    client = browser()
    url = reverse("run", args=[run.pk])
    remove_perm(VIEW, person("viewer_1"), northwind)
    assert client.get(url).status_code == HTTPStatus.OK  # by the group
    groups[0].user_set.remove(person("viewer_1"))
    assert client.get(url).status_code == HTTPStatus.NOT_FOUND
    assert exported(client) == []


def test_only_the_right_that_is_named_goes(northwind: Tenant, groups: list[Group]) -> None:
    (run,) = many_runs(1, tenant=northwind)
    user = person("viewer_1")
    user.groups.clear()
    assign_perm(PAYLOADS, user, northwind)
    other = Tenant.objects.create(slug="southbay", name="Southbay")
    assign_perm(PAYLOADS, user, other)
    remove_perm(PAYLOADS, user, northwind)
    left = User.objects.get(pk=user.pk)
    assert left.has_perm(VIEW, northwind)
    assert not left.has_perm(PAYLOADS, northwind)
    assert left.has_perm(PAYLOADS, other)
    assert browser().get(reverse("run", args=[run.pk])).status_code == HTTPStatus.OK
    assert person("colleague_1").has_perm(VIEW, northwind)


def test_lists_cost_the_same_with_all_of_it(northwind: Tenant, groups: list[Group]) -> None:
    """Their time is `bench console`'s to tell: what grows with rows or people shows here."""
    many_runs(3, tenant=northwind)
    client = browser()
    before = {name: asked(client, name) for name in LISTS}
    all_runs(northwind)
    assert Run.objects.count() >= RUNS
    assert {name: asked(client, name) for name in LISTS} == before


def asked(client: Client, name: str) -> int:
    client.get(reverse(name))  # what a process reads once is read
    with statements() as sent:
        assert client.get(reverse(name), {"q": "ORD"}).status_code == HTTPStatus.OK
    return len(sent)
