"""The page of workers: who is alive, who went quiet, and what they hold."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from guardian.shortcuts import assign_perm

from tests.factories import many_runs, person, stranger, tenant
from workflows.models import Run, Tenant, Worker
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

URL = "/workers/"
LONG_AGO = timedelta(minutes=10)


@pytest.fixture
def viewer(client: Client) -> Client:
    user = person("viewer_1")
    assign_perm("workflows.view_tenant", user, tenant())
    client.force_login(user)
    return client


def worker(pid: int = 1, **fields: Any) -> Worker:
    fields.setdefault("swept_at", database_now())
    return Worker.objects.create(host="host", pid=pid, workflows=[["refund", 1]], **fields)


def holding(holder: Worker, number: int = 1, of: Tenant | None = None, **fields: Any) -> list[Run]:
    fields.setdefault("lease_expires_at", database_now() + timedelta(minutes=1))
    runs = many_runs(number, "running", lease_owner=holder.pk, **fields)
    if of is not None:
        Run.objects.filter(pk__in=[run.pk for run in runs]).update(tenant=of)
    return runs


def page_at(client: Client) -> Any:
    answer = client.get(URL)
    assert answer.status_code == HTTPStatus.OK
    return answer.context["page"]


def test_a_live_worker_is_shown_with_what_it_holds_and_has(viewer: Client) -> None:
    (run,) = holding(worker(), start_key="ORD-7001")
    page = page_at(viewer)
    assert (page.tone, page.verdict) == ("good", "1 worker is alive; 1 run at work, 0 ready.")
    (row,) = page.alive
    assert (row.name, row.state, row.versions) == ("host/1", "alive", ("refund v1",))
    assert [(link.text, link.url) for link in row.runs] == [
        ("Refund, ORD-7001", f"/runs/{run.pk}/")
    ]


def test_without_any_worker_it_says_what_waits_and_what_helps(viewer: Client) -> None:
    many_runs(2, "ready")
    page = page_at(viewer)
    assert page.tone == "hold"
    assert page.verdict == "No worker is alive. 2 runs that you may see wait for one."
    assert page.helps == "Starting a worker helps."


def test_a_worker_that_went_quiet_is_named_for_as_long_as_it_holds_a_run(viewer: Client) -> None:
    worker(1)
    gone = worker(2, seen_at=database_now() - timedelta(days=2))
    worker(3, seen_at=database_now() - timedelta(days=2))
    holding(gone, lease_expires_at=database_now() - LONG_AGO)
    page = page_at(viewer)
    assert [row.name for row in page.alive] == ["host/1"]
    (row,) = page.quiet
    assert (row.name, row.state) == ("host/2", "quiet")
    assert row.sentence.endswith("Another worker takes its runs over.")
    assert page.expired == 1


def test_a_worker_without_a_broker_or_a_sweep_says_so(viewer: Client) -> None:
    worker(1, broker_away_since=database_now() - LONG_AGO)
    worker(2, swept_at=database_now() - LONG_AGO)
    worker(3)
    page = page_at(viewer)
    assert {row.name: row.state for row in page.alive} == {
        "host/1": "no_broker",
        "host/2": "no_sweep",
        "host/3": "alive",
    }
    assert page.verdict.startswith("3 workers are alive, 2 of them with trouble")


def test_without_any_broker_nobody_is_told_that_work_goes_on(viewer: Client) -> None:
    """The sweep tells of what is due by the broker that is away."""
    worker(1, broker_away_since=database_now() - LONG_AGO)
    worker(2, broker_away_since=database_now() - LONG_AGO)
    page = page_at(viewer)
    assert page.tone == "hold"
    assert "what else is due waits until the broker is back" in page.verdict


def test_runs_of_other_tenants_are_neither_named_nor_counted(viewer: Client) -> None:
    holding(worker(), of=tenant("southbay"))
    page = page_at(viewer)
    assert (page.running, page.alive[0].runs, page.alive[0].more_runs) == (0, (), 0)


def test_who_may_see_no_tenant_sees_no_worker(client: Client) -> None:
    worker()
    client.force_login(stranger())
    page = page_at(client)
    assert (page.alive, page.may_see) == ((), False)


def test_htmx_gets_the_lists_alone(viewer: Client) -> None:
    worker()
    answer = viewer.get(URL, headers={"HX-Request": "true", "HX-Target": "workers"})
    text = answer.content.decode()
    assert text.lstrip().startswith('<div id="workers"')
    assert "<html" not in text


def test_its_queries_do_not_grow_with_workers_and_runs(viewer: Client) -> None:
    holding(worker(1))
    with CaptureQueriesContext(connection) as few:
        page_at(viewer)
    for pid in range(2, 30):
        holding(worker(pid), 2)
    with CaptureQueriesContext(connection) as many:
        page = page_at(viewer)
    assert len(many) == len(few) <= 12
    assert len(page.alive) == 29


def test_only_reading_is_possible(viewer: Client) -> None:
    assert viewer.post(URL).status_code == HTTPStatus.METHOD_NOT_ALLOWED
