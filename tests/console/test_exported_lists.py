"""Lists as files: what the reader may see under the filters, whole, in bounded queries."""

from __future__ import annotations

import csv
import io
import json
from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client

from reconciliation.models import AuditEntry, Hold, Provider
from reconciliation.services.audit import add_entry
from tests.factories import many_held, many_runs, person, ready_provider, stranger, tenant
from tests.statements import statements
from tests.tampering import tamper
from workflows.models import Run
from workflows.selectors.batches import in_batches
from workflows.services.clock import database_now
from workflows.views import tables

pytestmark = pytest.mark.django_db

RUNS, QUEUE, AUDIT = "/runs/export/", "/review/export/", "/audit/export/"


@pytest.fixture
def viewer(client: Client) -> Client:
    """Somebody who may see Northwind's runs and the queue of its payments."""
    ready_provider("payments")
    client.force_login(person())
    return client


def rows_at(client: Client, url: str) -> list[dict[str, Any]]:
    answer = client.post(url, {"as": "csv"})
    assert answer.status_code == HTTPStatus.OK
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    text = b"".join(answer.streaming_content).decode("utf-8-sig")  # type: ignore[arg-type]
    return list(csv.DictReader(io.StringIO(text, newline="")))


def objects_at(client: Client, url: str) -> list[dict[str, Any]]:
    answer = client.post(url, {"as": "json"})
    objects: list[dict[str, Any]] = json.loads(
        b"".join(answer.streaming_content)  # type: ignore[arg-type]
    )
    return objects


def test_runs_are_exported_under_the_filter_and_of_visible_tenants_alone(viewer: Client) -> None:
    held = many_runs(3, "held", start_key=None)
    many_runs(2, "completed")
    (other,) = many_runs(1, "held")
    Run.objects.filter(pk=other.pk).update(tenant=tenant("southbay"))
    Run.objects.filter(pk=held[0].pk).update(start_key="=cmd|x")
    rows = rows_at(viewer, f"{RUNS}?state=held")
    assert [row["run"] for row in rows] == [str(run.pk) for run in reversed(held)]
    assert rows[-1]["start_key"] == "'=cmd|x"
    assert rows[0]["started_at"].endswith("Z")
    assert [row["run"] for row in objects_at(viewer, f"{RUNS}?state=held")] == [
        row["run"] for row in rows
    ]


def test_the_queue_is_exported_one_case_a_row_with_its_amount_as_a_number(viewer: Client) -> None:
    first, *_ = many_held(3, Provider.objects.get())
    tamper(
        "reconciliation_operation", "amount = -12.5, currency = 'EUR'", f"id = '{first.case_id}'"
    )
    rows = rows_at(viewer, QUEUE)
    assert [row["kind"] for row in rows] == ["operation"] * 3
    assert rows[0]["case"] == str(first.case_id)
    assert (rows[0]["amount"], rows[0]["currency"]) == ("-12.5000", "EUR")
    assert rows[0]["page"] == f"/operations/{first.case_id}/"
    # Money in JSON is text, which no program rounds.
    assert objects_at(viewer, QUEUE)[0]["amount"] == "-12.5000"
    unseen = Client()
    unseen.force_login(stranger())
    assert rows_at(unseen, QUEUE) == []


def test_the_audit_record_is_exported_as_far_as_it_may_be_seen(viewer: Client) -> None:
    (mine,) = many_runs(1, "held")
    (other,) = many_runs(1, "held")
    Run.objects.filter(pk=other.pk).update(tenant=tenant("southbay"))
    add_entry("user:3 ada", "run paused", f"run:{mine.pk}", {"reason": "-1 is no reason"})
    add_entry("user:3 ada", "run paused", f"run:{other.pk}", {})
    add_entry("user:3 ada", "run resumed", f"run:{mine.pk}", {})
    rows = rows_at(viewer, f"{AUDIT}?verb=run paused")
    assert [(row["did"], row["to"]) for row in rows] == [("run paused", f"run:{mine.pk}")]


@pytest.mark.parametrize("url", [RUNS, QUEUE, AUDIT])
def test_an_export_is_on_record_and_nothing_that_machines_fetch(viewer: Client, url: str) -> None:
    before = AuditEntry.objects.count()
    assert viewer.get(url).status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert Client().post(url).status_code == HTTPStatus.FOUND
    assert AuditEntry.objects.count() == before
    rows_at(viewer, f"{url}?state=held")
    entry = AuditEntry.objects.latest("seq")
    assert (entry.verb, entry.actor) == ("exported", f"user:{person().pk} reviewer_1")
    assert entry.object.startswith("list:")
    assert entry.detail["form"] == "csv"


def test_a_list_that_is_cut_off_says_so(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    many_runs(3, "held")
    monkeypatch.setattr(tables, "MOST_EXPORTED", 2)
    answer = viewer.post(RUNS)
    assert "-first-2.csv" in answer.headers["Content-Disposition"]
    assert AuditEntry.objects.latest("seq").detail["cut"] is True


def test_rows_are_read_in_batches_of_one_query_each() -> None:
    runs = many_runs(5, "held")
    with statements() as sent:
        read = [[run.pk for run in batch] for batch in in_batches(Run.objects.all(), "-pk", size=2)]
    newest = [run.pk for run in reversed(runs)]
    assert read == [newest[:2], newest[2:4], newest[4:]]
    assert len(sent) == 4
    assert [len(batch) for batch in in_batches(Run.objects.all(), "pk", size=2, limit=3)] == [2, 1]


def test_rows_that_are_equal_in_a_key_come_once_each() -> None:
    holds = many_held(5, ready_provider("payments"))
    Hold.objects.update(due_at=database_now())
    read = [
        hold.pk
        for batch in in_batches(Hold.objects.all(), "due_at", "pk", size=2)
        for hold in batch
    ]
    assert read == sorted(hold.pk for hold in holds)
